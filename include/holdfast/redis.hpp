#pragma once

/// \file
/// A client for Redis, Redis Sentinel and Redis Cluster. Sequences and outboxes on Redis use it; it
/// can also be used alone.
///
///     holdfast::redis::client redis("redis://127.0.0.1:6379");
///     redis.call(redis::command("SET").key("greeting").arg("hello"));
///     std::string hello = redis.call(redis::command("GET").key("greeting").idempotent()).text();

#include <holdfast/error.hpp>
#include <holdfast/log.hpp>
#include <holdfast/metrics.hpp>
#include <holdfast/tls.hpp>
#include <holdfast/version.hpp>

#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace HOLDFAST_NAMESPACE::redis {}

namespace HOLDFAST_NAMESPACE::detail::redis {
class client_state;
class reply_reader;
// Private code, which is inside `detail`, writes `redis::client` for the public class.
using namespace holdfast::redis;
}  // namespace HOLDFAST_NAMESPACE::detail::redis

namespace HOLDFAST_NAMESPACE::redis {

/// The reply to a command: nil, an integer, text (any bytes), a list, or an error.
///
/// An accessor throws the error that the reply holds, or errc::malformed if the reply has another
/// type. Accessors of a temporary return values, not references into it.
/// Thread-safety: as a value.
class HOLDFAST_API reply {
 public:
  using list = std::vector<reply>;

  reply() noexcept = default;
  explicit reply(std::int64_t number) : value_(number) {}
  explicit reply(std::string text) : value_(std::move(text)) {}
  explicit reply(list elements) : value_(std::move(elements)) {}
  explicit reply(error problem) : value_(std::move(problem)) {}

  [[nodiscard]] bool is_nil() const noexcept {
    return std::holds_alternative<std::monostate>(value_);
  }
  [[nodiscard]] bool is_integer() const noexcept {
    return std::holds_alternative<std::int64_t>(value_);
  }
  [[nodiscard]] bool is_text() const noexcept {
    return std::holds_alternative<std::string>(value_);
  }
  [[nodiscard]] bool is_list() const noexcept { return std::holds_alternative<list>(value_); }
  [[nodiscard]] bool is_error() const noexcept { return std::holds_alternative<error>(value_); }

  [[nodiscard]] std::int64_t integer() const;
  [[nodiscard]] const std::string& text() const&;
  [[nodiscard]] std::string text() &&;
  [[nodiscard]] const list& elements() const&;
  [[nodiscard]] list elements() &&;
  /// Returns the error. Throws errc::malformed if the reply is not an error.
  [[nodiscard]] const error& problem() const&;
  [[nodiscard]] error problem() &&;
  /// Throws the error that the reply holds; otherwise returns the reply.
  const reply& checked() const&;
  reply checked() &&;

  friend HOLDFAST_API bool operator==(const reply& a, const reply& b) noexcept;

 private:
  friend class detail::redis::reply_reader;
  [[noreturn]] void throw_not(std::string_view expected) const;

  std::variant<std::monostate, std::int64_t, std::string, list, error> value_{};
};

/// A Lua script. Create it once and keep it: the constructor computes its hash. The client sends it
/// as EVALSHA, and with its text only to servers that do not know it.
/// Thread-safety: immutable; copies share the text.
class HOLDFAST_API script {
 public:
  explicit script(std::string text);

  [[nodiscard]] const std::string& text() const noexcept { return state_->text; }
  /// 40 lower-case hexadecimal digits.
  [[nodiscard]] const std::string& sha1() const noexcept { return state_->sha1; }

 private:
  friend class command;
  struct state {
    std::string text;
    std::string sha1;
  };
  std::shared_ptr<const state> state_;
};

/// A command, and what the client must know about it: which arguments are keys (in a Cluster they
/// select the node), and whether it may be sent twice. Arguments may hold any bytes.
/// Thread-safety: as a value.
class HOLDFAST_API command {
 public:
  explicit command(std::string_view name);
  /// EVALSHA of the script. Add its keys first, then its other arguments.
  explicit command(const script& lua);

