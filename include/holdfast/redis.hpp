#pragma once

/// \file
/// Redis, standalone and Cluster: the client that the sequence and the outbox share, for whoever needs a command of their own.
///
///     holdfast::redis::client redis("redis://127.0.0.1:6379");
///     redis.call(redis::command("SET").key("greeting").arg("hello"));
///     std::string hello = redis.call(redis::command("GET").key("greeting").idempotent()).text();

#include <holdfast/error.hpp>
#include <holdfast/log.hpp>
#include <holdfast/metrics.hpp>
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

namespace HOLDFAST_NAMESPACE::redis {

/// What came back for a command: nothing, an integer, text (any bytes), a list, or an error.
/// Thread-safety: as a value. Accessors throw the error it holds, or errc::malformed when it holds something else; they change nothing.
/// Of a temporary they return values: nothing that looks into a reply outlives it.
class HOLDFAST_API reply {
 public:
  using list = std::vector<reply>;

  reply() noexcept = default;
  explicit reply(std::int64_t number) : held_(number) {}
  explicit reply(std::string text) : held_(std::move(text)) {}
  explicit reply(list elements) : held_(std::move(elements)) {}
  explicit reply(error problem) : held_(std::move(problem)) {}

  [[nodiscard]] bool is_nil() const noexcept { return std::holds_alternative<std::monostate>(held_); }
  [[nodiscard]] bool is_integer() const noexcept { return std::holds_alternative<std::int64_t>(held_); }
  [[nodiscard]] bool is_text() const noexcept { return std::holds_alternative<std::string>(held_); }
  [[nodiscard]] bool is_list() const noexcept { return std::holds_alternative<list>(held_); }
  [[nodiscard]] bool is_error() const noexcept { return std::holds_alternative<error>(held_); }

  [[nodiscard]] std::int64_t integer() const;
  [[nodiscard]] const std::string& text() const&;
  [[nodiscard]] std::string text() &&;
  [[nodiscard]] const list& elements() const&;
  [[nodiscard]] list elements() &&;
  /// Why there is no reply; throws errc::malformed when there is one.
  [[nodiscard]] const error& problem() const&;
  [[nodiscard]] error problem() &&;
  /// Throws the error it holds; otherwise itself.
  const reply& checked() const&;
  reply checked() &&;

  friend HOLDFAST_API bool operator==(const reply& a, const reply& b) noexcept;

 private:
  friend class reply_reader;
  [[noreturn]] void refuse(std::string_view wanted) const;

  std::variant<std::monostate, std::int64_t, std::string, list, error> held_{};
};

/// A Lua script. Made once and kept: its hash is computed here. It travels as EVALSHA, and whole only to servers that do not know it.
/// Thread-safety: immutable; copies share it.
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

/// A command and what the client must know about it: which arguments are keys (they decide the node of a Cluster), and whether it may be
/// sent twice. Arguments may hold any bytes.
/// Thread-safety: as a value.
class HOLDFAST_API command {
 public:
  explicit command(std::string_view name);
  /// EVALSHA of the script: first its keys, then its other arguments.
  explicit command(const script& what);

  command& key(std::string_view name) &;
  command& arg(std::string_view text) &;
  /// Running it twice is the same as running it once: a lost reply may be answered by sending it again.
  command& idempotent(bool yes = true) & noexcept;
  /// Sent on the same connection right after the command before it, and again whenever that one is: for WAIT and WAITAOF. Without keys.
  command& after_previous(bool yes = true) & noexcept;
  template <std::integral T>
    requires(!std::same_as<T, bool> && !std::same_as<T, char>)
  command& arg(T number) & {
    return arg(std::string_view(std::to_string(number)));
  }

  command&& key(std::string_view name) && { return std::move(key(name)); }
  template <class T>
  command&& arg(const T& what) && {
    return std::move(arg(what));
  }
  command&& idempotent(bool yes = true) && noexcept { return std::move(idempotent(yes)); }
  command&& after_previous(bool yes = true) && noexcept { return std::move(after_previous(yes)); }

  [[nodiscard]] bool is_idempotent() const noexcept { return idempotent_; }
  [[nodiscard]] bool is_after_previous() const noexcept { return after_previous_; }
  /// MULTI, SUBSCRIBE, SELECT, QUIT, CLIENT REPLY, SCRIPT DEBUG and alike: a client refuses them, for its connections are shared, and every command on
  /// them has one reply.
  [[nodiscard]] bool changes_connection() const noexcept { return refused_ != 0; }
  /// Why a client refuses it, in one line that begins with its name; empty when it does not.
  [[nodiscard]] std::string refusal() const;
  [[nodiscard]] bool is_script() const noexcept { return script_ != nullptr; }
  [[nodiscard]] const std::string& script_sha1() const noexcept { return script_->sha1; }
  [[nodiscard]] std::size_t keys() const noexcept { return key_count_; }
  [[nodiscard]] std::string_view key_at(std::size_t index) const noexcept;

