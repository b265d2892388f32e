#pragma once

/// \file
/// What `holdfast serve` is to do, from serve.toml and the command line.

#include <holdfast/failover/options.hpp>
#include <holdfast/version.hpp>

#include "failover/config/file.hpp"
#include "failover/config/plan.hpp"
#include "net/tls.hpp"
#include "serve/auth/certificate_clients.hpp"
#include "serve/config/gateway_config.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve::config {

struct database_config {
  std::string url{};
  std::string user{};
  std::string password{};
  std::string password_file{};
  /// 0: default_connections.
  std::size_t connections = 0;
  std::chrono::milliseconds statement_timeout = std::chrono::seconds(10);
};

/// A connection of SQLite has a cache of its own, of up to 16 MiB, and only one of them writes at a
/// time. So a server has few of them: more would need memory and save no time.
[[nodiscard]] std::size_t default_connections(std::string_view url) noexcept;

struct store_config {
  std::string name{};
  database_config database{};
  std::string prefix{};
  bool create_schema = false;
  payload_column payload = payload_column::text;
};

struct outbox_config {
  std::string name{};
  database_config database{};
  std::string prefix = "{identity:outbox}";
  std::size_t lanes = 1;
  bool create_schema = false;
  std::chrono::milliseconds dedup_window = std::chrono::minutes(5);
  std::uint32_t max_deliveries = 10;
};

enum class fence_kind : std::uint8_t { super, clock, wait, none };

struct sequence_config {
  database_config database{};
  std::string prefix{};
  bool create_schema = false;
  bool allow_unsafe = false;
  std::optional<fence_kind> fence{};
  std::string super_store{};
};

/// `[serve.trust]`: single sign-on by a proxy.
struct trust_config {
  /// Empty: no proxy is trusted.
  std::string header{};
  std::vector<std::string> addresses{};
  std::vector<std::string> viewers{};
  std::vector<std::string> operators{};
  std::vector<std::string> admins{};
};

/// One key with the value that is in force, for people. Has no secret.
struct effective_value {
  std::string key{};
  std::string value{};
  /// Line of the file; 0: the default, or the command line.
  std::size_t line = 0;
  /// The line takes it from an environment variable.
  bool from_environment = false;
};

struct server_config {
  /// Empty: no file.
  std::string file{};
  /// `host:port`, or the path of a Unix socket.
  std::vector<std::string> listen{"127.0.0.1:7360"};
  std::vector<std::string> names{};
  std::string label{};
  /// Empty: the default place.
  std::string state{};
  bool allow_plain = false;
  bool open = false;
  trust_config trust{};
  net::tls_server_options tls{.section = "serve.tls"};
  /// `[serve.clients]`
  std::vector<certificate_client> clients{};
  std::size_t loops = 0;
  std::string access_log = "-";
  std::size_t connections = 4096;
  std::size_t connections_per_address = 512;
  std::chrono::milliseconds head_timeout = std::chrono::seconds(10);
  std::chrono::milliseconds idle_timeout = std::chrono::seconds(60);
  /// 0: enough for every database to hang.
  std::size_t workers = 0;
  std::size_t queue = 1024;
  std::chrono::milliseconds drain = std::chrono::seconds(5);
  std::chrono::milliseconds grace = std::chrono::seconds(30);

  std::vector<store_config> stores{};
  std::vector<outbox_config> outboxes{};
  std::optional<sequence_config> sequences{};
  std::optional<gateway_config> gateway{};
  /// The write-behind queue of the engine never lets its caller wait.
  bool queue_never_waits = true;
  /// Points, from [failover]. Without a database, which is the first store.
  std::optional<failover::config::plan> points{};
  std::vector<effective_value> effective{};
};

/// Reads the text of serve.toml. Throws errc::invalid_argument with all problems and their lines;
/// `file` is the path in the error. Messages never contain secrets. `base` has what the file cannot
/// say: clock, log, metrics. `added_store` is the URL of a store that the command line adds.
[[nodiscard]] server_config read_config(
    const std::string& file, std::string_view text, engine_options base = {},
    const failover::config::environment& lookup = failover::config::process_environment(),
    std::string_view added_store = {});

/// The URL of the state database that serve.toml sets; empty: the default. Checks [serve] only, so
/// that the environment variables of other sections need not be set. Throws as read_config.
[[nodiscard]] std::string read_state_url(
    const std::string& file, std::string_view text,
    const failover::config::environment& lookup = failover::config::process_environment());

/// The options with which `holdfast serve token` finds the state of this server, after a space.
/// Empty: it needs none.
[[nodiscard]] std::string state_arguments(const server_config& config);

/// Whether this is `host:port` or the path of a Unix socket.
[[nodiscard]] bool is_listen_address(std::string_view address);

/// Reports the addresses of a key that are not one of `listen`.
void check_addresses(const config_values& values, std::vector<problem>& problems,
                     std::string_view key, const std::vector<std::string>& addresses);

/// Throws errc::invalid_argument unless `address` is one of `listen`. `key` is the option or the
/// key that has it.
void check_listen_address(std::string_view key, std::string_view address);

/// Checks what the command line can break, too. Throws errc::invalid_argument.
void check_config(const server_config& config);

/// Whether only this machine reaches an address of `listen`.
[[nodiscard]] bool is_local_address(const std::string& address);

/// `unix:/path` as the path of a socket; other addresses unchanged.
[[nodiscard]] std::string socket_address(std::string address);

}  // namespace HOLDFAST_NAMESPACE::detail::serve::config
