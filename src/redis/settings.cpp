#include "redis/settings.hpp"

#include "base/schemes.hpp"
#include "base/secret.hpp"
#include "base/url.hpp"
#include "redis/address.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <optional>

namespace HOLDFAST_NAMESPACE::redis {

namespace {

constexpr unsigned default_port = 6379;
constexpr std::size_t most_connections = 65'536;  // room for them is taken at once

[[noreturn]] void fail(const std::string& message) { throw error(errc::invalid_argument, message, {.path = "url"}); }

unsigned database_of(std::string_view text) {
  unsigned number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc{} || end != text.data() + text.size() || number > 1'000'000)
    fail("the URL's database must be a number, like redis://host/0");
  return number;
}

/// The hosts of `scheme://user@a:1,b:2/path`, and the URL with the first of them alone.
struct hosts {
  std::string url;
  std::vector<std::string_view> all{};
};

hosts split_hosts(std::string_view url) {
  hosts result{.url = std::string(url)};
  const auto scheme = url.find("://");
  if (scheme == std::string_view::npos) return result;
  const auto begin = scheme + 3;
  const auto authority = url.substr(begin, url.substr(begin).find_first_of("/?"));
  const auto at = authority.rfind('@');
  const auto first = at == std::string_view::npos ? 0 : at + 1;
  std::string_view list = authority.substr(first);
  const auto after = url.substr(begin + authority.size());
  for (;;) {
    const auto comma = list.find(',');
    result.all.push_back(list.substr(0, comma));
    if (comma == std::string_view::npos) break;
    list.remove_prefix(comma + 1);
  }
  result.url = std::string(url.substr(0, begin + first)).append(result.all.front()).append(after);
  return result;
}

std::string seed_of(std::string_view text) {
  if (!text.starts_with('[') && std::count(text.begin(), text.end(), ':') > 1)
    fail("an IPv6 address in a URL has brackets, like redis://[::1]:6379");
  const auto one = parse_url("redis://" + std::string(text));
  return (one.host.empty() ? "127.0.0.1" : one.host) + ':' + std::to_string(one.port.value_or(default_port));
}

/// Nothing when none was given; an empty one in the URL is a password, for users that need none (nopass).
std::optional<std::string> password_of(const url& given, const options& how) {
  if (!how.password.empty()) return how.password;
  if (given.password) return given.password;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody changes the environment while clients are made
  if (const char* set = std::getenv("HOLDFAST_REDIS_PASSWORD"); set != nullptr && *set != '\0') return std::string(set);
  if (how.password_file.empty()) return std::nullopt;
  return read_password_file(how.password_file);
}

/// Takes the parameters that are known and refuses the others.
void read_parameters(const url& given, settings& into, std::optional<unsigned>& database) {
  auto& tls = into.how.tls;
  for (const auto& [name, text] : given.parameters) {
    if (name == "db") {
      database = database_of(text);
      continue;
    }
    if (!name.starts_with("tls_"))
      fail("the URL's parameter '" + name + "' is not known; known: db, tls_ca, tls_cert, tls_key, tls_verify, tls_name");
    if (!into.tls) fail("the URL's parameter '" + name + "' needs TLS; write rediss:// or rediss+cluster://");
    if (name == "tls_ca") tls.ca = text;
    else if (name == "tls_cert") tls.certificate = text;
    else if (name == "tls_key") tls.key = text;
    else if (name == "tls_name") tls.server_name = text;
    else if (name == "tls_verify" && (text == "0" || text == "1")) tls.verify = text == "1";
    else if (name == "tls_verify") fail("the URL's parameter 'tls_verify' must be 0 or 1");
    else fail("the URL's parameter '" + name + "' is not known; known: db, tls_ca, tls_cert, tls_key, tls_verify, tls_name");
  }
}

void check(const options& how) {
  const auto refuse = [](const std::string& what) { throw error(errc::invalid_argument, what, {.path = "options"}); };
  if (how.connections == 0) refuse("a client needs room for at least 1 connection to each node");
  if (how.connections > most_connections) refuse("a client has at most " + std::to_string(most_connections) + " connections to each node");
  if (how.attempts == 0) refuse("a command needs at least 1 attempt");
  if (how.connect_timeout.count() <= 0 || how.timeout.count() <= 0) refuse("the time limits must be more than nothing");
  if (how.max_reply == 0) refuse("max_reply must be more than nothing");
}

}  // namespace

settings read_settings(std::string_view text, options how) {
  check_scheme(text);
  check(how);
  settings result;
  result.how = std::move(how);
  result.how.timeout = bounded(result.how.timeout);
  result.how.connect_timeout = bounded(result.how.connect_timeout);
  const auto named = split_hosts(text);
  const url given = parse_url(named.url);
  const auto& scheme = given.scheme;
  if (scheme.find("sentinel") != std::string::npos)
    fail("Redis Sentinel is not supported; give the address of the master as redis://host:port, or use a Cluster");
  result.cluster = scheme == "redis+cluster" || scheme == "rediss+cluster";
  result.tls = scheme == "rediss" || scheme == "rediss+cluster";
  const bool path = scheme == "redis+unix" || scheme == "unix";
  if (scheme != "redis" && !result.cluster && !result.tls && !path)
    fail("no Redis is called '" + scheme + "'; known: redis://, rediss://, redis+unix://, redis+cluster://, rediss+cluster://");
  if (!given.has_authority) fail("write // behind " + scheme + ":, like " + scheme + "://127.0.0.1:6379");

  std::optional<unsigned> database;
  read_parameters(given, result, database);
  if (path) {
    if (!given.host.empty() || given.path.empty()) fail("a socket is written with three slashes: redis+unix:///run/redis/redis.sock?db=0");
    result.seeds.push_back("/" + given.path);
  } else {
    if (!given.path.empty()) {
      if (database) fail("the URL names its database twice, in its path and as db");
      database = database_of(given.path);
    }
    if (named.all.size() > 1 && !result.cluster) fail("several hosts are for a Cluster: write redis+cluster://, or name one host");
    if (named.all.size() > 1 && std::any_of(named.all.begin(), named.all.end(), [](auto each) { return each.empty(); }))
      fail("the URL's list of hosts has a comma too many");
    for (const auto each : named.all) result.seeds.push_back(seed_of(each));
  }
  result.database = database.value_or(0);
  if (result.cluster && result.database != 0) fail("a Cluster has only the database 0");
  if (result.how.user.empty()) result.how.user = given.user.value_or("");
  const auto password = password_of(given, result.how);
  // The user is not repeated: it may be the password.
  if (!result.how.user.empty() && !password)
    fail(
        "the URL names a user and no password; write redis://user:password@host, redis://:password@host without a user, or "
        "redis://user:@host for an empty password, or set the variable HOLDFAST_REDIS_PASSWORD");
  result.how.password = password.value_or("");
  return result;
}

}  // namespace HOLDFAST_NAMESPACE::redis
