#include "serve/config/server_config.hpp"

#include <holdfast/database.hpp>
#include <holdfast/error.hpp>

#include "base/secret.hpp"
#include "base/url.hpp"
#include "serve/api/host_names.hpp"
#include "serve/auth/state_database.hpp"
#include "serve/auth/token_store.hpp"
#include "serve/config/effective.hpp"
#include "serve/config/values.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstdlib>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve::config {

namespace {

/// Keys of [failover] that describe a database: here that is the first store.
constexpr std::array<std::string_view, 10> database_keys{
    "type",         "url",           "user",           "password",        "password-file",
    "table-prefix", "create-schema", "payload-column", "connect-timeout", "statement-timeout"};

struct wiped_values {
  std::vector<file_value> values;
  explicit wiped_values(std::vector<file_value> file) : values(std::move(file)) {}
  wiped_values(const wiped_values&) = delete;
  wiped_values& operator=(const wiped_values&) = delete;
  ~wiped_values() {
    for (auto& value : values) {
      if (auto* text = std::get_if<std::string>(&value.value)) wipe(*text);
    }
  }
};

void add_problem(std::vector<problem>& problems, std::size_t line, const std::string& text) {
  problems.push_back({.line = line, .text = text});
}

/// Reports a URL that names no database.
void check_state(const config_values& values, std::vector<problem>& problems,
                 const std::string& url) {
  const auto line = values.line("serve.state");
  if (line == 0) return;
  try {
    check_state_url(url);
  } catch (const error& failure) {
    if (failure.code() != errc::invalid_argument) throw;
    const bool hidden = values.from_environment("serve.state");
    add_problem(
        problems, line,
        "serve.state: " + (hidden ? "this is not the URL of an SQL database" : failure.message()));
  }
}

/// Makes the configuration from the values. Reports contradictions as problems.
class config_reader {
 public:
  config_reader(const config_values& values, std::vector<problem>& problems)
      : values_(values), problems_(problems) {
    read_server();
    for (const auto& [name, line] : values_.names_below("stores")) read_store(name, line);
    for (const auto& [name, line] : values_.names_below("outboxes")) read_outbox(name, line);
    read_sequences();
    result.gateway = read_gateway(values_, problems_);
  }

  server_config result{};

 private:
  void refuse(std::size_t line, const std::string& text) { add_problem(problems_, line, text); }

  /// Reports a value that is not the URL of a database. `key` has the name of the service.
  void check_url(const std::string& url, std::string_view key, std::string_view name) {
    const auto line = values_.line(key, name);
    if (line == 0) return;
    std::string shown(key);
    if (const auto star = shown.find('*'); star != std::string::npos) shown.replace(star, 1, name);
    if (url.empty()) return refuse(line, shown + ": is empty");
    try {
      (void)holdfast::open(url);
    } catch (const error& failure) {
      // A driver that this program lacks is not a mistake of the file.
      if (failure.code() != errc::invalid_argument) return;
      refuse(line, shown + ": " +
                       (values_.from_environment(key, name) ? "this is not the URL of a database"
                                                            : failure.message()));
    }
  }

  void read_trust() {
    auto& trust = result.trust;
    values_.read(trust.header, "serve.trust.header");
    values_.read(trust.addresses, "serve.trust.addresses");
    values_.read(trust.viewers, "serve.trust.viewers");
    values_.read(trust.operators, "serve.trust.operators");
    values_.read(trust.admins, "serve.trust.admins");
    if (!trust.header.empty() && trust.addresses.empty())
      refuse(values_.line("serve.trust.header"),
             "serve.trust.header: every client could choose its user; list the addresses of the "
             "proxy in serve.trust.addresses");
    if (trust.header.empty() && !trust.addresses.empty())
      refuse(values_.line("serve.trust.addresses"),
             "serve.trust.addresses: needs serve.trust.header");
  }

  void read_client(const std::string& name, std::size_t line) {
    const auto section = "serve.clients." + name;
    certificate_client client{.name = name};
    values_.read(client.certificates, "serve.clients.*.certificates", name);
    values_.read(client.scopes, "serve.clients.*.scopes", name);
    values_.read(client.tenant, "serve.clients.*.tenant", name);
    // In the order of known_key::choices.
    constexpr std::array roles{role::viewer, role::operator_, role::application, role::admin};
    const auto chosen = values_.choice("serve.clients.*.role", name);
    if (chosen) client.role = roles[*chosen];
    else if (values_.line("serve.clients.*.role", name) == 0)
      refuse(line, section + ": needs a role: viewer, operator, app or admin");
    if (client.certificates.empty())
      refuse(line, section + ": needs certificates: names or fingerprints");
    for (std::size_t i = 0; i < client.certificates.size(); ++i) {
      try {
        client.certificates[i] = certificate_text(client.certificates[i]);
      } catch (const error& failure) {
        // Not the text: it may come from the environment.
        refuse(values_.line("serve.clients.*.certificates", name),
               section + ".certificates[" + std::to_string(i) + "]: " + failure.message());
      }
    }
    try {
      check_rights(client.role, client.scopes, client.tenant);
    } catch (const error& failure) {
      refuse(line, section + "." + failure.what());
    }
    result.clients.push_back(std::move(client));
  }

