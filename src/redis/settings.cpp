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
std::string complete_address(std::string_view host) {
  if (!host.starts_with('[') && std::count(host.begin(), host.end(), ':') > 1)
    throw_bad_url("an IPv6 address in a URL needs brackets, like redis://[::1]:6379");
  const auto parsed = parse_url("redis://" + std::string(host));
  return (parsed.host.empty() ? "127.0.0.1" : parsed.host) + ':' +
         std::to_string(parsed.port.value_or(default_port));
}

std::vector<std::string> complete_addresses(const std::vector<std::string_view>& hosts,
                                            bool cluster) {
  if (hosts.size() > 1 && !cluster)
    throw_bad_url("several hosts are for a Cluster: write redis+cluster://, or name one host");
  if (hosts.size() > 1 && std::ranges::any_of(hosts, &std::string_view::empty))
    throw_bad_url("the URL's list of hosts has a comma too many");
  std::vector<std::string> addresses;
  addresses.reserve(hosts.size());
  for (const auto host : hosts) addresses.push_back(complete_address(host));
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

/// Sets cluster and tls. Returns true if the URL names a Unix socket.
bool read_scheme(const url& parsed, settings& result) {
  const auto& scheme = parsed.scheme;
  if (scheme.find("sentinel") != std::string::npos)
    throw_bad_url(
        "Redis Sentinel is not supported; give the address of the master as redis://host:port, or "
        "use a Cluster");
  result.cluster = scheme == "redis+cluster" || scheme == "rediss+cluster";
  result.tls = scheme == "rediss" || scheme == "rediss+cluster";
  const bool unix_socket = scheme == "redis+unix" || scheme == "unix";
  if (scheme != "redis" && !result.cluster && !result.tls && !unix_socket)
    throw_bad_url(
        "the scheme '" + scheme +
        "' is not one of Redis; known: redis://, rediss://, redis+unix://, redis+cluster://, "
        "rediss+cluster://");
  if (!parsed.has_authority)
    throw_bad_url("write // after " + scheme + ":, like " + scheme + "://127.0.0.1:6379");
  return unix_socket;
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
                    "' needs TLS; write rediss:// or rediss+cluster://");
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
  const bool unix_socket = read_scheme(parsed, result);
  std::optional<unsigned> database = read_parameters(parsed, result);
  if (unix_socket) {
    if (!parsed.host.empty() || parsed.path.empty())
      throw_bad_url(
          "a socket is written with three slashes: redis+unix:///run/redis/redis.sock?db=0");
    result.addresses.push_back("/" + parsed.path);
  } else {
    if (!parsed.path.empty()) {
      if (database) throw_bad_url("the URL names its database twice, in its path and as db");
      database = parse_database(parsed.path);
    }
    result.addresses = complete_addresses(split.hosts, result.cluster);
  }
  result.database = database.value_or(0);
  if (result.cluster && result.database != 0) throw_bad_url("a Cluster has only the database 0");
  fill_credentials(parsed, result.options);
  return result;
}

}  // namespace HOLDFAST_NAMESPACE::detail::redis
