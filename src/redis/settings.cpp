#include "redis/settings.hpp"

#include "base/duration_limit.hpp"
#include "base/schemes.hpp"
#include "base/secret.hpp"
#include "base/url.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>

namespace HOLDFAST_NAMESPACE::detail::redis {

namespace {

constexpr unsigned default_port = 6379;
constexpr unsigned default_sentinel_port = 26379;
constexpr std::size_t max_connections = 65'536;  // a pool reserves memory for all of them

[[noreturn]] void throw_bad_url(const std::string& message) {
  throw error(errc::invalid_argument, message, {.path = "url"});
}

[[noreturn]] void throw_unknown_parameter(const std::string& name) {
  throw_bad_url("the URL's parameter '" + name +
                "' is not known; known: db, tls_ca, tls_cert, tls_key, tls_verify, tls_name");
}

void check_options(const holdfast::redis::options& options) {
  const auto refuse = [](const std::string& message) {
    throw error(errc::invalid_argument, message, {.path = "options"});
  };
  if (options.connections == 0) refuse("connections must be at least 1");
  if (options.connections > max_connections)
    refuse("connections must be at most " + std::to_string(max_connections));
  if (options.attempts == 0) refuse("attempts must be at least 1");
  if (options.connect_timeout.count() <= 0 || options.timeout.count() <= 0)
    refuse("connect_timeout and timeout must be positive");
  if (options.max_reply == 0) refuse("max_reply must be positive");
}

unsigned parse_database(std::string_view text) {
  unsigned number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc{} || end != text.data() + text.size() || number > 1'000'000)
    throw_bad_url("the URL's database must be a number, like redis://host/0");
  return number;
}

/// The hosts of `scheme://user@a:1,b:2/path`, and the same URL with only the first of them.
struct host_list {
  std::string first_host_url;
  std::vector<std::string_view> hosts{};
};

host_list split_hosts(std::string_view url) {
  host_list result{.first_host_url = std::string(url)};
  const auto scheme = url.find("://");
  if (scheme == std::string_view::npos) return result;
  const auto authority_begin = scheme + 3;
  const auto authority =
      url.substr(authority_begin, url.substr(authority_begin).find_first_of("/?"));
  const auto at_sign = authority.rfind('@');
  const auto hosts_begin = at_sign == std::string_view::npos ? 0 : at_sign + 1;
  std::string_view remaining = authority.substr(hosts_begin);
  for (;;) {
    const auto comma = remaining.find(',');
    result.hosts.push_back(remaining.substr(0, comma));
    if (comma == std::string_view::npos) break;
    remaining.remove_prefix(comma + 1);
  }
  result.first_host_url = std::string(url.substr(0, authority_begin + hosts_begin))
                              .append(result.hosts.front())
                              .append(url.substr(authority_begin + authority.size()));
  return result;
}

/// Returns `host:port`.
std::string complete_address(std::string_view host, unsigned port) {
  if (!host.starts_with('[') && std::count(host.begin(), host.end(), ':') > 1)
    throw_bad_url("an IPv6 address in a URL needs brackets, like redis://[::1]:6379");
  const auto parsed = parse_url("redis://" + std::string(host));
  return (parsed.host.empty() ? "127.0.0.1" : parsed.host) + ':' +
         std::to_string(parsed.port.value_or(port));
}

std::vector<std::string> complete_addresses(const std::vector<std::string_view>& hosts,
                                            unsigned port) {
  if (hosts.size() > 1 && std::ranges::any_of(hosts, &std::string_view::empty))
    throw_bad_url("the URL's list of hosts has a comma too many");
  std::vector<std::string> addresses;
  addresses.reserve(hosts.size());
  for (const auto host : hosts) addresses.push_back(complete_address(host, port));
  return addresses;
}

/// Returns nothing if there is no password. An empty password in the URL counts as one, for users
/// that need none (nopass).
std::optional<std::string> find_password(const url& parsed,
                                         const holdfast::redis::options& options) {
  if (!options.password.empty()) return options.password;
  if (parsed.password) return parsed.password;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): the environment does not change at this time
  const char* variable = std::getenv("HOLDFAST_REDIS_PASSWORD");
  if (variable != nullptr && *variable != '\0') return std::string(variable);
  if (options.password_file.empty()) return std::nullopt;
  return read_password_file(options.password_file);
}

/// Sentinels have users of their own, and often none.
void read_sentinel_password(holdfast::redis::options& options) {
  if (!options.sentinel_password.empty()) return;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): the environment does not change at this time
  const char* variable = std::getenv("HOLDFAST_REDIS_SENTINEL_PASSWORD");
  if (variable != nullptr) options.sentinel_password = variable;
}

void fill_credentials(const url& parsed, holdfast::redis::options& options) {
  if (options.user.empty()) options.user = parsed.user.value_or("");
  const auto password = find_password(parsed, options);
  // The message does not repeat the user: it may be the password.
  if (!options.user.empty() && !password)
    throw_bad_url(
        "the URL names a user and no password; write redis://user:password@host, "
        "redis://:password@host without a user, or redis://user:@host for an empty password, or "
        "set the variable HOLDFAST_REDIS_PASSWORD");
  options.password = password.value_or("");
}

