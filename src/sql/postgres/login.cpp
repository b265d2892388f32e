#include "sql/postgres/login.hpp"

#include <holdfast/error.hpp>

#include "base/aes_gcm.hpp"
#include "base/local_host.hpp"
#include "base/secret.hpp"
#include "sql/tcp_keepalive.hpp"

#include <libpq-fe.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <span>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::sql::postgres {

namespace {

/// Frees the options and wipes their values, which include the password.
struct free_options {
  void operator()(PQconninfoOption* list) const noexcept {
    for (auto* option = list; option != nullptr && option->keyword != nullptr; ++option) {
      if (option->val != nullptr)
        wipe(std::as_writable_bytes(std::span(option->val, std::strlen(option->val))));
    }
    PQconninfoFree(list);
  }
};
using option_list = std::unique_ptr<PQconninfoOption, free_options>;

/// Returns an empty text if the option is not set.
std::string_view value_of(const option_list& list, std::string_view keyword) {
  for (const auto* option = list.get(); option != nullptr && option->keyword != nullptr; ++option)
    if (option->keyword == keyword && option->val != nullptr) return option->val;
  return {};
}

struct finish_connection {
  void operator()(PGconn* connection) const noexcept { PQfinish(connection); }
};

/// The options that libpq would connect with: the string, completed from the environment, the
/// service file and libpq's defaults. Does not connect: libpq refuses port 0 before it resolves the
/// host.
option_list resolve_options(const std::string& connection_string) {
  constexpr std::array<const char*, 3> keywords{"dbname", "port", nullptr};
  const std::array<const char*, 3> values{connection_string.c_str(), "0", nullptr};
  const std::unique_ptr<PGconn, finish_connection> probe(
      PQconnectStartParams(keywords.data(), values.data(), 1));
  option_list options(probe ? PQconninfo(probe.get()) : nullptr);
  if (!options) throw std::bad_alloc();
  return options;
}

/// Removes the first element from a comma-separated list and returns it.
std::string_view pop_element(std::string_view& list) {
  const auto comma = list.find(',');
  const auto element = list.substr(0, comma);
  list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
  return element;
}

/// Whether every host that libpq may connect to is this machine. An address replaces the host name
/// at the same position.
bool all_hosts_are_local(std::string_view hosts, std::string_view addresses) {
  do {
    const auto host = pop_element(hosts);
    const auto address = pop_element(addresses);
    if (!is_local_host(address.empty() ? host : address)) return false;
  } while (!hosts.empty() || !addresses.empty());
  return true;
}

/// libpq's default, sslmode=prefer, sends the password unencrypted if the server, or an attacker on
/// the way, claims that TLS is not available.
bool needs_tls_by_default(const option_list& parsed, const option_list& resolved) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): libpq also reads the environment
  if (!value_of(parsed, "sslmode").empty() || std::getenv("PGSSLMODE") != nullptr) return false;
  return value_of(resolved, "sslmode") == "prefer" &&
         !all_hosts_are_local(value_of(resolved, "host"), value_of(resolved, "hostaddr"));
}

/// libpq reads a colon in sslkey as `engine:key`, even if a file of that name exists, and OpenSSL
/// loads the library of the engine, whose name may be a path. libpq 18 writes the secrets of TLS
/// sessions to sslkeylogfile.
void refuse_engine_and_key_log(const option_list& resolved) {
  const auto key = value_of(resolved, "sslkey");
  // NOLINTNEXTLINE(concurrency-mt-unsafe): libpq also reads the environment
  const char* const key_of_environment = std::getenv("PGSSLKEY");
  if (key.find(':') != std::string_view::npos &&
      (key_of_environment == nullptr || key != key_of_environment)) {
    throw error(errc::invalid_argument,
                "sslkey of the PostgreSQL connection has a colon: libpq would load an OpenSSL "
                "engine into this process; name a key file without a colon, or set the engine in "
                "the environment variable PGSSLKEY",
                {.path = "url"});
  }
  if (!value_of(resolved, "sslkeylogfile").empty()) {
    throw error(errc::invalid_argument,
                "sslkeylogfile of the PostgreSQL connection would write the secrets of TLS to a "
                "file; remove it",
                {.path = "url"});
  }
}

/// Whether libpq finds a file of authorities. Then it verifies the certificate also with
/// sslmode=require.
bool has_root_certificate(std::string_view file) {
  std::error_code ignored;
  if (!file.empty()) return std::filesystem::exists(file, ignored);
  // NOLINTNEXTLINE(concurrency-mt-unsafe): libpq also reads the environment
  const char* const home = std::getenv("HOME");
  return home != nullptr &&
         std::filesystem::exists(std::filesystem::path(home) / ".postgresql/root.crt", ignored);
}

