// Any bytes, read as columns of PostgreSQL's binary format, and as text that H2's PostgreSQL port sends.

#include <holdfast/error.hpp>

#include "sql/h2_values.hpp"
#include "sql/postgres_binary.hpp"

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

void require_type(const sql::value& read, type wanted) {
  if (std::holds_alternative<std::monostate>(read)) return;
  require(wanted == type::integer ? std::holds_alternative<std::int64_t>(read)
          : wanted == type::time  ? std::holds_alternative<timestamp>(read)
                                  : std::holds_alternative<std::string>(read));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  // The types that columns have, and one that nobody knows.
  for (const sql::postgres::oid actual : {16U, 17U, 19U, 20U, 21U, 23U, 25U, 1042U, 1043U, 1114U, 1184U, 999'999U}) {
    for (const auto wanted : {type::integer, type::text, type::bytes, type::time}) {
      try {
        const sql::postgres::column_reader column(wanted, actual, "C");
        require_type(column.read(text), wanted);
        require(std::holds_alternative<std::monostate>(column.read(std::nullopt)));
      } catch (const error& refused) {
        require(!refused.message().empty());
      }
    }
  }
  for (const auto wanted : {type::integer, type::text, type::bytes, type::time}) {
    for (const bool is_bytea : {false, true}) {
      try {
        const auto read = sql::h2::read_text(text.c_str(), text.size(), wanted, is_bytea);
        require_type(read, wanted);
        if (const auto* when = std::get_if<timestamp>(&read)) require(sql::h2::read_time(sql::h2::time_text(*when)) == *when);
      } catch (const error& refused) {
        require(refused.code() == errc::malformed);
      }
    }
  }
  return 0;
}