  void read_clients() {
    const auto& names = values_.names_below("serve.clients");
    for (const auto& [name, line] : names) read_client(name, line);
    if (!names.empty() && result.tls.client_ca.empty())
      refuse(names.front().second,
             "serve.clients: certificates are only trusted with serve.tls.client-ca; set it");
    for (auto it = result.clients.begin(); it != result.clients.end(); ++it) {
      const auto shares = [&](const certificate_client& other) {
        return std::ranges::find_first_of(it->certificates, other.certificates) !=
               it->certificates.end();
      };
      const auto other = std::find_if(result.clients.begin(), it, shares);
      if (other != it)
        refuse(values_.line("serve.clients.*.certificates", it->name),
               "serve.clients." + it->name + ".certificates: " + other->name +
                   " has one of them, too; remove it from one of the two");
    }
  }

  void read_server() {
    values_.read(result.listen, "serve.listen");
    for (auto& address : result.listen) address = socket_address(std::move(address));
    check_addresses(values_, problems_, "serve.listen", result.listen);
    values_.read(result.names, "serve.names");
    values_.read(result.label, "serve.label");
    values_.read(result.state, "serve.state");
    check_state(values_, problems_, result.state);
    values_.read(result.allow_plain, "serve.allow-plain");
    values_.read(result.open, "serve.open");
    read_trust();
    values_.read(result.tls.certificate, "serve.tls.certificate");
    values_.read(result.tls.key, "serve.tls.key");
    values_.read(result.tls.client_ca, "serve.tls.client-ca");
    if (result.tls.certificate.empty() != result.tls.key.empty())
      refuse(std::max(values_.line("serve.tls.certificate"), values_.line("serve.tls.key")),
             "serve.tls: certificate and key require each other; give both or neither");
    else if (result.tls.certificate.empty() && !result.tls.client_ca.empty())
      refuse(values_.line("serve.tls.client-ca"), "serve.tls.client-ca: needs certificate and key");
    read_clients();
    values_.read(result.loops, "serve.loops");
    values_.read(result.access_log, "serve.access-log");
    values_.read(result.connections, "serve.limits.connections");
    values_.read(result.connections_per_address, "serve.limits.connections-per-address");
    values_.read(result.head_timeout, "serve.limits.head-timeout");
    values_.read(result.idle_timeout, "serve.limits.idle-timeout");
    values_.read(result.workers, "serve.limits.workers");
    values_.read(result.queue, "serve.limits.queue");
    values_.read(result.drain, "serve.drain");
    values_.read(result.grace, "serve.grace");
  }

  database_config read_database(const std::string& section, std::string_view name, std::size_t line,
                                const std::string& shown) {
    database_config database;
    values_.read(database.url, section + ".url", name);
    values_.read(database.user, section + ".user", name);
    values_.read(database.password, section + ".password", name);
    values_.read(database.password_file, section + ".password-file", name);
    values_.read(database.connections, section + ".connections", name);
    values_.read(database.statement_timeout, section + ".statement-timeout", name);
    if (database.url.empty() && values_.line(section + ".url", name) == 0)
      refuse(line, shown + ": needs a url");
    check_url(database.url, section + ".url", name);
    return database;
  }

  void read_store(const std::string& name, std::size_t line) {
    store_config store{.name = name,
                       .database = read_database("stores.*", name, line, "stores." + name)};
    values_.read(store.prefix, "stores.*.prefix", name);
    values_.read(store.create_schema, "stores.*.create-schema", name);
    if (values_.choice("stores.*.payload-column", name) == 1) store.payload = payload_column::bytes;
    result.stores.push_back(std::move(store));
  }