  command& key(std::string_view name) &;
  command& arg(std::string_view text) &;
  /// Declares that running the command twice has the same effect as running it once. The client may
  /// then send it again when its reply is lost.
  command& idempotent(bool yes = true) & noexcept;
  /// Sends the command on the same connection, directly after the previous one, and again whenever
  /// that one is sent again. For WAIT and WAITAOF. The command must not have keys.
  command& after_previous(bool yes = true) & noexcept;
  template <std::integral T>
    requires(!std::same_as<T, bool> && !std::same_as<T, char>)
  command& arg(T number) & {
    return arg(std::string_view(std::to_string(number)));
  }

  command&& key(std::string_view name) && { return std::move(key(name)); }
  template <class T>
  command&& arg(const T& value) && {
    return std::move(arg(value));
  }
  command&& idempotent(bool yes = true) && noexcept { return std::move(idempotent(yes)); }
  command&& after_previous(bool yes = true) && noexcept { return std::move(after_previous(yes)); }

  [[nodiscard]] bool is_idempotent() const noexcept { return idempotent_; }
  [[nodiscard]] bool is_after_previous() const noexcept { return after_previous_; }
  /// Returns true for MULTI, SUBSCRIBE, SELECT, QUIT, CLIENT REPLY, SCRIPT DEBUG and similar
  /// commands. A client refuses them: its connections are shared, and every command on them must
  /// have exactly one reply.
  [[nodiscard]] bool changes_connection() const noexcept { return refused_ != 0; }
  /// Returns why a client refuses the command, in one line that begins with its name; empty if it
  /// does not.
  [[nodiscard]] std::string refusal() const;
  [[nodiscard]] bool is_script() const noexcept { return script_ != nullptr; }
  /// Returns true for a script, and for EVAL, EVALSHA, FCALL and their read-only forms.
  [[nodiscard]] bool runs_script() const noexcept { return runs_script_; }
  [[nodiscard]] const std::string& script_sha1() const noexcept { return script_->sha1; }
  /// Returns the number of keys.
  [[nodiscard]] std::size_t keys() const noexcept { return key_count_; }
  [[nodiscard]] std::string_view key_at(std::size_t index) const noexcept;

  /// Appends the command in the protocol of Redis. A script is written as EVALSHA, or as EVAL if
  /// `with_script_text` is true.
  void write(std::string& output, bool with_script_text = false) const;

 private:
  struct argument_range {
    std::size_t offset = 0, length = 0;
  };
  void append(std::string_view text);