enum class server_kind : std::uint8_t { standalone, unix_socket, cluster, sentinel };

/// Sets cluster, tls and role.
server_kind read_scheme(const url& parsed, settings& result) {
  const auto& scheme = parsed.scheme;
  result.tls = scheme.starts_with("rediss");
  if (scheme == "redis" || scheme == "rediss") return server_kind::standalone;
  if (scheme == "redis+unix" || scheme == "unix") return server_kind::unix_socket;
  if (scheme == "redis+cluster" || scheme == "rediss+cluster") {
    result.cluster = true;
    result.role = expected_role::any;
    return server_kind::cluster;
  }
  if (scheme == "redis+sentinel" || scheme == "rediss+sentinel") {
    result.role = expected_role::master;
    return server_kind::sentinel;
  }
  throw_bad_url("the scheme '" + scheme +
                "' is not one of Redis; known: redis://, rediss://, redis+unix://, "
                "redis+cluster://, rediss+cluster://, redis+sentinel://, rediss+sentinel://");
}

/// Returns the name of the master in the path of a URL of Sentinels.
std::string read_master_name(const url& parsed) {
  if (parsed.path.empty())
    throw_bad_url("a URL of Sentinels names the master that they monitor, like " + parsed.scheme +
                  "://host1,host2/mymaster");
  if (parsed.path.find('/') != std::string::npos)
    throw_bad_url(
        "a URL of Sentinels has only the name of the master in its path; write the number of the "
        "database as ?db=1");
  return parsed.path;
}

/// Sets the TLS options. Returns the parameter `db`.
std::optional<unsigned> read_parameters(const url& parsed, settings& result) {
  std::optional<unsigned> database;
  auto& tls = result.options.tls;
  for (const auto& [name, value] : parsed.parameters) {
    if (name == "db") {
      database = parse_database(value);
      continue;
    }
    if (!name.starts_with("tls_")) throw_unknown_parameter(name);
    if (!result.tls)
      throw_bad_url("the URL's parameter '" + name +
                    "' needs TLS; write rediss://, rediss+cluster:// or rediss+sentinel://");
    if (name == "tls_ca") tls.ca = value;
    else if (name == "tls_cert") tls.certificate = value;
    else if (name == "tls_key") tls.key = value;
    else if (name == "tls_name") tls.server_name = value;
    else if (name != "tls_verify") throw_unknown_parameter(name);
    else if (value == "0" || value == "1") tls.verify = value == "1";
    else throw_bad_url("the URL's parameter 'tls_verify' must be 0 or 1");
  }
  return database;
}

}  // namespace

settings read_settings(std::string_view text, holdfast::redis::options options) {
  check_scheme(text);
  check_options(options);
  settings result{.options = std::move(options)};
  result.options.timeout = limit_duration(result.options.timeout);
  result.options.connect_timeout = limit_duration(result.options.connect_timeout);

  const auto split = split_hosts(text);
  const url parsed = parse_url(split.first_host_url);
  const server_kind kind = read_scheme(parsed, result);
  if (!parsed.has_authority)
    throw_bad_url("write // after " + parsed.scheme + ":, like " + parsed.scheme +
                  "://127.0.0.1:6379");
  std::optional<unsigned> database = read_parameters(parsed, result);
  if (kind == server_kind::sentinel) {
    result.master_name = read_master_name(parsed);
    result.addresses = complete_addresses(split.hosts, default_sentinel_port);
    read_sentinel_password(result.options);
  } else if (kind == server_kind::unix_socket) {
    if (!parsed.host.empty() || parsed.path.empty())
      throw_bad_url(
          "a socket is written with three slashes: redis+unix:///run/redis/redis.sock?db=0");
    result.addresses.push_back("/" + parsed.path);
  } else {
    if (!parsed.path.empty()) {
      if (database) throw_bad_url("the URL names its database twice, in its path and as db");
      database = parse_database(parsed.path);
    }
    result.addresses = complete_addresses(split.hosts, default_port);
    // Of several addresses the client uses the one whose server is a master.
    if (kind == server_kind::standalone && result.addresses.size() > 1)
      result.role = expected_role::master;
  }
  result.database = database.value_or(0);
  if (result.cluster && result.database != 0) throw_bad_url("a Cluster has only the database 0");
  fill_credentials(parsed, result.options);
  return result;
}

settings sentinel_settings(const settings& configured) {
  settings result = configured;
  result.role = expected_role::sentinel;
  result.database = 0;
  result.options.user = configured.options.sentinel_user;
  result.options.password = configured.options.sentinel_password;
  // One thread at a time asks. Its question may still wait for an answer when the next one is sent.
  result.options.connections = 2;
  return result;
}

}  // namespace HOLDFAST_NAMESPACE::detail::redis
