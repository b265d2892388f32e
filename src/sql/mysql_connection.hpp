#pragma once

#include <holdfast/sql.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <memory>
#include <string>

namespace HOLDFAST_NAMESPACE::sql {

struct mysql_options {
  std::string host{};  ///< name or address, always reached over TCP; empty: 127.0.0.1
  unsigned port = 3306;
  std::string socket{};    ///< a Unix socket; when given, host and port are not used
  std::string user{};      ///< empty: the name of the system's user
  std::string password{};  ///< appears in no message
  std::string database{};
  std::chrono::milliseconds connect_timeout{
      5'000};  ///< all of it: connection, TLS, login, settings. Only the system's name lookup is not covered
  std::chrono::milliseconds statement_timeout{10'000};  ///< see connection::limit
  bool tls = false;                                     ///< true: a server that offers no TLS is refused before anything is sent
  bool tls_verify = true;                               ///< the certificate must be valid, and made out to `host`
  std::string tls_ca{};                                 ///< PEM file; empty: the system's authorities
  std::string tls_cert{};                               ///< PEM file, for servers that ask who we are
  std::string tls_key{};                                ///< PEM file
  /// Whether a server may ask for the password itself although its certificate was not verified. For accounts that log in through PAM or
  /// LDAP (`dialog`, `mysql_clear_password`), or with `caching_sha2_password` or `sha256_password`, over a private network.
  bool allow_cleartext_password = false;
};

/// Connects to MariaDB or MySQL. The session is strict, in UTC, utf8mb4, READ COMMITTED; lock waits end a second before the statement
/// limit given here, so that they are an ordinary transient failure and not a broken connection.
///
/// A failure that the server reports leaves the connection usable. One that makes a transaction worthless (deadlock, lock timeout) refuses
/// everything until rollback(): MySQL would run what follows outside any transaction. A timeout or a lost connection breaks it.
///
/// In doubt: only what may change data, had been sent, and was not inside an open transaction (which the server rolls back when it loses us;
/// tables whose engine knows no transactions are not covered by this).
///
/// With verified TLS every login method of the client library is used. Otherwise only those that do not tell the server the password;
/// on this machine also those that do so encrypted (docs/tls.md).
///
/// An answer that needs more than 512 MiB of memory is errc::too_large and breaks the connection.
///
/// Threads: none; with TLS one, which watches the limits. Fork: the child must neither use nor destroy it.
/// Throws errc::unavailable, timeout, permission, missing_object (no such database), invalid_argument.
[[nodiscard]] std::unique_ptr<connection> connect_mysql(const mysql_options& options);

}  // namespace HOLDFAST_NAMESPACE::sql