  std::string body_{};  // every argument as `$3\r\nSET\r\n`
  std::size_t count_ = 0;
  std::size_t key_count_ = 0;
  argument_range first_key_{};
  std::vector<argument_range> other_keys_{};
  std::shared_ptr<const script::state> script_{};
  bool idempotent_ = false;
  bool after_previous_ = false;
  bool runs_script_ = false;
  std::uint8_t group_ = 0;    // 1: CLIENT, 2: SCRIPT; the next argument is a subcommand
  std::uint8_t refused_ = 0;  // index in the table of refused commands, from 1; 0: not refused
};

/// WAIT: the reply is the number of replicas that have everything that was written on the
/// connection before. Compare it with `replicas`: a timeout is not an error.
[[nodiscard]] HOLDFAST_API command wait_for_replicas(std::size_t replicas,
                                                     std::chrono::milliseconds timeout);
/// WAITAOF: the same for what is synced to disk, on this server (0 or 1) and on replicas. The reply
/// is a list of two numbers. Redis 7.2 and later.
[[nodiscard]] HOLDFAST_API command wait_for_disk(std::size_t local, std::size_t replicas,
                                                 std::chrono::milliseconds timeout);

/// TLS settings of `rediss://`.
using holdfast::tls_options;

struct options {
  /// Replaces the user of the URL.
  std::string user{};
  /// Replaces the password of the URL. If neither is given, the client takes the variable
  /// HOLDFAST_REDIS_PASSWORD, then `password_file`.
  std::string password{};
  /// The first line of this file is the password.
  std::string password_file{};
  /// User and password for the Sentinels themselves, if they require a login. An empty password is
  /// taken from the variable HOLDFAST_REDIS_SENTINEL_PASSWORD.
  std::string sentinel_user{};
  std::string sentinel_password{};
  tls_options tls{};
  /// Time limit to open a connection, TLS and login included.
  std::chrono::milliseconds connect_timeout = std::chrono::seconds(2);
  /// Time limit of a call, everything included.
  std::chrono::milliseconds timeout = std::chrono::seconds(5);
  /// Idle time before TCP keep-alive probes; 0 disables them.
  std::chrono::seconds keep_alive = std::chrono::seconds(15);
  /// Maximum number of connections to each node.
  std::size_t connections = 16;
  /// Attempts for a command in a Cluster or behind Sentinels: redirects, and retries while a master
  /// changes. On a server of its own there are 2, on one with several addresses 4.
  std::size_t attempts = 32;
  /// Maximum size of a reply in bytes. A larger one is an error.
  std::size_t max_reply = std::size_t{64} << 20U;
  /// Name of the connections in CLIENT LIST.
  std::string client_name = "holdfast";
  /// Maps an address that the Cluster or a Sentinel announces, `host:port`, to one that this
  /// process can reach. For servers behind a port forward.
  std::function<std::string(const std::string& address)> translate{};
  /// Receives warnings for an operator, without payloads or passwords.
  log_sink log{};
  /// Receives the counters of `client::count` as holdfast_redis_...
  std::shared_ptr<metrics_sink> metrics{};
};

struct call_options {
  /// Replaces options::timeout; 0 keeps that.
  std::chrono::milliseconds timeout{};
  /// Sends everything to this node (`host:port`, as `nodes()` returns it), regardless of keys.
  std::string node{};
};

/// A server of a Cluster, or the master.
struct node {
  std::string address;    ///< `host:port`, or the path of a socket
  bool master = true;     ///< false: a replica
  std::size_t slots = 0;  ///< number of slots that it serves
};

/// What a server reports about itself.
struct server_report {
  std::string address{};
  std::string version{};         ///< 7.0.15
  std::string mode{};            ///< standalone, cluster, sentinel
  std::string role{};            ///< master, slave
  std::size_t replicas = 0;      ///< connected and online
  bool master_link = true;       ///< of a replica: whether it is connected to its master
  bool loading = false;          ///< it is loading its data and does not answer commands yet
  bool aof = false;              ///< it has an append-only file
  std::string appendfsync{};     ///< always, everysec, no; empty if CONFIG is forbidden
  std::string eviction{};        ///< maxmemory-policy: noeviction, ...
  std::uint64_t max_memory = 0;  ///< bytes; 0: no limit
  std::uint64_t used_memory = 0;
  std::uint64_t evicted = 0;   ///< keys evicted so far
  bool can_wait_disk = false;  ///< it knows WAITAOF
  bool encrypted = false;      ///< the connection uses TLS
  bool cluster_ok = true;      ///< cluster_state
  std::size_t slots_covered = 0;
  std::chrono::microseconds round_trip{};  ///< median of a few PINGs
};

/// Counters of a client since it was created.
struct numbers {
  std::uint64_t calls = 0;      ///< call and pipeline
  std::uint64_t commands = 0;   ///< commands in them
  std::uint64_t in_flight = 0;  ///< calls that are running now
  std::uint64_t moved = 0;      ///< MOVED redirects followed
  std::uint64_t asked = 0;      ///< ASK redirects followed
  /// Retries after TRYAGAIN, CLUSTERDOWN, LOADING and similar replies, or a failed connection
  std::uint64_t retried = 0;
  std::uint64_t resent = 0;         ///< idempotent commands sent again after a lost reply
  std::uint64_t in_doubt = 0;       ///< commands reported as in doubt after a lost reply
  std::uint64_t whole_scripts = 0;  ///< scripts sent with their text
  std::uint64_t refreshes = 0;      ///< refreshes of the slot map
  std::uint64_t connected = 0;      ///< connections opened
  std::uint64_t lost = 0;           ///< connections that broke
  std::uint64_t open = 0;           ///< connections open now
  /// Commands that failed, by code.
  std::array<std::uint64_t, static_cast<std::size_t>(errc::internal) + 1> errors{};
  /// Calls by duration: bucket n counts those of at least 2^(n-1) and less than 2^n microseconds.
  /// The last bucket counts all longer ones.
  std::array<std::uint64_t, 25> latency{};

