#pragma once

#include <holdfast/version.hpp>

#include "sql/public_names.hpp"

#include <chrono>
#include <memory>
#include <string>

namespace HOLDFAST_NAMESPACE::detail::sql {

struct odbc_options {
  /// For the driver manager: `DSN=answers` or `Driver=...;Server=...`. Never printed.
  std::string connection_string{};
  std::string user{};      ///< replaces UID in the string
  std::string password{};  ///< replaces PWD in the string
  std::chrono::milliseconds connect_timeout{5'000};
  std::chrono::milliseconds statement_timeout{10'000};  ///< see connection::limit
};

/// Connects through unixODBC. The dialect follows from the name that the driver gives to its
/// database.
///
/// Text is sent as UTF-16, whatever the locale, and times as UTC. Batches are sent as arrays of
/// parameters, or as array values to PostgreSQL. Values above 64 KiB are sent in pieces while the
/// statement runs.
///
/// Some drivers never return if the server hangs. So each connection has a thread that calls the
/// driver. A call that misses its deadline is abandoned: the connection is broken, what the call
/// refers to stays alive until it returns, and then its thread ends. At most 64 such calls may hang
/// in a process; above that, connecting fails until one returns.
///
/// Throws errc::invalid_argument (a string that is not allowed), errc::missing_object (no such
/// driver or data source), errc::permission, errc::timeout and errc::unavailable (both transient).
///
/// Fork: the child must not use the connection (its calls throw); destroying it there does not
/// affect the parent's.
[[nodiscard]] HOLDFAST_API std::unique_ptr<connection> connect_odbc(const odbc_options& options);

}  // namespace HOLDFAST_NAMESPACE::detail::sql
