// Values as a driver of ODBC hands them over, with any content and any length: SQLGetData is defined here instead.

#include <holdfast/error.hpp>

#include "base/utf8.hpp"
#include "sql/odbc_values.hpp"

#include <fuzzer/FuzzedDataProvider.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <variant>

namespace {

using namespace holdfast;
using sql::type;

FuzzedDataProvider* input = nullptr;

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" SQLRETURN SQL_API SQLGetData(SQLHSTMT, SQLUSMALLINT, SQLSMALLINT c_type, SQLPOINTER to, SQLLEN room, SQLLEN* told) {
  if (input->remaining_bytes() == 0) return SQL_NO_DATA;
  const auto bytes = input->ConsumeRandomLengthString(5'000);
  std::memcpy(to, bytes.data(), std::min(bytes.size(), static_cast<std::size_t>(room)));
  const auto size = static_cast<SQLLEN>(bytes.size());
  if (c_type == SQL_C_SBIGINT || c_type == SQL_C_TYPE_TIMESTAMP) *told = input->ConsumeBool() ? room : SQL_NULL_DATA;
  else *told = input->PickValueInArray<SQLLEN>({size, size, size, SQL_NULL_DATA, SQL_NO_TOTAL, 100'000, -7, SQLLEN{1} << 40U});
  return input->PickValueInArray<SQLRETURN>(
      {SQL_SUCCESS, SQL_SUCCESS, SQL_SUCCESS_WITH_INFO, SQL_SUCCESS_WITH_INFO, SQL_NO_DATA, SQL_ERROR, SQL_INVALID_HANDLE});
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzedDataProvider provider(data, size);
  input = &provider;
  const auto wanted = provider.PickValueInArray({type::integer, type::text, type::bytes, type::time});
  const sql::odbc::habits habits{.times_as_numbers = provider.ConsumeBool(), .numbers_as_text = provider.ConsumeBool()};
  try {
    SQLRETURN failed = SQL_SUCCESS;
    const auto read = sql::odbc::read(SQL_NULL_HSTMT, 1, wanted, habits, failed);
    if (const auto* text = std::get_if<std::string>(&read); text != nullptr && wanted == type::text) {
      require(is_utf8(*text));
      const auto wide = sql::odbc::to_wide(*text);
      require(sql::odbc::from_wide(wide) == *text);
    }
  } catch (const error& refused) {
    require(refused.code() == errc::malformed || refused.code() == errc::out_of_range);
  }
  return 0;
}
