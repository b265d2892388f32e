// links: PkgConfig::mariadb
// Reads rows with arbitrary content. This file replaces the functions of libmariadb that read_rows
// calls.

#include <holdfast/error.hpp>

#include "sql/mysql/values.hpp"

#include <fuzzer/FuzzedDataProvider.h>
#include <mysql.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

using holdfast::sql::type;

/// The result that is being read.
struct fake_result {
  FuzzedDataProvider* input = nullptr;
  unsigned columns = 0;
  int rows = 0;
  std::vector<MYSQL_BIND> binds{};
  std::vector<std::string> texts{};  ///< of the current row
};
fake_result result;

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" {
unsigned int STDCALL mysql_stmt_field_count(MYSQL_STMT*) { return result.columns; }
unsigned long long STDCALL mysql_stmt_num_rows(MYSQL_STMT*) {
  return static_cast<unsigned long long>(result.rows);
}
my_bool STDCALL mysql_stmt_free_result(MYSQL_STMT*) { return 0; }
my_bool STDCALL mysql_stmt_bind_result(MYSQL_STMT*, MYSQL_BIND* binds) {
  result.binds.assign(binds, binds + result.columns);
  return result.input->ConsumeIntegralInRange(0, 50) == 0 ? 1 : 0;
}
int STDCALL mysql_stmt_fetch(MYSQL_STMT*) {
  if (result.rows-- <= 0) return MYSQL_NO_DATA;
  auto& input = *result.input;
  result.texts.clear();
  for (const auto& bind : result.binds) {
    *bind.is_null = input.ConsumeBool() ? 1 : 0;
    *bind.error = input.ConsumeBool() ? 1 : 0;
    result.texts.push_back(input.ConsumeRandomLengthString(1'000));
    *bind.length = static_cast<unsigned long>(result.texts.back().size());
    if (bind.buffer_type == MYSQL_TYPE_LONGLONG) {
      const auto number = input.ConsumeIntegral<long long>();
      std::memcpy(bind.buffer, &number, sizeof number);
    } else if (bind.buffer_type == MYSQL_TYPE_DATETIME) {
      // As wide as they are on the wire.
      MYSQL_TIME date{};
      date.year = input.ConsumeIntegral<std::uint16_t>();
      date.month = input.ConsumeIntegral<std::uint8_t>();
      date.day = input.ConsumeIntegral<std::uint8_t>();
      date.hour = input.ConsumeIntegral<std::uint8_t>();
      date.minute = input.ConsumeIntegral<std::uint8_t>();
      date.second = input.ConsumeIntegral<std::uint8_t>();
      date.second_part = input.ConsumeIntegral<std::uint32_t>();
      std::memcpy(bind.buffer, &date, sizeof date);
    }
  }
  constexpr std::array<int, 4> states{0, 0, MYSQL_DATA_TRUNCATED, 1};
  return states.at(input.ConsumeIntegralInRange<std::size_t>(0, 3));
}
int STDCALL mysql_stmt_fetch_column(MYSQL_STMT*, MYSQL_BIND* bind, unsigned int column,
                                    unsigned long offset) {
  const auto& text = result.texts.at(column);
  require(offset == 0);
  std::memcpy(bind->buffer, text.data(), std::min<std::size_t>(bind->buffer_length, text.size()));
  const bool wrong_length = result.input->ConsumeIntegralInRange(0, 20) == 0;
  *bind->length = static_cast<unsigned long>(text.size()) + (wrong_length ? 1 : 0);
  return result.input->ConsumeIntegralInRange(0, 50) == 0 ? 1 : 0;
}
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzedDataProvider input(data, size);
  result = {.input = &input};
  std::vector<type> columns(input.ConsumeIntegralInRange<std::size_t>(0, 5));
  for (auto& column : columns)
    column = input.PickValueInArray({type::integer, type::text, type::bytes, type::time});
  result.columns =
      static_cast<unsigned>(columns.size()) + (input.ConsumeIntegralInRange(0, 20) == 0 ? 1U : 0U);
  result.rows = input.ConsumeIntegralInRange(0, 20);
  holdfast::sql::rows rows(columns.size());
  alignas(16) static std::array<char, 4096> statement{};
  try {
    holdfast::detail::sql::mysql::read_rows(*reinterpret_cast<MYSQL_STMT*>(statement.data()),
                                            columns, rows);
    for (std::size_t row = 0; row < rows.size(); ++row) {
      for (std::size_t column = 0; column < columns.size(); ++column) (void)rows.at(row, column);
    }
  } catch (const holdfast::error& refused) {
    require(!refused.message().empty());
  }
  return 0;
}