// libpq's own message would repeat the part that it cannot parse, which may be half a password.
[[noreturn]] void refuse_connection_string() {
  throw error(errc::invalid_argument,
              "the PostgreSQL connection string cannot be read; write "
              "postgresql://user:password@host:port/database?sslmode=require with "
              "parameters that libpq knows, and percent-encode special characters (@ is %40, / is "
              "%2F, : is %3A, % is %25)");
}

/// A password with an unescaped @ or / shifts the parts of a URI: libpq would take the rest of the
/// password for a host and show it in a message.
bool is_ambiguous(std::string_view uri) {
  const auto scheme = uri.find("://");
  if (!uri.starts_with("postgres") || scheme == std::string_view::npos) return false;
  const auto rest = uri.substr(scheme + 3, uri.find('?') - (scheme + 3));
  const auto slash = std::min(rest.find('/'), rest.size());
  const auto authority = rest.substr(0, slash);
  return std::ranges::count(authority, '@') > 1 ||
         rest.substr(slash).find('@') != std::string_view::npos;
}

option_list parse_options(const std::string& connection_string) {
  if (connection_string.find('\0') != std::string::npos || is_ambiguous(connection_string))
    refuse_connection_string();
  char* complaint = nullptr;
  option_list parsed(PQconninfoParse(connection_string.c_str(), &complaint));
  PQfreemem(complaint);
  if (!parsed ||
      value_of(parsed, "port").find_first_not_of("0123456789,") != std::string_view::npos)
    refuse_connection_string();
  return parsed;
}

std::vector<std::string> elements_of(std::string_view list) {
  std::vector<std::string> elements;
  if (list.empty()) return elements;
  const auto count = std::ranges::count(list, ',') + 1;
  for (std::ptrdiff_t i = 0; i < count; ++i) elements.emplace_back(pop_element(list));
  return elements;
}

/// target_session_attrs, if the caller or the environment chooses it; otherwise empty.
std::string_view chosen_session_attributes(const option_list& parsed, const option_list& resolved) {
  constexpr const char* keyword = "target_session_attrs";
  // NOLINTNEXTLINE(concurrency-mt-unsafe): libpq also reads the environment
  const bool in_environment = std::getenv("PGTARGETSESSIONATTRS") != nullptr;
  const auto value = value_of(resolved, keyword);
  const bool chosen = !value_of(parsed, keyword).empty() || in_environment || value != "any";
  return chosen ? value : std::string_view();
}

/// The hosts that the caller wrote. libpq itself tries several hosts without a limit for each, so
/// it gets one at a time.
std::vector<target> targets_of(const option_list& parsed, std::string_view session_attributes) {
  const auto hosts = elements_of(value_of(parsed, "host"));
  const auto addresses = elements_of(value_of(parsed, "hostaddr"));
  const auto ports = elements_of(value_of(parsed, "port"));
  const auto count = std::max(hosts.size(), addresses.size());
  const auto names_each = [count](const std::vector<std::string>& list) {
    return list.empty() ||
           (list.size() == count && std::ranges::none_of(list, &std::string::empty));
  };
  // libpq explains lists of different lengths. It cannot replace a part by an empty text.
  const bool one_attempt = count < 2 || session_attributes == "prefer-standby" ||
                           !names_each(hosts) || !names_each(addresses) ||
                           (ports.size() > 1 && ports.size() != count);
  std::vector<target> targets(one_attempt ? 1 : count);
  if (one_attempt) return targets;
  for (std::size_t i = 0; i < count; ++i) {
    auto& each = targets[i];
    if (!hosts.empty()) each.host = hosts[i];
    if (!addresses.empty()) each.address = addresses[i];
    if (!ports.empty()) each.port = ports.size() == 1 ? ports.front() : ports[i];
    if (!ports.empty() && each.port.empty()) each.port = "5432";
    each.must_accept_writes = session_attributes.empty();
  }
  return targets;
}

/// As libpq reads it, where 0 is no limit of its own.
std::optional<std::chrono::milliseconds> timeout_of(const option_list& resolved) {
  const auto text = value_of(resolved, "connect_timeout");
  if (text.empty()) return std::nullopt;
  int seconds = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (problem != std::errc() || end != text.data() + text.size())
    throw error(errc::invalid_argument,
                "connect_timeout of the PostgreSQL connection must be a number of seconds, as in "
                "connect_timeout=2",
                {.path = "url"});
  if (seconds <= 0) return std::nullopt;
  return std::min<std::chrono::milliseconds>(std::chrono::seconds(seconds), std::chrono::hours(24));
}