  void read_outbox(const std::string& name, std::size_t line) {
    outbox_config outbox{.name = name,
                         .database = read_database("outboxes.*", name, line, "outboxes." + name)};
    values_.read(outbox.prefix, "outboxes.*.prefix", name);
    values_.read(outbox.lanes, "outboxes.*.lanes", name);
    values_.read(outbox.create_schema, "outboxes.*.create-schema", name);
    values_.read(outbox.dedup_window, "outboxes.*.dedup-window", name);
    std::size_t deliveries = outbox.max_deliveries;
    values_.read(deliveries, "outboxes.*.max-deliveries", name);
    outbox.max_deliveries = static_cast<std::uint32_t>(deliveries);
    if (!std::has_single_bit(outbox.lanes))
      refuse(values_.line("outboxes.*.lanes", name),
             "outboxes." + name + ".lanes: must be a power of two");
    result.outboxes.push_back(std::move(outbox));
  }

  void read_sequences() {
    const auto& keys = known_keys();
    const auto first = std::ranges::find_if(keys, [&](const known_key& key) {
      return key.name.starts_with("sequences.") && values_.line(key.name) != 0;
    });
    if (first == keys.end()) return;
    const auto line = values_.line(first->name);
    sequence_config sequences{.database = read_database("sequences", {}, line, "sequences")};
    values_.read(sequences.prefix, "sequences.prefix");
    values_.read(sequences.create_schema, "sequences.create-schema");
    values_.read(sequences.allow_unsafe, "sequences.allow-unsafe");
    values_.read(sequences.super_store, "sequences.super-store");
    check_url(sequences.super_store, "sequences.super-store", {});
    if (const auto index = values_.choice("sequences.fence"))
      sequences.fence = static_cast<fence_kind>(*index);
    const bool on_redis = sequences.database.url.starts_with("redis");
    if (on_redis && !sequences.fence)
      refuse(line,
             "sequences: Redis can grant ids twice after a failover; set fence to super, clock, "
             "wait or none");
    if (!on_redis && sequences.fence)
      refuse(values_.line("sequences.fence"), "sequences.fence: is only for Redis; remove it");
    if ((sequences.fence == fence_kind::super) == sequences.super_store.empty())
      refuse(std::max(values_.line("sequences.fence"), values_.line("sequences.super-store")),
             "sequences: fence = \"super\" and super-store require each other");
    result.sequences = std::move(sequences);
  }

  const config_values& values_;
  std::vector<problem>& problems_;
};

/// The values of [failover], which the engine checks itself.
void read_points(const std::string& file, std::string_view text, engine_options base,
                 const failover::config::environment& lookup, const std::string& store_url,
                 server_config& config, std::vector<problem>& problems) {
  std::vector<problem> reported_by_the_plan;
  const wiped_values points(failover::config::read_toml(text, lookup, reported_by_the_plan));
  for (const auto& value : points.values) {
    const auto& path = value.path;
    const bool of_database =
        path.size() > 2 && path[1] == "store" &&
        (path[2] == "pool" || std::ranges::find(database_keys, path[2]) != database_keys.end());
    if (of_database)
      problems.push_back({.line = value.line,
                          .text = failover::config::dotted(path) +
                                  ": points use the first store; set this in [stores.NAME]"});
  }
  config.effective = point_values(points.values);
  try {
    config.points = failover::config::make_plan(file, text, std::move(base), lookup, store_url);
    wipe(config.points->url);
    const auto& queue = config.points->engine.storage.write_behind;
    config.queue_never_waits =
        !config.points->layers.write_behind && queue && queue->full == when_full::drop_oldest;
  } catch (const error& failure) {
    if (failure.code() != errc::invalid_argument) throw;
    problems.push_back({.line = 0, .text = failure.message()});
  }
}

/// What is in force, with defaults.
void add_effective(const config_values& values, server_config& config) {
  std::vector<effective_value> shown;
  const auto add = [&](const known_key& key, std::string_view name) {
    std::string full(key.name);
    if (const auto star = full.find('*'); star != std::string::npos) full.replace(star, 1, name);
    shown.push_back({.key = std::move(full),
                     .value = values.shown(key, name),
                     .line = values.line(key.name, name),
                     .from_environment = values.from_environment(key.name, name)});
  };
  for (const auto& key : known_keys()) {
    if (key.name.starts_with("sequences.") && !config.sequences) continue;
    if (key.name.starts_with("gateway.") && !config.gateway) continue;
    if (key.name.find('*') == std::string_view::npos) {
      add(key, {});
      continue;
    }
    for (const auto& [name, line] : values.names_below(named_section(key))) add(key, name);
  }
  shown.insert(shown.end(), std::make_move_iterator(config.effective.begin()),
               std::make_move_iterator(config.effective.end()));
  config.effective = std::move(shown);
}

}  // namespace

std::size_t default_connections(std::string_view url) noexcept {
  return url.starts_with("sqlite:") ? 4 : 20;
}

