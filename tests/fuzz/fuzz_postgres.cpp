// Reads arbitrary bytes as columns in PostgreSQL's binary format and as text of H2's PostgreSQL
// port.

#include <holdfast/error.hpp>

#include "sql/h2/values.hpp"
#include "sql/postgres/values.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace {

using namespace holdfast;
using sql::type;

void require(bool condition) {
  if (!condition) std::abort();
}

void require_type(const sql::value& read, type expected) {
  if (std::holds_alternative<std::monostate>(read)) return;
  require(expected == type::integer ? std::holds_alternative<std::int64_t>(read)
          : expected == type::time  ? std::holds_alternative<timestamp>(read)
                                    : std::holds_alternative<std::string>(read));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  // The types of columns, and an unknown one.
  for (const detail::sql::postgres::oid actual :
       {16U, 17U, 19U, 20U, 21U, 23U, 25U, 1042U, 1043U, 1114U, 1184U, 999'999U}) {
    for (const auto expected : {type::integer, type::text, type::bytes, type::time}) {
      try {
        const detail::sql::postgres::column_reader column(expected, actual, "C");
        require_type(column.read(text), expected);
        require(std::holds_alternative<std::monostate>(column.read(std::nullopt)));
      } catch (const error& refused) {
        require(!refused.message().empty());
      }
    }
  }
  for (const auto expected : {type::integer, type::text, type::bytes, type::time}) {
    for (const bool is_bytea : {false, true}) {
      try {
        const auto read = detail::sql::h2::read_text(text.c_str(), text.size(), expected, is_bytea);
        require_type(read, expected);
        if (const auto* time = std::get_if<timestamp>(&read))
          require(detail::sql::h2::read_time(detail::sql::h2::time_text(*time)) == *time);
      } catch (const error& refused) {
        require(refused.code() == errc::malformed);
      }
    }
  }
  return 0;
}