  /// Appends it as Redis reads it. `whole`: a script travels as EVAL with its text.
  void write(std::string& to, bool whole = false) const;

 private:
  struct place {
    std::size_t at = 0, length = 0;
  };
  void append(std::string_view text);

  std::string body_{};  // every argument as `$3\r\nSET\r\n`
  std::size_t count_ = 0;
  std::size_t key_count_ = 0;
  place first_key_{};
  std::vector<place> more_keys_{};
  std::shared_ptr<const script::state> script_{};
  bool idempotent_ = false;
  bool after_previous_ = false;
  std::uint8_t group_ = 0;    // 1: CLIENT, 2: SCRIPT, whose next word tells which command it is
  std::uint8_t refused_ = 0;  // which of those that clients refuse it is; 0: none
};

/// How many replicas have everything that this connection wrote before: the reply is a number, to be compared with `replicas`.
[[nodiscard]] HOLDFAST_API command wait_for_replicas(std::size_t replicas, std::chrono::milliseconds longest);
/// The same for what is synced to disk, here (0 or 1) and on replicas: two numbers. Redis 7.2 and later.
[[nodiscard]] HOLDFAST_API command wait_for_disk(std::size_t here, std::size_t replicas, std::chrono::milliseconds longest);

/// How `rediss://` is spoken.
struct tls_options {
  bool verify = true;         ///< false: any certificate will do. For tests only
  std::string ca{};           ///< a file with the certificates to trust; empty: those of the system
  std::string certificate{};  ///< of this client, if the server asks for one
  std::string key{};          ///< the private key of that certificate
  std::string server_name{};  ///< the name that the server's certificate must have; empty: the host of its address
};

struct options {
  std::string user{};           ///< instead of the one in the URL
  std::string password{};       ///< instead of the one in the URL; else the variable HOLDFAST_REDIS_PASSWORD, else `password_file`
  std::string password_file{};  ///< its first line is the password
  tls_options tls{};
  std::chrono::milliseconds connect_timeout = std::chrono::seconds(2);  ///< to make a connection, TLS and log-in included
  std::chrono::milliseconds timeout = std::chrono::seconds(5);          ///< of one call, everything included
  std::chrono::seconds keep_alive = std::chrono::seconds(15);           ///< TCP keep-alive after so much silence; 0 means none
  std::size_t connections = 16;                                         ///< to each node, at the same time
  std::size_t attempts = 32;  ///< in a Cluster, of one command: redirects, and waits while it changes. Elsewhere it is 2
  std::size_t max_reply = std::size_t{64} << 20U;  ///< bytes that one reply may take; a larger one is an error
  std::string client_name = "holdfast";            ///< as CLIENT LIST shows it
  /// A Cluster tells its nodes' addresses; where they cannot be reached by those (a port forward), this turns `host:port` into one that can.
  std::function<std::string(const std::string& address)> translate{};
  log_sink log{};                           ///< for an operator, without payloads or passwords; nobody listens unless given
  std::shared_ptr<metrics_sink> metrics{};  ///< for the numbers, as holdfast_redis_...; `client::count` has them, too
};

struct call_options {
  std::chrono::milliseconds timeout{};  ///< instead of options::timeout; 0 means that one
  std::string node{};                   ///< send it to this node (`host:port`, as `nodes()` says it), whatever its keys
};

/// A server of a Cluster; standalone, the one.
struct node {
  std::string address;  ///< `host:port`, or the path of a socket
  bool master = true;   ///< false: a replica
  std::size_t slots = 0;
};

/// What a server says about itself.
struct server_report {
  std::string address{};
  std::string version{};         ///< 7.0.15
  std::string mode{};            ///< standalone, cluster, sentinel
  std::string role{};            ///< master, slave
  std::size_t replicas = 0;      ///< connected and in step
  bool master_link = true;       ///< of a replica: is it connected to its master?
  bool loading = false;          ///< it reads its data; nothing works yet
  bool aof = false;              ///< every write goes to a file before it is acknowledged
  std::string appendfsync{};     ///< always, everysec, no; empty when CONFIG is forbidden
  std::string eviction{};        ///< maxmemory-policy: noeviction, ...
  std::uint64_t max_memory = 0;  ///< bytes; 0: no limit
  std::uint64_t used_memory = 0;
  std::uint64_t evicted = 0;   ///< keys thrown away so far, to make room
  bool can_wait_disk = false;  ///< knows WAITAOF
  bool encrypted = false;      ///< the connection uses TLS
  bool cluster_ok = true;      ///< cluster_state
  std::size_t slots_covered = 0;
  std::chrono::microseconds round_trip{};  ///< the median of a few PINGs
};

/// What a client has done and met since it was made.
struct numbers {
  std::uint64_t calls = 0;          ///< call and pipeline
  std::uint64_t commands = 0;       ///< in them
  std::uint64_t in_flight = 0;      ///< calls that run now
  std::uint64_t moved = 0;          ///< MOVED redirects followed
  std::uint64_t asked = 0;          ///< ASK redirects followed
  std::uint64_t retried = 0;        ///< tries again after TRYAGAIN, CLUSTERDOWN, LOADING and alike, or a connection that could not be made
  std::uint64_t resent = 0;         ///< idempotent commands sent again after their reply was lost
  std::uint64_t in_doubt = 0;       ///< commands whose reply was lost, reported as such
  std::uint64_t whole_scripts = 0;  ///< scripts sent with their text
  std::uint64_t refreshes = 0;      ///< of the slot map
  std::uint64_t connected = 0;      ///< connections made
  std::uint64_t lost = 0;           ///< connections that broke
  std::uint64_t open = 0;           ///< connections now
  /// Commands that failed, by code.
  std::array<std::uint64_t, static_cast<std::size_t>(errc::internal) + 1> errors{};
  /// Calls by time: bucket n counts those below 2^n microseconds and not below half of it; the last one, all that took longer.
  std::array<std::uint64_t, 25> latency{};

