#pragma once

#include <holdfast/log.hpp>
#include <holdfast/version.hpp>

#include "sql/public_names.hpp"
#include "sql/watched_session.hpp"

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::sql {

class pool;

/// A connection of a pool, while it is open.
struct pool_slot {
  using time_point = std::chrono::steady_clock::time_point;

  std::unique_ptr<sql::connection> connection{};  ///< null while it is being opened
  watched_session* watched = nullptr;             ///< the connection; null if it is not one
  time_point opened{};
  time_point since{};              ///< when it was lent, or returned; exact to some milliseconds
  const char* borrower = nullptr;  ///< the operation that uses it; null if it is idle
  bool is_writer = false;
  bool reported = false;  ///< as held too long, since it was lent
};

/// A connection that is lent by a pool until this object is destroyed.
class HOLDFAST_API pooled_connection {
 public:
  pooled_connection(pooled_connection&& other) noexcept;
  pooled_connection& operator=(pooled_connection&&) = delete;
  ~pooled_connection();
  [[nodiscard]] connection& operator*() const noexcept { return *slot_->connection; }
  [[nodiscard]] connection* operator->() const noexcept { return slot_->connection.get(); }

 private:
  friend class pool;
  pooled_connection(pool& owner, pool_slot& slot) : owner_(&owner), slot_(&slot) {}

  pool* owner_;
  pool_slot* slot_;
};

/// A bounded pool of connections that are opened on demand. One connection is reserved for writing:
/// a write waits for the writes before it, but never for readers. (SQLite has a single writer
/// anyway.)
///
/// A connection that was idle for a while must answer a ping before it is lent. While connections
/// are open, a thread closes those that are idle for too long or too old, and reports those that
/// are lent for too long. If a connection is lent for longer than two seconds, the thread opens
/// another one and asks its server for the session of the first. If the server does not have it,
/// the first leads to a server that was replaced, and its call is interrupted.
///
/// `borrower` is the operation that needs the connection, for the log: a text that lives as long as
/// the program, such as "store.find".
///
/// Thread-safety: every function may be called from any thread. Every pooled_connection must be
/// destroyed before the pool.
class HOLDFAST_API pool {
 public:
  pool(connection_factory connect, pool_options options, std::shared_ptr<const logger> log);
  pool(const pool&) = delete;
  pool& operator=(const pool&) = delete;
  ~pool();

  /// Lends a connection. Waits up to the acquire timeout. Throws errc::timeout (transient) if all
  /// are in use, or what connecting throws.
  [[nodiscard]] pooled_connection acquire_reader(const char* borrower);
  /// As acquire_reader(), but returns nothing instead of waiting for a connection.
  [[nodiscard]] std::optional<pooled_connection> try_acquire_reader(const char* borrower);
  /// As acquire_reader(), but lends the connection that is reserved for writing. Callers get it in
  /// the order in which they asked.
  [[nodiscard]] pooled_connection acquire_writer(const char* borrower);

  /// Opens a connection outside the pool, for a caller that keeps it as long as the program runs.
  [[nodiscard]] std::unique_ptr<connection> open_unpooled() const { return connect_(); }

  struct counters {
    std::size_t open = 0;             ///< open connections
    std::size_t in_use = 0;           ///< open connections that are lent
    std::size_t waiting_writers = 0;  ///< callers that wait in acquire_writer()
    std::uint64_t opened = 0;         ///< connections opened so far
    std::uint64_t timeouts = 0;       ///< callers that waited in vain
    std::uint64_t held_too_long = 0;  ///< connections that were held longer than leak_detection
    std::uint64_t found_dead = 0;     ///< idle connections that did not answer the ping
    std::uint64_t replaced = 0;       ///< connections in use whose server was replaced
  };
  [[nodiscard]] counters stats() const;

 private:
  friend class pooled_connection;
  using time_point = pool_slot::time_point;
  using guard = std::unique_lock<std::mutex>;
  using connections = std::vector<std::unique_ptr<sql::connection>>;
  struct overdue_connection {
    const char* borrower;
    std::chrono::steady_clock::duration held;
  };

  [[nodiscard]] std::optional<pooled_connection> acquire_reader(const char* borrower, bool wait);
  [[nodiscard]] pool_slot* take_idle(guard& lock, std::vector<pool_slot*>& idle,
                                     const char* borrower, connections& expired);
  [[nodiscard]] bool validate(guard& lock, pool_slot& slot, connections& expired);
  [[nodiscard]] pool_slot& open(guard& lock, bool is_writer, const char* borrower);
  [[nodiscard]] std::unique_ptr<sql::connection> remove(pool_slot& slot) noexcept;
  void keep_writer_connect_error() noexcept;
  void give_back(pool_slot& slot) noexcept;
  [[noreturn]] void throw_timeout(const std::string& reason);
  [[nodiscard]] bool must_close(const pool_slot& idle, time_point now) const;

  void start_keeper() noexcept;
  void run_keeper() noexcept;
  [[nodiscard]] time_point next_check(time_point now) const;
  void collect_idle(time_point now, connections& closed);
  void collect_overdue(time_point now, std::vector<overdue_connection>& overdue);
  [[nodiscard]] bool must_ask_for_sessions(time_point now) const;
  void ask_for_sessions(guard& lock);
  void report(const overdue_connection& overdue) const noexcept;
  void report_return(const char* borrower, std::chrono::steady_clock::duration held) const noexcept;

  const connection_factory connect_;
  const pool_options options_;
  const std::shared_ptr<const logger> log_;

  mutable std::mutex mutex_{};
  std::condition_variable changed_{};
  std::vector<std::unique_ptr<pool_slot>> slots_{};
  std::vector<pool_slot*> idle_readers_{};
  std::vector<pool_slot*> idle_writers_{};  // at most one
  bool writer_in_use_ = false;
  std::uint64_t last_ticket_ = 0;
  std::deque<std::uint64_t> waiting_writers_{};  // their tickets, the first caller in front
  time_point last_broken_{};                     // when a broken connection was last returned
  time_point last_read_only_{};                  // when a server last refused to write
  time_point next_question_{};                   // to the server, about sessions
  std::size_t watched_count_ = 0;                // open connections that are watched
  // Of the last attempt to open the connection for writing; empty if it succeeded.
  std::string writer_connect_failure_{};
  counters counters_{};

  /// The thread that watches the connections.
  struct keeper {
    bool running = false;
    bool stopping = false;
    std::condition_variable stop{};
    std::jthread thread{};
  };
  const pid_t owner_;               // the process that created the pool
  std::unique_ptr<keeper> keeper_;  // last: the thread uses all of the above
};

}  // namespace HOLDFAST_NAMESPACE::detail::sql
