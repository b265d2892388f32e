#include "sql/connect.hpp"

#include "base/aes_gcm.hpp"
#include "base/local_host.hpp"
#include "base/secret.hpp"
#include "base/url.hpp"
#include "sql/several_hosts.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#if HOLDFAST_HAS_SQLITE
#include "sql/sqlite/connection.hpp"
#endif
#if HOLDFAST_HAS_POSTGRES
#include "sql/h2/connection.hpp"
#include "sql/postgres/connection.hpp"
#include "sql/postgres/login.hpp"
#endif
#if HOLDFAST_HAS_MYSQL
#include "sql/mysql/connection.hpp"
#endif
#if HOLDFAST_HAS_ODBC
#include "sql/odbc/connection.hpp"
#include "sql/odbc/login.hpp"
#endif

namespace HOLDFAST_NAMESPACE::detail::sql {

namespace {

[[noreturn]] void refuse_url(const std::string& message) {
  throw error(errc::invalid_argument, message, {.path = "url"});
}

/// The first that is set: the option, the URL, the environment variable, the file.
[[maybe_unused]] std::string password_of(const url& address, const connect_options& options) {
  if (!options.password.empty()) return options.password;
  if (address.password) return *address.password;
  // NOLINTNEXTLINE(concurrency-mt-unsafe)
  if (const char* password = std::getenv("HOLDFAST_PASSWORD"); password != nullptr) return password;
  if (options.password_file.empty()) return {};
  return read_password_file(options.password_file);
}

[[maybe_unused]] std::string user_of(const url& address, const connect_options& options,
                                     const char* fallback = "") {
  return !options.user.empty() ? options.user : address.user.value_or(fallback);
}

[[maybe_unused]] void refuse_unknown_parameters(const url& address,
                                                std::initializer_list<std::string_view> allowed) {
  for (const auto& [name, value] : address.parameters) {
    if (std::ranges::find(allowed, name) != allowed.end()) continue;
    std::string message = "the URL parameter '";
    message.append(name).append("' is unknown; known: ");
    for (const auto each : allowed)
      message.append(each == *allowed.begin() ? "" : ", ").append(each);
    refuse_url(message);
  }
}

[[maybe_unused]] std::string parameter_of(const url& address, std::string_view name) {
  const auto position = address.parameters.find(name);
  return position == address.parameters.end() ? std::string() : position->second;
}

/// Returns nullopt if the URL does not have the parameter.
[[maybe_unused]] std::optional<unsigned> number_of(const url& address, std::string_view name,
                                                   unsigned largest, const char* message) {
  const auto position = address.parameters.find(name);
  if (position == address.parameters.end()) return std::nullopt;
  const auto& text = position->second;
  unsigned number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc() || end != text.data() + text.size() || number > largest)
    refuse_url(message);
  return number;
}

[[maybe_unused]] bool flag_of(const url& address, std::string_view name, bool fallback) {
  const auto text = parameter_of(address, name);
  if (text.empty()) return fallback;
  if (text != "0" && text != "1")
    refuse_url("the URL parameter '" + std::string(name) + "' must be 0 or 1");
  return text == "1";
}

#if HOLDFAST_HAS_SQLITE
connection_factory sqlite_connector(const url& address, const connect_options& options) {
  refuse_unknown_parameters(address, {"mode", "mmap", "synchronous", "vfs"});
  if (!address.host.empty())
    refuse_url(
        "an SQLite URL has no host: write sqlite:relative/file.db or sqlite:///absolute/file.db");
  if (address.path == ":memory:")
    refuse_url("every connection would have a database of its own; write memory: instead");
  if (address.path.empty())
    refuse_url(
        "the SQLite URL names no file; write sqlite:answers.db, or memory: for a store that is "
        "gone with the process");
  const std::string file = (address.has_authority ? "/" : "") + address.path;
  // Many builds of SQLite read such a name as a URI, with parameters of its own.
  if (file.starts_with("file:"))
    refuse_url(
        "an SQLite URL names a plain path, not a file: URI; write sqlite:answers.db, or "
        "sqlite:./file:... for a file of that name");
  sqlite_options result{.file = file,
                        .vfs = parameter_of(address, "vfs"),
                        .statement_timeout = options.statement_timeout};
  const auto has = [&address](std::string_view name) { return address.parameters.contains(name); };
  if (has("mode")) {
    const auto mode = parameter_of(address, "mode");
    if (mode != "ro" && mode != "rw" && mode != "rwc")
      refuse_url(
          "mode must be ro (only read), rw (open an existing file) or rwc (create the file if it "
          "is "
          "absent)");
    result.create = mode == "rwc";
    result.read_only = mode == "ro";
  }
  if (has("synchronous")) {
    const auto level = parameter_of(address, "synchronous");
    if (level == "full") result.synchronous = sqlite_options::durability::full;
    else if (level == "normal") result.synchronous = sqlite_options::durability::normal;
    else if (level == "off") result.synchronous = sqlite_options::durability::off;
    else refuse_url("synchronous must be full, normal or off");
  }
  if (const auto mebibytes =
          number_of(address, "mmap", 1U << 20U, "mmap must be a number of MiB, as in mmap=2047"))
    result.mapped_mebibytes = *mebibytes;
  return [result] { return connect_sqlite(result); };
}
#endif

#if HOLDFAST_HAS_POSTGRES
connection_factory postgres_connector(const url& address, const connect_options& options) {
  std::string conninfo;
  const auto add = [&conninfo](std::string_view keyword, std::string_view value) {
    conninfo += std::string(keyword) + "=" + postgres::quoted_value(value) + " ";
  };
  std::string hosts;
  std::string ports;
  bool has_port = false;
  for (const auto& host : address.hosts) {
    const bool first = &host == &address.hosts.front();
    hosts.append(first ? "" : ",").append(host.name);
    ports.append(first ? "" : ",").append(host.port ? std::to_string(*host.port) : "");
    has_port = has_port || host.port;
  }
  if (!address.host.empty()) add("host", hosts);
  if (has_port) add("port", ports);
  if (!address.path.empty()) add("dbname", address.path);
  if (!options.user.empty() || address.user) add("user", user_of(address, options));
  if (const auto password = password_of(address, options); !password.empty())
    add("password", password);
  for (const auto& [name, value] : address.parameters) add(name, value);
  const postgres_options result{.connection_string = conninfo,
                                .connect_timeout = options.connect_timeout,
                                .statement_timeout = options.statement_timeout,
                                .keepalive = options.keepalive,
                                .silent = std::make_shared<silent_hosts>()};
  return [result] { return connect_postgres(result); };
}

connection_factory h2_connector(const url& address, const connect_options& options) {
  refuse_unknown_parameters(address, {"write_delay"});
  h2_options result{.database = address.path,
                    .user = user_of(address, options, "sa"),
                    .password = password_of(address, options),
                    .connect_timeout = options.connect_timeout,
                    .statement_timeout = options.statement_timeout,
                    .keepalive = options.keepalive};
  if (!address.host.empty()) result.host = address.host;
  if (address.port) result.port = *address.port;
  if (result.database.empty())
    refuse_url("the URL names no database; write h2://user@host:5435/name");
  if (const auto delay =
          number_of(address, "write_delay", 60'000,
                    "write_delay must be a number of milliseconds; 0, which is also the default, "
                    "loses nothing that was acknowledged"))
    result.write_delay = std::chrono::milliseconds(*delay);
  return [result] { return connect_h2(result); };
}
#endif

#if HOLDFAST_HAS_MYSQL
/// The options for one host of the URL.
mysql_options mysql_server(const url& address, const url_host& host,
                           const connect_options& options) {
  mysql_options result;
  result.host = host.name.empty() ? "127.0.0.1" : host.name;
  result.port = host.port.value_or(3306);
  result.socket = parameter_of(address, "socket");
  result.user = user_of(address, options);
  result.password = password_of(address, options);
  result.database = address.path;
  result.statement_timeout = options.statement_timeout;
  result.keepalive = options.keepalive;
  // A connection to another machine is encrypted by default. The certificate is verified only if
  // the URL asks for TLS or names an authority: by default no authority is known. The doctor
  // reports an unverified server.
  const bool remote = result.socket.empty() && !is_local_host(result.host);
  result.tls = flag_of(address, "tls", remote);
  result.tls_ca = parameter_of(address, "tls_ca");
  result.tls_verify = flag_of(address, "tls_verify",
                              !parameter_of(address, "tls").empty() || !result.tls_ca.empty());
  result.tls_cert = parameter_of(address, "tls_cert");
  result.tls_key = parameter_of(address, "tls_key");
  result.allow_cleartext_password = flag_of(address, "allow_cleartext_password", false);
  result.must_accept_writes = address.hosts.size() > 1;
  return result;
}

connection_factory mysql_connector(const url& address, const connect_options& options) {
  refuse_unknown_parameters(address, {"socket", "connect_timeout", "tls", "tls_verify", "tls_ca",
                                      "tls_cert", "tls_key", "allow_cleartext_password"});
  if (address.path.empty()) refuse_url("the URL names no database; write mysql://user@host/name");
  if (address.hosts.size() > 1 && address.parameters.contains("socket"))
    refuse_url("the URL names several hosts and a socket; write the hosts, or the socket");
  auto hosts = address.hosts;
  if (hosts.empty()) hosts.emplace_back();
  std::vector<mysql_options> servers;
  std::vector<std::string> addresses;
  for (const auto& host : hosts) {
    servers.push_back(mysql_server(address, host, options));
    addresses.push_back(servers.back().host + "|" + std::to_string(servers.back().port));
  }
  connect_limits limits{.all = options.connect_timeout};
  if (const auto seconds = number_of(address, "connect_timeout", 86'400,
                                     "connect_timeout must be a number of seconds for each host, "
                                     "as in connect_timeout=2");
      seconds && *seconds > 0)
    limits.each = std::chrono::seconds(*seconds);
  return [servers, addresses, limits, silent = std::make_shared<silent_hosts>()] {
    return connect_to_first(addresses, limits, *silent, [&](std::size_t host, auto limit) {
      auto server = servers[host];
      server.connect_timeout = limit;
      return connect_mysql(server);
    });
  };
}
#endif

#if HOLDFAST_HAS_ODBC
/// `text` is what follows `odbc:`. It is not parsed as a URL: the driver manager reads it.
connection_factory odbc_connector(std::string_view text, const connect_options& options) {
  if (text.find('=') == std::string_view::npos)
    refuse_url(
        "after odbc: comes a connection string, like odbc:DSN=answers or "
        "odbc:Driver=FreeTDS;Server=...");
  const odbc_options result{.connection_string = std::string(text),
                            .user = options.user,
                            // Neither the environment nor the password file replaces a password
                            // in the string.
                            .password = odbc::has_password(text) && options.password.empty()
                                            ? std::string()
                                            : password_of({}, options),
                            .connect_timeout = options.connect_timeout,
                            .statement_timeout = options.statement_timeout};
  auto complete = odbc::complete_connection_string(result);  // refuses an invalid string now
  wipe(std::as_writable_bytes(std::span(complete)));
  return [result] { return connect_odbc(result); };
}
#endif

[[maybe_unused, noreturn]] void refuse_driver(const std::string& kind, const std::string& option) {
  refuse_url("this build of Holdfast has no " + kind + "; build it with -DHOLDFAST_WITH_" + option +
             "=ON");
}

}  // namespace