bool is_listen_address(std::string_view address) {
  if (address.starts_with('/')) return true;
  const auto colon = address.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  const auto digits = address.substr(colon + 1);
  unsigned port = 0;
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  return failure == std::errc{} && end == digits.data() + digits.size() && port <= 65'535 &&
         std::ranges::none_of(
             address, [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == '/'; });
}

bool is_local_address(const std::string& address) {
  return is_loopback(address.starts_with('/') ? address : host_part(address));
}

std::string socket_address(std::string address) {
  if (address.starts_with("unix:")) address.erase(0, 5);
  return address;
}

server_config read_config(const std::string& file, std::string_view text, engine_options base,
                          const failover::config::environment& lookup,
                          std::string_view added_store) {
  std::vector<problem> problems;
  const wiped_values content(failover::config::read_toml(
      text, lookup, problems,
      [](std::string_view name) { return !failover::config::is_failover_section(name); }));
  // What is not TOML has no keys that could be wrong.
  if (content.values.empty() && !problems.empty())
    failover::config::throw_problems(file, std::move(problems));
  const config_values values(content.values, problems);
  config_reader reader(values, problems);
  const std::string store_url = reader.result.stores.empty()
                                    ? std::string(added_store)
                                    : reader.result.stores.front().database.url;
  read_points(file, text, std::move(base), lookup, store_url, reader.result, problems);
  if (!problems.empty()) failover::config::throw_problems(file, std::move(problems));
  reader.result.file = file;
  add_effective(values, reader.result);
  return std::move(reader.result);
}

std::string read_state_url(const std::string& file, std::string_view text,
                           const failover::config::environment& lookup) {
  std::vector<problem> problems;
  const wiped_values content(failover::config::read_toml(
      text, lookup, problems, [](std::string_view name) { return name == "serve"; }));
  const config_values values(content.values, problems);
  std::string url;
  values.read(url, "serve.state");
  check_state(values, problems, url);
  if (!problems.empty()) failover::config::throw_problems(file, std::move(problems));
  return url;
}

std::string state_arguments(const server_config& config) {
  const auto quoted = [](const std::string& text) {
    const bool is_word = std::ranges::all_of(text, [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             std::string_view("/._-:@%+,").find(c) != std::string_view::npos;
    });
    return is_word ? text : "'" + text + "'";
  };
  if (!config.state.empty() && !config.file.empty()) return " --config " + quoted(config.file);
  if (!config.state.empty()) return " --state " + quoted(without_password(config.state));
  // A service manager sets the directory for the server only.
  const char* directory = std::getenv("STATE_DIRECTORY");  // NOLINT(concurrency-mt-unsafe)
  if (directory == nullptr || *directory == '\0') return {};
  return " --state " + quoted(default_state_url(false));
}

void check_listen_address(std::string_view key, std::string_view address) {
  if (is_listen_address(address)) return;
  throw error(errc::invalid_argument, std::string(key) + ": '" + std::string(address) +
                                          "' is not an address; give host:port or unix:/path");
}

void check_addresses(const config_values& values, std::vector<problem>& problems,
                     std::string_view key, const std::vector<std::string>& addresses) {
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    if (is_listen_address(addresses[i])) continue;
    const auto shown = values.from_environment(key) ? "[" + std::to_string(i) + "]: this"
                                                    : ": '" + addresses[i] + "'";
    problems.push_back({.line = values.line(key),
                        .text = std::string(key) + shown +
                                " is not an address, which is host:port or unix:/path"});
  }
}

void check_config(const server_config& config) {
  const auto refuse = [](const std::string& message) {
    throw error(errc::invalid_argument, message);
  };
  if (config.stores.empty() && config.outboxes.empty() && !config.sequences)
    refuse((config.file.empty() ? std::string() : config.file + ": ") +
           "there is nothing to serve; write or uncomment [stores.NAME], [outboxes.NAME] or "
           "[sequences] with its url, or give --store, --outbox or --sequence");
  if (config.gateway) {
    if (config.stores.empty())
      refuse("the gateway keeps answers in the first store; configure [stores.NAME]");
    if (config.points && config.points->tenants)
      refuse("a gateway has no tenants; remove failover.store.multitenant");
    check_gateway_addresses(*config.gateway);
  }
  for (const auto& address : config.listen) {
    const bool remote = !is_local_address(address);
    if (remote && config.open)
      refuse(address +
             " can be reached from other machines, and with serve.open callers need no token; "
             "remove one of them");
    if (remote && config.tls.certificate.empty() && !config.allow_plain)
      refuse(address +
             " can be reached from other machines; set serve.tls.certificate and serve.tls.key, or "
             "serve.allow-plain = true");
  }
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve::config
