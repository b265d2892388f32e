#pragma once

#include <holdfast/sql.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <memory>
#include <string>

namespace HOLDFAST_NAMESPACE::sql {

struct postgres_options {
  std::string connection_string{};                      ///< libpq's: a URI or `host=... user=...`; never printed. TLS is set here (sslmode)
  std::chrono::milliseconds connect_timeout{5'000};     ///< for all hosts together; the system's name lookup is not counted
  std::chrono::milliseconds statement_timeout{10'000};  ///< see connection::limit
};

/// Connects, in UTC and UTF-8, as `holdfast` unless the string names the application. PGPASSFILE, PGOPTIONS and the like are libpq's.
/// Throws errc::invalid_argument (a string that cannot be read), errc::permission, errc::missing_object (no such database),
/// errc::timeout and errc::unavailable (both transient). No message contains the string or the password.
///
/// A statement that timed out, and a lost connection, leave the connection broken. Every error says rightly whether the statement is in
/// doubt: it is when all of it was sent, outside a transaction, and no answer came. A SELECT counts as well: it may call what writes.
///
/// Fork: the child must not use the connection (it is refused); destroying it there leaves the parent's alone.
[[nodiscard]] HOLDFAST_API std::unique_ptr<connection> connect_postgres(const postgres_options& options);

}  // namespace HOLDFAST_NAMESPACE::sql
