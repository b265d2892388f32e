#pragma once

/// \file
/// Joining the caller's own transaction. The library says what is to be done, as `{statement, parameters}`; the header-only adaptors beside
/// this file (libpq.hpp, sqlite3.hpp, mariadb.hpp) do it, in the caller's translation unit and with the caller's client library, on the
/// connection that has the transaction open. No handle of a client library ever enters the library.
///
///     PQexec(connection, "BEGIN");
///     // ... the caller's own statements ...
///     holdfast::join::libpq here{connection};
///     ids.next_in_transaction(here);              // what hangs on a database takes a join::transaction&
///     PQexec(connection, "COMMIT");

#include <holdfast/error.hpp>
#include <holdfast/sql.hpp>
#include <holdfast/version.hpp>

#include <span>
#include <string_view>

namespace HOLDFAST_NAMESPACE::join {

/// A transaction that somebody else began, and will end. What runs on it is there when they commit, and was never there when they roll back.
/// Nothing is sent but the statement itself: no BEGIN, no COMMIT, no SET, no savepoint, and nothing prepared that stays behind.
/// Thread-safety: none, as the handle's. It must not outlive the handle. It owns nothing.
class HOLDFAST_API transaction {
 public:
  virtual ~transaction();

  /// Which dialect the other end speaks.
  [[nodiscard]] virtual sql::dialect_id dialect() const = 0;

  /// Runs one statement. Parameters are those of sql.hpp, and so is the outcome.
  /// Throws errc::invalid_argument when no transaction is open: the statement would commit by itself, and be there whatever the caller
  /// decides. Else throws what the database says, with the meaning of sql.hpp; never in doubt, since nothing is committed here. After a
  /// failure PostgreSQL accepts nothing but a rollback; the others go on, unless they ended the transaction (`transient`).
  virtual sql::outcome execute(const sql::statement& s, std::span<const sql::parameter> parameters) = 0;

 protected:
  transaction() = default;
  transaction(const transaction&) = default;
  transaction& operator=(const transaction&) = default;
};

/// For the adaptors: what a failure means to a caller.
/// \{
[[nodiscard]] HOLDFAST_API error postgres_failure(std::string_view sqlstate, std::string_view text);
[[nodiscard]] HOLDFAST_API error mysql_failure(unsigned number, std::string_view sqlstate, std::string_view text);
[[nodiscard]] HOLDFAST_API error sqlite_failure(int extended_code, std::string_view text);
/// Throws errc::invalid_argument unless so many values are given as the statement declares, each NULL or of the declared type.
HOLDFAST_API void check_parameters(const sql::statement& s, std::span<const sql::parameter> parameters);
[[nodiscard]] HOLDFAST_API error no_transaction();
/// \}

}  // namespace HOLDFAST_NAMESPACE::join