connection_factory connector(std::string_view text,
                             [[maybe_unused]] const connect_options& options) {
  if (text.starts_with("odbc:")) {
#if HOLDFAST_HAS_ODBC
    return odbc_connector(text.substr(5), options);
#else
    refuse_driver("ODBC", "ODBC");
#endif
  }
  const url address = parse_url_of_hosts(text);
  const bool takes_a_list =
      dialect_of_url(text) == dialect_id::postgresql || dialect_of_url(text) == dialect_id::mysql;
  if (address.hosts.size() > 1 && !takes_a_list)
    refuse_url("only URLs of PostgreSQL, MySQL and MariaDB name several hosts; name one");
  if (address.scheme == "sqlite") {
#if HOLDFAST_HAS_SQLITE
    return sqlite_connector(address, options);
#else
    refuse_driver("SQLite", "SQLITE");
#endif
  }
  if (address.scheme == "postgresql" || address.scheme == "postgres") {
#if HOLDFAST_HAS_POSTGRES
    return postgres_connector(address, options);
#else
    refuse_driver("PostgreSQL", "POSTGRES");
#endif
  }
  if (address.scheme == "h2") {
#if HOLDFAST_HAS_POSTGRES
    return h2_connector(address, options);
#else
    refuse_driver("PostgreSQL, whose client library connects to H2", "POSTGRES");
#endif
  }
  if (address.scheme == "mysql" || address.scheme == "mariadb") {
#if HOLDFAST_HAS_MYSQL
    return mysql_connector(address, options);
#else
    refuse_driver("MySQL", "MYSQL");
#endif
  }
  refuse_url("no database is called '" + address.scheme +
             "'; known: memory:, sqlite:, postgresql://, mysql://, h2://, odbc:, redis://, "
             "redis+cluster://, redis+sentinel://");
}

std::optional<dialect_id> dialect_of_url(std::string_view url) {
  const auto scheme = url.substr(0, url.find(':'));
  if (scheme == "sqlite") return dialect_id::sqlite;
  if (scheme == "postgresql" || scheme == "postgres") return dialect_id::postgresql;
  if (scheme == "h2") return dialect_id::h2;
  if (scheme == "mysql" || scheme == "mariadb") return dialect_id::mysql;
  return std::nullopt;
}

}  // namespace HOLDFAST_NAMESPACE::detail::sql
