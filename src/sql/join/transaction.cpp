#include <holdfast/join/transaction.hpp>

#include "sql/call_deadline.hpp"
#include "sql/driver_support.hpp"
#include "sql/mysql/errors.hpp"
#include "sql/postgres/errors.hpp"
#include "sql/sqlite/errors.hpp"

#include <string>
#include <variant>

namespace HOLDFAST_NAMESPACE::join {

namespace {

bool has_type(const sql::parameter& value, sql::type declared) {
  if (detail::sql::is_null(value)) return true;
  switch (declared) {
    case sql::type::integer:
      return std::holds_alternative<std::int64_t>(value);
    case sql::type::text:
      return std::holds_alternative<std::string_view>(value);
    case sql::type::bytes:
      return std::holds_alternative<std::span<const std::byte>>(value);
    case sql::type::time:
      return std::holds_alternative<timestamp>(value);
  }
  return false;
}

}  // namespace

transaction::~transaction() = default;

// A lost connection is harmless here: the application has not sent its COMMIT, so the server rolls
// back.
error postgres_failure(std::string_view sqlstate, std::string_view text) {
  return detail::sql::postgres::to_error({.sqlstate = sqlstate, .text = text});
}

error mysql_failure(unsigned number, std::string_view sqlstate, std::string_view text) {
  return detail::sql::mysql::to_error({.number = number, .sqlstate = sqlstate, .text = text},
                                      detail::sql::loss::harmless, {});
}

error sqlite_failure(int extended_code, std::string_view text) {
  return detail::sql::sqlite::to_error(extended_code, std::string(text));
}

error no_transaction() {
  return {errc::invalid_argument,
          "no transaction is open on this connection, so the statement would commit immediately; "
          "begin one first (BEGIN, START TRANSACTION)"};
}

void check_parameters(const sql::statement& s, std::span<const sql::parameter> parameters) {
  detail::sql::check_parameter_count(s, parameters);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!has_type(parameters[i], s.parameters[i]))
      throw error(errc::invalid_argument,
                  "parameter " + std::to_string(i + 1) +
                      " does not have the type that the statement declares");
  }
}

}  // namespace HOLDFAST_NAMESPACE::join