  [[nodiscard]] HOLDFAST_API std::uint64_t errors_of(errc code) const noexcept;
  /// An upper bound of the time within which this part (0.5, 0.99) of all calls ended.
  [[nodiscard]] HOLDFAST_API std::chrono::microseconds latency_at(double part) const noexcept;
};

/// Redis behind a URL:
///
/// | URL | server |
/// | --- | --- |
/// | `redis://user:password@host:6379/0` | one server; the path is the number of the database |
/// | `rediss://host:6380?tls_ca=/etc/ca.pem` | the same through TLS; also `tls_cert`, `tls_key`, `tls_verify=0`, `tls_name` |
/// | `redis+unix:///run/redis.sock?db=1` | a Unix socket |
/// | `redis+cluster://host1:7000,host2:7000`, `rediss+cluster://...` | a Cluster; any of its nodes will do, several are better |
///
/// What happens to a command:
///
/// | it | error | transient | in doubt |
/// | --- | --- | --- | --- |
/// | was not sent, or the server did not run it (redirects, LOADING, CLUSTERDOWN...), and the attempts or the time ran out | unavailable, timeout | yes | no |
/// | was sent and its reply was lost; it is not idempotent | unavailable, timeout | yes | **yes** |
/// | was refused by the server | by its word, see docs/redis.md | by its word | no |
///
/// Thread-safety: every function may be called from any thread; a call has a connection to itself meanwhile. No threads of its own.
/// After fork the child must not use it: its calls throw errc::invalid_argument. It may destroy it, which takes no lock, sends nothing, closes
/// the child's copies of idle sockets and leaves the memory to the end of the process. Copies share connections and numbers.
class HOLDFAST_API client {
 public:
  /// Throws errc::invalid_argument for a URL that cannot be meant; connects only when it must.
  explicit client(std::string_view url, options how = {});

  /// Throws what went wrong, the server's refusal included.
  reply call(const command& what, const call_options& how = {}) const;

  /// Sends all and returns a reply for each, in the order of the commands. What went wrong with one of them is its reply; only a pipeline
  /// that cannot be meant throws (errc::invalid_argument: keys of one command in different slots of a Cluster; a command that would change
  /// the connection for the next caller, like MULTI, SELECT or SUBSCRIBE), before anything is sent.
  /// A Cluster's nodes work at the same time, and one that hangs costs only its own commands. Commands for one node run in their order, unless one has to be sent again (a redirect, a
  /// script that the server forgot): it runs after those behind it. Where order matters, use one script.
  std::vector<reply> pipeline(std::span<const command> what, const call_options& how = {}) const;

  [[nodiscard]] bool is_cluster() const noexcept;
  /// Asks the Cluster.
  [[nodiscard]] std::vector<node> nodes() const;
  /// What each server says about itself. Throws when one does not answer.
  [[nodiscard]] std::vector<server_report> probe() const;
  /// What one of them says.
  [[nodiscard]] server_report probe(const std::string& node) const;
  /// Nothing when it answers a PING; otherwise why not.
  [[nodiscard]] std::optional<error> health() const noexcept;
  [[nodiscard]] numbers count() const noexcept;

 private:
  class state;
  std::shared_ptr<state> state_;
};

}  // namespace HOLDFAST_NAMESPACE::redis