  [[nodiscard]] HOLDFAST_API std::uint64_t errors_of(errc code) const noexcept;
  /// Returns an upper bound of a quantile of the latency: 0.5 for the median, 0.99.
  [[nodiscard]] HOLDFAST_API std::chrono::microseconds latency_at(double quantile) const noexcept;
};

/// A client of the server or Cluster that a URL names:
///
/// | URL | server |
/// | --- | --- |
/// | `redis://user:password@host:6379/0` | one server; the path is the number of the database |
/// | `rediss://host:6380?tls_ca=/etc/ca.pem` | the same with TLS; also `tls_cert`, `tls_key`, `tls_verify=0`, `tls_name` |
/// | `redis+unix:///run/redis.sock?db=1` | a Unix socket |
/// | `redis://host1,host2/0`, `rediss://host1,host2` | one server that may be at several addresses: the one that is a master is used |
/// | `redis+sentinel://host1,host2/mymaster?db=0`, `rediss+sentinel://...` | the master that Sentinels name; the user and the password are those of the master |
/// | `redis+cluster://host1:7000,host2:7000`, `rediss+cluster://...` | a Cluster; any node will do, several are better |
///
/// How a command can fail:
///
/// | the command | error | transient | in doubt |
/// | --- | --- | --- | --- |
/// | was not sent, or the server did not run it (redirects, LOADING, CLUSTERDOWN...), until the attempts or the time ran out | unavailable, timeout | yes | no |
/// | was sent and its reply was lost; it is not idempotent | unavailable, timeout | yes | **yes** |
/// | was refused by the server | by the server's error code, see docs/redis.md | by the code | no |
///
/// Copies share connections and counters. The client has no threads of its own; a call has a
/// connection to itself while it runs.
///
/// After fork, calls in the child throw errc::invalid_argument. The child may destroy the client:
/// that waits for no lock, sends nothing, closes the child's copies of idle sockets and does not
/// free the memory.
///
/// Thread-safety: every function may be called from any thread.
class HOLDFAST_API client {
 public:
  /// Throws errc::invalid_argument if the URL is invalid. Does not connect.
  explicit client(std::string_view url, options settings = {});

  /// Sends a command and returns its reply. Throws every failure, errors of the server included.
  reply call(const command& request, const call_options& options = {}) const;

  /// Sends all commands and returns a reply for each, in the order of the commands. A command that
  /// fails has an error as its reply.
  ///
  /// Throws errc::invalid_argument before anything is sent if a command has keys in different slots
  /// of a Cluster, or would change the connection for the next caller (MULTI, SELECT, SUBSCRIBE).
  ///
  /// The nodes of a Cluster work at the same time. A node that hangs delays only its own commands.
  /// The commands for one node run in their order, unless one must be sent again (a redirect, a
  /// script that the server forgot): it then runs after the commands that follow it. Where order
  /// matters, use one script.
  std::vector<reply> pipeline(std::span<const command> commands,
                              const call_options& options = {}) const;

  [[nodiscard]] bool is_cluster() const noexcept;
  /// The master that serves a key of a Cluster, as far as the client knows it without asking. Empty
  /// outside a Cluster, and before the first call.
  [[nodiscard]] std::string node_of(std::string_view key) const;
  /// Asks the Cluster for its nodes. Outside a Cluster there is one: the master.
  [[nodiscard]] std::vector<node> nodes() const;
  /// Returns a report of each server. Throws if one does not answer.
  [[nodiscard]] std::vector<server_report> probe() const;
  /// Returns the report of one server.
  [[nodiscard]] server_report probe(const std::string& node) const;
  /// Returns nothing if the server answers a PING; otherwise the error.
  [[nodiscard]] std::optional<error> health() const noexcept;
  [[nodiscard]] numbers count() const noexcept;

 private:
  std::shared_ptr<detail::redis::client_state> state_;
};

}  // namespace HOLDFAST_NAMESPACE::redis