/// The value of the startup parameter `options`. Later settings win: the caller may replace all of
/// them but the time zone, which decides how a column without a zone is read.
///
/// A prepared statement that looks up rows by their key keeps its plan. If it was made for an empty
/// table, it would read the whole table even when that has grown, so sequential scans are avoided
/// where an index exists. The planner expresses that with costs that would start the JIT compiler.
std::string server_settings(const postgres_options& options, const option_list& parsed) {
  auto callers = value_of(parsed, "options");
  const option_list defaults(callers.empty() ? PQconndefaults() : nullptr);
  if (callers.empty()) callers = value_of(defaults, "options");
  const auto limit = std::min<std::int64_t>((options.statement_timeout + server_margin).count(),
                                            std::numeric_limits<int>::max());
  return "-c statement_timeout=" + std::to_string(limit) +
         " -c enable_seqscan=off -c jit=off -c default_transaction_isolation=read\\ committed " +
         std::string(callers) + " -c TimeZone=UTC";
}

/// Adds the settings with which the system notices that an idle connection is dead, unless the
/// caller has chosen any of them.
void add_keepalive(std::vector<std::pair<const char*, std::string>>& settings,
                   const option_list& resolved, std::chrono::milliseconds idle) {
  constexpr std::array keywords{"keepalives", "keepalives_idle", "keepalives_interval",
                                "keepalives_count", "tcp_user_timeout"};
  const bool chosen = std::ranges::any_of(
      keywords, [&](const char* keyword) { return !value_of(resolved, keyword).empty(); });
  if (idle.count() <= 0 || chosen) return;
  const tcp_keepalive probes(idle);
  settings.emplace_back("keepalives_idle", std::to_string(probes.idle.count()));
  settings.emplace_back("keepalives_interval", std::to_string(probes.interval.count()));
  settings.emplace_back("keepalives_count", std::to_string(probes.count));
  settings.emplace_back("tcp_user_timeout", std::to_string(probes.longest_silence().count()));
}

}  // namespace

std::string quoted_value(std::string_view text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') result += '\\';
    result += c;
  }
  return result + "'";
}

conninfo::conninfo(std::vector<std::pair<const char*, std::string>> settings, bool tls_by_default)
    : settings_(std::move(settings)), tls_by_default_(tls_by_default) {
  for (const auto& [keyword, value] : settings_) {
    keywords_.push_back(keyword);
    values_.push_back(value.c_str());
  }
  keywords_.push_back(nullptr);
  values_.push_back(nullptr);
}

conninfo::~conninfo() {
  for (auto& [keyword, value] : settings_) wipe(value);
}

connect_plan plan_connect(const std::string& connection_string) {
  const auto parsed = parse_options(connection_string);
  const auto resolved = resolve_options(connection_string);
  connect_plan plan{.timeout = timeout_of(resolved)};
  plan.targets = targets_of(parsed, chosen_session_attributes(parsed, resolved));
  for (const auto& each : plan.targets)
    plan.addresses.push_back(each.host + "|" + each.address + "|" + each.port);
  return plan;
}

conninfo start_parameters(const postgres_options& options, const target& server) {
  const auto& connection_string = options.connection_string;
  const auto parsed = parse_options(connection_string);
  // libpq expands a connection string in `dbname`, and the keywords after it replace its parts.
  // Not an initializer list: copies of the password would remain in it.
  std::vector<std::pair<const char*, std::string>> settings;
  settings.reserve(13);
  settings.emplace_back("dbname", connection_string);
  settings.emplace_back("fallback_application_name", "holdfast");
  settings.emplace_back("client_encoding", "UTF8");
  settings.emplace_back("options", server_settings(options, parsed));
  const auto resolved = resolve_options(connection_string);
  refuse_engine_and_key_log(resolved);
  add_keepalive(settings, resolved, options.keepalive);
  const bool tls_by_default = needs_tls_by_default(parsed, resolved);
  if (tls_by_default) settings.emplace_back("sslmode", "require");
  const auto choose = [&settings](const char* keyword, const std::string& value) {
    if (!value.empty()) settings.emplace_back(keyword, value);
  };
  choose("host", server.host);
  choose("hostaddr", server.address);
  choose("port", server.port);
  if (server.must_accept_writes) settings.emplace_back("target_session_attrs", "read-write");
  return {std::move(settings), tls_by_default};
}

transport_kind transport_of(pg_conn* connection) {
  const option_list options(PQconninfo(connection));
  if (!options) throw std::bad_alloc();
  // The host name decides, unless the caller wrote an address.
  const std::string_view host =
      value_of(options, "hostaddr").empty() ? PQhost(connection) : PQhostaddr(connection);
  if (is_local_host(host)) return transport_kind::local;
  if (PQgssEncInUse(connection) != 0) return transport_kind::verified;
  if (PQsslInUse(connection) == 0) return transport_kind::plaintext;
  const auto mode = value_of(options, "sslmode");
  const bool verified =
      mode.starts_with("verify-") ||
      (mode == "require" && has_root_certificate(value_of(options, "sslrootcert")));
  return verified ? transport_kind::verified : transport_kind::encrypted;
}

}  // namespace HOLDFAST_NAMESPACE::detail::sql::postgres
