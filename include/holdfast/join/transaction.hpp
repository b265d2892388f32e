#pragma once

/// \file
/// Runs Holdfast's statements inside a transaction of the application.
///
/// Holdfast renders a statement and its parameters. An adaptor (libpq.hpp, sqlite3.hpp,
/// mariadb.hpp) runs it on the connection that has the transaction open. The adaptors are
/// header-only: they are compiled in the application, with its client library, and no handle of a
/// client library enters Holdfast.
///
///     PQexec(connection, "BEGIN");
///     // ... the application's own statements ...
///     holdfast::join::libpq transaction{connection};
///     auto id = ids.next_in_transaction(transaction);
///     PQexec(connection, "COMMIT");

#include <holdfast/error.hpp>
#include <holdfast/sql.hpp>
#include <holdfast/version.hpp>

#include <span>
#include <string_view>

namespace HOLDFAST_NAMESPACE::join {

/// A transaction that the application began and will end. Statements that run on it take effect
/// when the application commits.
///
/// Only the statement itself is sent: no BEGIN, COMMIT, SET or savepoint, and no prepared statement
/// remains. A transaction refers to the handle and must not outlive it. Thread-safety: that of the
/// handle.
class HOLDFAST_API transaction {
 public:
  virtual ~transaction();

  /// The dialect of the server.
  [[nodiscard]] virtual sql::dialect_id dialect() const = 0;

  /// Runs one statement. sql.hpp describes the parameters, the result and the errors.
  ///
  /// Throws errc::invalid_argument if no transaction is open, because the statement would commit
  /// immediately. An error is never in doubt, because nothing is committed here. After an error
  /// PostgreSQL accepts only ROLLBACK; the other databases continue the transaction, unless they
  /// rolled it back themselves (such errors are `transient`).
  virtual sql::outcome execute(const sql::statement& s,
                               std::span<const sql::parameter> parameters) = 0;

 protected:
  transaction() = default;
  transaction(const transaction&) = default;
  transaction& operator=(const transaction&) = default;
};

/// For adaptors: convert a failure of the client library to an error.
/// \{
[[nodiscard]] HOLDFAST_API error postgres_failure(std::string_view sqlstate, std::string_view text);
[[nodiscard]] HOLDFAST_API error mysql_failure(unsigned number, std::string_view sqlstate,
                                               std::string_view text);
[[nodiscard]] HOLDFAST_API error sqlite_failure(int extended_code, std::string_view text);
/// The error for a handle without an open transaction.
[[nodiscard]] HOLDFAST_API error no_transaction();
/// \}

/// For adaptors: throws errc::invalid_argument unless there are as many values as the statement
/// declares parameters, each NULL or of the declared type.
HOLDFAST_API void check_parameters(const sql::statement& s,
                                   std::span<const sql::parameter> parameters);

}  // namespace HOLDFAST_NAMESPACE::join
