#include "serve/config/gateway_config.hpp"

#include <holdfast/error.hpp>

#include "http/syntax.hpp"
#include "serve/config/server_config.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve::config {

namespace {

using gateway::route;

constexpr std::string_view routes_section = "gateway.routes";

void make_lower(std::string& text) { std::ranges::transform(text, text.begin(), http::to_lower); }

/// Fields that a route cannot vary by, because they are not forwarded as they are.
constexpr std::array<std::string_view, 6> unusable_fields = {
    "host", "connection", "range", "if-none-match", "if-modified-since", "content-length"};

/// Reads one route.
class route_reader {
 public:
  route_reader(const config_values& values, std::vector<problem>& problems, std::string name,
               std::size_t line)
      : values_(values), problems_(problems), line_(line) {
    result.name = std::move(name);
    read_matching();
    read_rules();
  }

  route result{};

 private:
  [[nodiscard]] static std::string key(std::string_view name) {
    return "gateway.routes.*." + std::string(name);
  }
  void refuse(std::string_view name, const std::string& text) {
    const auto at_key = values_.line(key(name), result.name);
    problems_.push_back(
        {.line = at_key != 0 ? at_key : line_,
         .text = "gateway.routes." + result.name + "." + std::string(name) + ": " + text});
  }

  void read_matching() {
    values_.read(result.path, key("path"), result.name);
    if (!result.path.starts_with('/')) refuse("path", "begins with a slash");
    else if (result.path.find_first_of("?#") != std::string::npos ||
             (result.path + "/").find("/../") != std::string::npos ||
             (result.path + "/").find("/./") != std::string::npos)
      refuse("path", "matches no target: it has no query, and no '.' or '..' as a segment");
    values_.read(result.host, key("host"), result.name);
    make_lower(result.host);
    values_.read(result.upstreams, key("upstream"), result.name);
    if (result.upstreams.empty()) refuse("upstream", "a route needs a server: http://host:port");
    constexpr std::size_t most_servers = 32;
    if (result.upstreams.size() > most_servers) refuse("upstream", "at most 32 servers");
    values_.read(result.vary, key("vary"), result.name);
    for (auto& field : result.vary) {
      make_lower(field);
      if (!http::is_token(field) || field == "*")
        refuse("vary", "'" + field + "' is not the name of a field");
      else if (std::ranges::find(unusable_fields, field) != unusable_fields.end())
        refuse("vary", "'" + field + "' cannot be part of the key");
    }
    values_.read(result.ignored_parameters, key("query-ignore"), result.name);
    result.forward_host = values_.choice(key("host-header"), result.name) == 1;
  }

  void read_rules() {
    std::vector<std::string> texts;
    values_.read(texts, key("failures"), result.name);
    for (const auto& text : texts) read_failure(text);
    texts.clear();
    values_.read(texts, key("serve-despite"), result.name);
    for (const auto& text : texts) read_override(text);
    result.keep_superseded = values_.choice(key("superseded"), result.name) == 1;
    result.obey_request_no_cache = values_.choice(key("request-no-cache"), result.name) == 1;
    values_.read(result.hold, key("hold"), result.name);
    values_.read(result.max_payload, key("max-payload"), result.name);
    values_.read(result.max_expiry, key("max-expiry"), result.name);
    values_.read(result.other_deadline, key("other-deadline"), result.name);
    if (const auto index = values_.choice(key("tell"), result.name))
      result.audience = static_cast<gateway::status_audience>(*index);
    values_.read(result.legacy_warning, key("legacy-warning"), result.name);
  }

