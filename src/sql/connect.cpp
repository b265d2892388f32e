#include "sql/connect.hpp"

#include "base/aes_gcm.hpp"
#include "base/local_host.hpp"
#include "base/secret.hpp"
#include "base/url.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <span>
#include <utility>

#if HOLDFAST_HAS_SQLITE
#include "sql/sqlite_connection.hpp"
#endif
#if HOLDFAST_HAS_POSTGRES
#include "sql/h2_connection.hpp"
#include "sql/postgres_connection.hpp"
#include "sql/postgres_conninfo.hpp"
#endif
#if HOLDFAST_HAS_MYSQL
#include "sql/mysql_connection.hpp"
#endif
#if HOLDFAST_HAS_ODBC
#include "sql/odbc_connection.hpp"
#include "sql/odbc_string.hpp"
#endif

namespace HOLDFAST_NAMESPACE::sql {

namespace {

[[noreturn]] void fail(const std::string& message) { throw error(errc::invalid_argument, message, {.path = "url"}); }

/// The first that is given: the options, the URL, the environment, the file.
[[maybe_unused]] std::string password_of(const url& from, const database_options& options) {
  if (!options.password.empty()) return options.password;
  if (from.password) return *from.password;
  if (const char* given = std::getenv("HOLDFAST_PASSWORD"); given != nullptr) return given;  // NOLINT(concurrency-mt-unsafe)
  if (options.password_file.empty()) return {};
  return read_password_file(options.password_file);
}

[[maybe_unused]] void refuse_unknown_parameters(const url& given, std::initializer_list<std::string_view> known) {
  std::string all;
  for (const auto each : known) all.append(all.empty() ? "" : ", ").append(each);
  for (const auto& [name, value] : given.parameters) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    std::string why = "the URL's parameter '";
    why.append(name).append("' is not known here; known: ").append(all);
    fail(why);
  }
}

#if HOLDFAST_HAS_SQLITE
connection_factory sqlite_connector(const url& given, const database_options& options) {
  refuse_unknown_parameters(given, {"mode", "mmap", "synchronous", "vfs"});
  sqlite_options made{.file = (given.has_authority ? "/" : "") + given.path, .statement_timeout = options.statement_timeout};
  if (!given.host.empty()) fail("an SQLite URL has no host: write sqlite:relative/file.db or sqlite:///absolute/file.db");
  if (given.path == ":memory:") fail("every connection would have a database of its own; write memory: instead");
  // Many builds of SQLite read such a name as a URI, with parameters of its own.
  if (made.file.starts_with("file:"))
    fail("an SQLite URL names a plain path, not a file: URI; write sqlite:answers.db, or sqlite:./file:... for a file of that name");
  if (given.path.empty())
    fail("the SQLite URL names no file; write sqlite:answers.db, or memory: for a store that is gone with the process");
  if (const auto found = given.parameters.find("vfs"); found != given.parameters.end()) made.vfs = found->second;
  if (const auto found = given.parameters.find("mode"); found != given.parameters.end()) {
    if (found->second != "rw" && found->second != "rwc")
      fail("mode must be rw, which opens only what is there, or rwc, which makes it, too");
    made.create = found->second == "rwc";
  }
  if (const auto found = given.parameters.find("synchronous"); found != given.parameters.end()) {
    if (found->second == "full") made.synchronous = sqlite_options::durability::full;
    else if (found->second == "normal") made.synchronous = sqlite_options::durability::normal;
    else if (found->second == "off") made.synchronous = sqlite_options::durability::off;
    else fail("synchronous must be full, normal or off");
  }
  if (const auto found = given.parameters.find("mmap"); found != given.parameters.end()) {
    const auto [end, wrong] = std::from_chars(found->second.data(), found->second.data() + found->second.size(), made.mapped_mebibytes);
    if (wrong != std::errc() || end != found->second.data() + found->second.size() || made.mapped_mebibytes > 1U << 20U)
      fail("mmap must be a number of MiB, as in mmap=2047");
  }
  return [made] { return connect_sqlite(made); };
}
#endif

#if HOLDFAST_HAS_POSTGRES
connection_factory postgres_connector(const url& given, const database_options& options) {
  std::string words;
  const auto add = [&words](std::string_view name, std::string_view text) {
    words += std::string(name) + "=" + postgres::quoted_value(text) + " ";
  };
  if (!given.host.empty()) add("host", given.host);
  if (given.port) add("port", std::to_string(*given.port));
  if (!given.path.empty()) add("dbname", given.path);
  if (!options.user.empty()) add("user", options.user);
  else if (given.user) add("user", *given.user);
  if (const auto password = password_of(given, options); !password.empty()) add("password", password);
  for (const auto& [name, text] : given.parameters) add(name, text);
  const postgres_options made{
      .connection_string = words, .connect_timeout = options.connect_timeout, .statement_timeout = options.statement_timeout};
  return [made] { return connect_postgres(made); };
}

/// H2's server has a PostgreSQL port, and libpq talks to it.
connection_factory h2_connector(const url& given, const database_options& options) {
  refuse_unknown_parameters(given, {"write_delay"});
  h2_options made{.database = given.path,
                  .user = !options.user.empty() ? options.user : given.user.value_or("sa"),
                  .password = password_of(given, options),
                  .connect_timeout = options.connect_timeout,
                  .statement_timeout = options.statement_timeout};
  if (!given.host.empty()) made.host = given.host;
  if (given.port) made.port = *given.port;
  if (made.database.empty()) fail("the URL names no database; write h2://user@host:5435/name");
  if (const auto found = given.parameters.find("write_delay"); found != given.parameters.end()) {
    unsigned delay = 0;
    const auto [end, wrong] = std::from_chars(found->second.data(), found->second.data() + found->second.size(), delay);
    if (wrong != std::errc() || end != found->second.data() + found->second.size() || delay > 60'000)
      fail("write_delay must be a number of milliseconds; 0, which is also the default, loses nothing that was acknowledged");
    made.write_delay = std::chrono::milliseconds(delay);
  }
  return [made] { return connect_h2(made); };
}
#endif

#if HOLDFAST_HAS_MYSQL
connection_factory mysql_connector(const url& given, const database_options& options) {
  refuse_unknown_parameters(given, {"socket", "tls", "tls_verify", "tls_ca", "tls_cert", "tls_key", "allow_cleartext_password"});
  const auto text_of = [&given](std::string_view name) {
    const auto found = given.parameters.find(name);
    return found == given.parameters.end() ? std::string() : found->second;
  };
  const auto truth_of = [&](std::string_view name, bool fallback) {
    const auto text = text_of(name);
    if (text.empty()) return fallback;
    if (text != "0" && text != "1") fail("the URL's parameter '" + std::string(name) + "' must be 0 or 1");
    return text == "1";
  };
  mysql_options made;
  made.host = given.host.empty() ? "127.0.0.1" : given.host;
  made.port = given.port.value_or(3306);
  made.socket = text_of("socket");
  made.user = !options.user.empty() ? options.user : given.user.value_or("");
  made.password = password_of(given, options);
  made.database = given.path;
  if (made.database.empty()) fail("the URL names no database; write mysql://user@host/name");
  made.connect_timeout = options.connect_timeout;
  made.statement_timeout = options.statement_timeout;
  // To another machine the connection is encrypted, but nothing says which authority its certificate is from: it is verified where the
  // URL asks for TLS or names the authority. The doctor reports a server that was not verified.
  const bool another_machine = made.socket.empty() && !is_local_host(made.host);
  made.tls = truth_of("tls", another_machine);
  made.tls_ca = text_of("tls_ca");
  made.tls_verify = truth_of("tls_verify", !text_of("tls").empty() || !made.tls_ca.empty());
  made.tls_cert = text_of("tls_cert");
  made.tls_key = text_of("tls_key");
  made.allow_cleartext_password = truth_of("allow_cleartext_password", false);
  return [made] { return connect_mysql(made); };
}
#endif

#if HOLDFAST_HAS_ODBC
/// What follows `odbc:` is the driver manager's, whatever characters it has.
connection_factory odbc_connector(std::string_view text, const database_options& options) {
  if (text.find('=') == std::string_view::npos)
    fail("after odbc: comes a connection string, like odbc:DSN=answers or odbc:Driver=FreeTDS;Server=...");
  // In the string they may stand, too: then they are the driver manager's to read.
  odbc_options made{.connection_string = std::string(text),
                    .user = options.user,
                    .password = odbc::has_password(text) && options.password.empty() ? std::string() : password_of({}, options),
                    .connect_timeout = options.connect_timeout,
                    .statement_timeout = options.statement_timeout};
  auto checked = odbc::complete_connection_string(made);  // what it refuses is refused now, not by the first statement
  wipe(std::as_writable_bytes(std::span(checked)));
  return [made] { return connect_odbc(made); };
}
#endif

[[maybe_unused, noreturn]] void fail_without(const std::string& kind, const std::string& option) {
  fail("this build of Holdfast has no " + kind + "; build it with -DHOLDFAST_WITH_" + option + "=ON");
}

}  // namespace

connection_factory connector(std::string_view text, const database_options& options) {
  if (text.starts_with("odbc:")) {
#if HOLDFAST_HAS_ODBC
    return odbc_connector(text.substr(5), options);
#else
    fail_without("ODBC", "ODBC");
#endif
  }
  const url given = parse_url(text);
  if (given.scheme == "sqlite") {
#if HOLDFAST_HAS_SQLITE
    return sqlite_connector(given, options);
#else
    fail_without("SQLite", "SQLITE");
#endif
  }
  if (given.scheme == "postgresql" || given.scheme == "postgres") {
#if HOLDFAST_HAS_POSTGRES
    return postgres_connector(given, options);
#else
    fail_without("PostgreSQL", "POSTGRES");
#endif
  }
  if (given.scheme == "h2") {
#if HOLDFAST_HAS_POSTGRES
    return h2_connector(given, options);
#else
    fail_without("PostgreSQL, whose client library H2 is reached with", "POSTGRES");
#endif
  }
  if (given.scheme == "mysql" || given.scheme == "mariadb") {
#if HOLDFAST_HAS_MYSQL
    return mysql_connector(given, options);
#else
    fail_without("MySQL", "MYSQL");
#endif
  }
  fail("no database is called '" + given.scheme +
       "'; known: memory:, sqlite:, postgresql://, mysql://, h2://, odbc:, redis://, redis+cluster://");
}

}  // namespace HOLDFAST_NAMESPACE::sql
