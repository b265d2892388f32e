#pragma once

#include <holdfast/sql.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <memory>
#include <string>

namespace HOLDFAST_NAMESPACE::sql {

struct odbc_options {
  std::string connection_string{};  ///< as the driver manager takes it: `DSN=answers` or `Driver=...;Server=...`; never printed
  std::string user{};               ///< instead of UID in the string
  std::string password{};           ///< instead of PWD in the string
  std::chrono::milliseconds connect_timeout{5'000};
  std::chrono::milliseconds statement_timeout{10'000};  ///< see connection::limit
};

/// Connects through unixODBC. The dialect is told by the driver's name for its database.
///
/// Text travels as UTF-16, whatever the locale; times in UTC; batches as arrays of parameters, and on PostgreSQL as array values; values of
/// more than 64 KiB in pieces while the statement runs.
///
/// Drivers cannot be trusted to end a call in time: with a server that hangs, some never return. So each connection has a thread on which
/// its driver is called, and a call that is not back by its deadline is left alone there: the connection is broken, everything the call
/// refers to stays alive until it returns, and its thread ends then. At most 64 such calls may hang in one process; then connecting is
/// refused until one returns.
///
/// Throws errc::invalid_argument (no such driver or data source), errc::permission, errc::timeout and errc::unavailable (both transient).
/// Fork: the child must not use the connection (it is refused); destroying it there leaves the parent's alone.
[[nodiscard]] HOLDFAST_API std::unique_ptr<connection> connect_odbc(const odbc_options& options);

}  // namespace HOLDFAST_NAMESPACE::sql
