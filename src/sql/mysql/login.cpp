#include "sql/mysql/login.hpp"

#include <holdfast/error.hpp>

#include "base/local_host.hpp"

#include <mysql.h>

#include <algorithm>
#include <chrono>

namespace HOLDFAST_NAMESPACE::detail::sql::mysql {

namespace {

/// The stack of the library's non-blocking calls, which resolve names and use TLS. The default of
/// 60 kB is too small for that; only pages that are used cost memory.
constexpr std::size_t call_stack = std::size_t{256} * 1024;

// The login methods that a server may ask for if it was not verified. The library searches the list
// for the name of the method.

/// These answer a challenge with a hash or a signature.
constexpr const char* remote_login_methods = "mysql_native_password,client_ed25519,parsec";
/// The SHA-2 methods send the password to the server, in TLS or encrypted with a key that the
/// server sends. That is acceptable for a server on this machine.
constexpr const char* local_login_methods =
    "mysql_native_password,client_ed25519,parsec,caching_sha2_password,sha256_password,"
    "auth_gssapi_client";

bool is_local(const mysql_options& options) {
  return !options.socket.empty() || is_local_host(options.host);
}

void set(MYSQL* handle, mysql_option option, const void* value) {
  if (::mysql_options(handle, option, value) != 0)
    throw error(errc::internal, "libmariadb does not know an option");
}

void set_path(MYSQL* handle, mysql_option option, const std::string& path) {
  if (!path.empty()) set(handle, option, path.c_str());
}

/// The server chooses the login method. A server that was not verified could ask for the password.
void restrict_login_methods(MYSQL* handle, const mysql_options& options) {
  if ((options.tls && options.tls_verify) || options.allow_cleartext_password) return;
  if (is_local(options)) {
    set(handle, MARIADB_OPT_RESTRICTED_AUTH, local_login_methods);
    return;
  }
  set(handle, MARIADB_OPT_RESTRICTED_AUTH, remote_login_methods);
  // The greeting names the default method of the server, which is caching_sha2_password on MySQL 8.
  // If the account has another method, the server asks for it later.
  set(handle, MYSQL_DEFAULT_AUTH, "mysql_native_password");
}

unsigned whole_seconds(std::chrono::milliseconds limit) {
  const auto bounded = std::min(limit, std::chrono::milliseconds(std::chrono::hours(1)));
  return static_cast<unsigned>(std::chrono::ceil<std::chrono::seconds>(bounded).count());
}

}  // namespace

void configure(st_mysql* handle, const mysql_options& options) {
  set(handle, MYSQL_OPT_NONBLOCK, &call_stack);
  set(handle, MYSQL_SET_CHARSET_NAME, "utf8mb4");
  // Otherwise a server may ask the client for any file that it can read.
  constexpr unsigned disabled = 0;
  set(handle, MYSQL_OPT_LOCAL_INFILE, &disabled);
  // Otherwise `localhost` means a Unix socket, which may belong to another server than the port.
  const unsigned protocol = options.socket.empty() ? MYSQL_PROTOCOL_TCP : MYSQL_PROTOCOL_SOCKET;
  set(handle, MYSQL_OPT_PROTOCOL, &protocol);
  mysql_options4(handle, MYSQL_OPT_CONNECT_ATTR_ADD, "program_name", "holdfast");
  restrict_login_methods(handle, options);

  const my_bool encrypted = options.tls ? 1 : 0;
  set(handle, MYSQL_OPT_SSL_ENFORCE, &encrypted);
  if (!options.tls) return;
  const my_bool verified = options.tls_verify ? 1 : 0;
  set(handle, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &verified);
  set_path(handle, MYSQL_OPT_SSL_CA, options.tls_ca);
  set_path(handle, MYSQL_OPT_SSL_CERT, options.tls_cert);
  set_path(handle, MYSQL_OPT_SSL_KEY, options.tls_key);
  // With TLS the library blocks in spite of its non-blocking calls, so its own timeouts matter.
  const unsigned connect_seconds = whole_seconds(options.connect_timeout);
  const unsigned statement_seconds = whole_seconds(options.statement_timeout);
  set(handle, MYSQL_OPT_CONNECT_TIMEOUT, &connect_seconds);
  set(handle, MYSQL_OPT_READ_TIMEOUT, &statement_seconds);
  set(handle, MYSQL_OPT_WRITE_TIMEOUT, &statement_seconds);
}

std::string address_of(const mysql_options& options) {
  return options.socket.empty() ? options.host + ":" + std::to_string(options.port)
                                : options.socket;
}

transport_kind transport_of(const mysql_options& options) {
  if (is_local(options)) return transport_kind::local;
  if (!options.tls) return transport_kind::plaintext;
  return options.tls_verify ? transport_kind::verified : transport_kind::encrypted;
}

}  // namespace HOLDFAST_NAMESPACE::detail::sql::mysql
