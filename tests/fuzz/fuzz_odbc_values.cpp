// Reads values of an ODBC driver with arbitrary content and length. This file replaces SQLGetData.

#include <holdfast/error.hpp>

#include "base/utf8.hpp"
#include "sql/odbc/values.hpp"

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

extern "C" SQLRETURN SQL_API SQLGetData(SQLHSTMT, SQLUSMALLINT, SQLSMALLINT c_type,
                                        SQLPOINTER buffer, SQLLEN room, SQLLEN* length) {
  if (input->remaining_bytes() == 0) return SQL_NO_DATA;
  const auto bytes = input->ConsumeRandomLengthString(5'000);
  std::memcpy(buffer, bytes.data(), std::min(bytes.size(), static_cast<std::size_t>(room)));
  const auto size = static_cast<SQLLEN>(bytes.size());
  if (c_type == SQL_C_SBIGINT || c_type == SQL_C_TYPE_TIMESTAMP)
    *length = input->ConsumeBool() ? room : SQL_NULL_DATA;
  else
    *length = input->PickValueInArray<SQLLEN>(
        {size, size, size, SQL_NULL_DATA, SQL_NO_TOTAL, 100'000, -7, SQLLEN{1} << 40U});
  return input->PickValueInArray<SQLRETURN>({SQL_SUCCESS, SQL_SUCCESS, SQL_SUCCESS_WITH_INFO,
                                             SQL_SUCCESS_WITH_INFO, SQL_NO_DATA, SQL_ERROR,
                                             SQL_INVALID_HANDLE});
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzedDataProvider provider(data, size);
  input = &provider;
  const auto expected =
      provider.PickValueInArray({type::integer, type::text, type::bytes, type::time});
  const detail::sql::odbc::value_format format{.times_as_numbers = provider.ConsumeBool(),
                                               .numbers_as_text = provider.ConsumeBool()};
  try {
    SQLRETURN failure = SQL_SUCCESS;
    const auto read = detail::sql::odbc::read_value(SQL_NULL_HSTMT, 1, expected, format, failure);
    if (const auto* text = std::get_if<std::string>(&read);
        text != nullptr && expected == type::text) {
      require(detail::is_utf8(*text));
      const auto wide = detail::sql::odbc::to_wide(*text);
      require(detail::sql::odbc::from_wide(wide) == *text);
    }
  } catch (const error& refused) {
    require(refused.code() == errc::malformed || refused.code() == errc::out_of_range);
  }
  return 0;
}
