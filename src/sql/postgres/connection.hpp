#pragma once

#include <holdfast/version.hpp>

#include "sql/public_names.hpp"
#include "sql/several_hosts.hpp"

#include <chrono>
#include <memory>
#include <string>

namespace HOLDFAST_NAMESPACE::detail::sql {

struct postgres_options {
  /// For libpq: a URI or `host=... user=...`. Also chooses TLS (sslmode). Never printed.
  std::string connection_string{};
  /// For all hosts together; `connect_timeout` in the string replaces it, for each host. Does not
  /// cover the DNS lookup.
  std::chrono::milliseconds connect_timeout{5'000};
  std::chrono::milliseconds statement_timeout{10'000};  ///< see connection::limit
  std::chrono::milliseconds keepalive{30'000};          ///< see pool_options
  /// Hosts that the connections of one factory do not try first. Null: those of this call.
  std::shared_ptr<silent_hosts> silent{};
};

/// Connects. If the string names several hosts, uses the first that accepts writes, unless the
/// string or PGTARGETSESSIONATTRS chooses target_session_attrs. The session uses UTC and UTF-8; its
/// application_name is `holdfast` unless the string names another. libpq also reads PGPASSFILE,
/// PGOPTIONS and so on.
///
/// Throws errc::invalid_argument (a string that libpq cannot parse), errc::permission,
/// errc::missing_object (no such database), errc::timeout and errc::unavailable (both transient).
/// No message contains the string or the password.
///
/// After a timeout or a lost connection the object is unusable. The error is in doubt if the whole
/// statement was sent outside a transaction and no answer came; also for a SELECT, which may call a
/// function that writes.
///
/// Fork: the child must not use the connection (its calls throw); destroying it there does not
/// affect the parent's.
[[nodiscard]] HOLDFAST_API std::unique_ptr<connection> connect_postgres(
    const postgres_options& options);

}  // namespace HOLDFAST_NAMESPACE::detail::sql