  void read_failure(const std::string& text) {
    int status = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), status);
    if (parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size() || status < 400 ||
        status > 599)
      refuse("failures", "'" + text + "' is not a status from 400 to 599");
    else result.failures.push_back(status);
  }

  void read_override(const std::string& directive) {
    auto& overridden = result.overridden;
    if (directive == "must-revalidate") overridden.must_revalidate = true;
    else if (directive == "proxy-revalidate") overridden.proxy_revalidate = true;
    else if (directive == "no-cache") overridden.no_cache = true;
    else if (directive == "s-maxage") overridden.s_maxage = true;
    else
      refuse("serve-despite", "'" + directive +
                                  "' is not one of must-revalidate, proxy-revalidate, no-cache, "
                                  "s-maxage");
  }

  const config_values& values_;
  std::vector<problem>& problems_;
  std::size_t line_;
};

/// Refuses the last route if an earlier one takes the same requests.
void refuse_twin(const std::vector<gateway::route>& routes, std::size_t line,
                 std::vector<problem>& problems) {
  const auto without_slash = [](std::string_view path) {
    return path.ends_with('/') ? path.substr(0, path.size() - 1) : path;
  };
  const auto& added = routes.back();
  const auto twin = std::find_if(routes.begin(), routes.end() - 1, [&](const auto& other) {
    return other.host == added.host && without_slash(other.path) == without_slash(added.path);
  });
  if (twin != routes.end() - 1)
    problems.push_back({.line = line,
                        .text = "gateway.routes." + added.name + ": has the path and host of " +
                                twin->name + "; give it another, or remove one of the two"});
}

}  // namespace

std::optional<gateway_config> read_gateway(const config_values& values,
                                           std::vector<problem>& problems) {
  if (values.names_below(routes_section).empty()) {
    for (const auto& key : known_keys()) {
      if (key.name.starts_with("gateway.") && values.line(key.name) != 0) {
        problems.push_back({.line = values.line(key.name),
                            .text = "gateway: has no route; configure [gateway.routes.NAME]"});
        break;
      }
    }
    return std::nullopt;
  }
  gateway_config result;
  values.read(result.listen, "gateway.listen");
  for (auto& address : result.listen) address = socket_address(std::move(address));
  check_addresses(values, problems, "gateway.listen", result.listen);
  values.read(result.allow_plain, "gateway.allow-plain");
  values.read(result.tls.certificate, "gateway.tls.certificate");
  values.read(result.tls.key, "gateway.tls.key");
  if (result.tls.certificate.empty() != result.tls.key.empty())
    problems.push_back(
        {.line = std::max(values.line("gateway.tls.certificate"), values.line("gateway.tls.key")),
         .text = "gateway.tls: certificate and key require each other; give both or neither"});
  values.read(result.upstream_ca, "gateway.upstream-ca");
  values.read(result.secret, "gateway.secret");
  values.read(result.trusted_proxies, "gateway.trusted-proxies");
  values.read(result.access_log, "gateway.access-log");
  values.read(result.connections, "gateway.limits.connections");
  values.read(result.connections_per_address, "gateway.limits.connections-per-address");
  values.read(result.max_body, "gateway.limits.body");
  values.read(result.workers, "gateway.limits.workers");
  values.read(result.queue, "gateway.limits.queue");
  for (const auto& [name, line] : values.names_below(routes_section)) {
    result.routes.push_back(route_reader(values, problems, name, line).result);
    const auto& added = result.routes.back();
    refuse_twin(result.routes, line, problems);
    const bool has_credentials = std::ranges::any_of(added.vary, [](const std::string& field) {
      return field == "authorization" || field == "cookie";
    });
    if (has_credentials && result.secret.empty())
      problems.push_back({.line = line,
                          .text = "gateway.routes." + name +
                                  ".vary: credentials are hashed with a key; set gateway.secret"});
  }
  return result;
}

void check_gateway_addresses(const gateway_config& config) {
  for (const auto& address : config.listen) {
    if (!is_local_address(address) && config.tls.certificate.empty() && !config.allow_plain)
      throw error(errc::invalid_argument,
                  address +
                      " can be reached from other machines; set gateway.tls.certificate and "
                      "gateway.tls.key, or gateway.allow-plain = true");
  }
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve::config
