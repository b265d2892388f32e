#pragma once

#include <holdfast/version.hpp>

#include "sql/public_names.hpp"

#include <chrono>
#include <memory>
#include <string>

namespace HOLDFAST_NAMESPACE::detail::sql {

struct mysql_options {
  /// Name or address, always reached over TCP. Empty: 127.0.0.1.
  std::string host{};
  unsigned port = 3306;
  /// A Unix socket, used instead of host and port.
  std::string socket{};
  /// Empty: the name of the system's user.
  std::string user{};
  /// Appears in no message.
  std::string password{};
  std::string database{};
  /// Covers connection, TLS, login and settings, but not the name lookup of the system.
  std::chrono::milliseconds connect_timeout{5'000};
  std::chrono::milliseconds statement_timeout{10'000};  ///< see connection::limit
  std::chrono::milliseconds keepalive{30'000};          ///< see pool_options
  /// Refuses a server that does not offer TLS before anything is sent.
  bool tls = false;
  /// The certificate must be valid and issued for `host`.
  bool tls_verify = true;
  /// PEM file with the authorities. Empty: those of the system.
  std::string tls_ca{};
  /// PEM files of the client's certificate, for servers that require one.
  std::string tls_cert{};
  std::string tls_key{};
  /// Allows login methods that send the password to a server that was not verified. For accounts
  /// with PAM or LDAP (`dialog`, `mysql_clear_password`), or with `caching_sha2_password` or
  /// `sha256_password`, in a private network.
  bool allow_cleartext_password = false;
  /// Refuses a server that does not accept writes: a replica, or a node of Galera that is not part
  /// of its cluster.
  bool must_accept_writes = false;
};

/// Connects to MariaDB or MySQL. The session uses the strict mode, UTC, utf8mb4 and READ COMMITTED.
/// Lock waits end a second before the statement timeout, so that they are an ordinary transient
/// failure and do not break the connection.
///
/// An error that the server reports leaves the connection usable. After an error that rolls back
/// the transaction (deadlock, lock timeout) all calls throw until rollback(): MySQL would run them
/// outside of a transaction. A timeout or a lost connection breaks the connection.
///
/// An error is in doubt if a statement that may change data was sent outside a transaction and no
/// answer came. (Inside a transaction the server rolls back, except in tables of an engine without
/// transactions.)
///
/// With verified TLS all login methods of the client library are allowed, otherwise only those that
/// do not send the password; on this machine also those that send it encrypted (docs/tls.md).
///
/// An answer that needs more than 512 MiB of memory is errc::too_large and breaks the connection.
///
/// Threads: none; with TLS one that watches the time limit. Fork: the child must neither use nor
/// destroy the connection. Throws errc::unavailable, timeout, permission, missing_object (no such
/// database), invalid_argument.
[[nodiscard]] std::unique_ptr<connection> connect_mysql(const mysql_options& options);

}  // namespace HOLDFAST_NAMESPACE::detail::sql
