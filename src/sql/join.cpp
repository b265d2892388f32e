#include <holdfast/join/transaction.hpp>

#include "sql/mysql_errors.hpp"
#include "sql/postgres_errors.hpp"
#include "sql/sqlite_errors.hpp"

#include <string>
#include <variant>

namespace HOLDFAST_NAMESPACE::join {

namespace {

bool fits(sql::type declared, const sql::parameter& given) {
  if (std::holds_alternative<std::monostate>(given)) return true;
  switch (declared) {
    case sql::type::integer:
      return std::holds_alternative<std::int64_t>(given);
    case sql::type::text:
      return std::holds_alternative<std::string_view>(given);
    case sql::type::bytes:
      return std::holds_alternative<std::span<const std::byte>>(given);
    case sql::type::time:
      return std::holds_alternative<timestamp>(given);
  }
  return false;
}

}  // namespace

transaction::~transaction() = default;

// The caller's commit is what lasts, and it has not been sent: a connection that is lost here takes all of it along.
error postgres_failure(std::string_view sqlstate, std::string_view text) {
  return sql::postgres::from_server({.sqlstate = sqlstate, .text = text});
}

error mysql_failure(unsigned number, std::string_view sqlstate, std::string_view text) {
  return sql::mysql::from_server({.number = number, .sqlstate = sqlstate, .text = text}, false, {});
}

error sqlite_failure(int extended_code, std::string_view text) { return sql::sqlite_error(extended_code, std::string(text)); }

void check_parameters(const sql::statement& s, std::span<const sql::parameter> parameters) {
  if (parameters.size() != s.parameters.size()) {
    throw error(errc::invalid_argument, "the statement has " + std::to_string(s.parameters.size()) + " parameters, but " +
                                            std::to_string(parameters.size()) + " values are given");
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!fits(s.parameters[i], parameters[i]))
      throw error(errc::invalid_argument, "parameter " + std::to_string(i + 1) + " is not of the type that the statement declares");
  }
}

error no_transaction() {
  return {errc::invalid_argument,
          "no transaction is open on this connection, so this would commit by itself; begin one first (BEGIN, START TRANSACTION)"};
}

}  // namespace HOLDFAST_NAMESPACE::join
