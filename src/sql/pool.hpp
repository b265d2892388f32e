#pragma once

#include <holdfast/log.hpp>
#include <holdfast/version.hpp>

#include "sql/public_names.hpp"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::sql {

class pool;

/// A connection that is lent by a pool until this object is destroyed.
class HOLDFAST_API pooled_connection {
 public:
  pooled_connection(pooled_connection&& other) noexcept;
  pooled_connection& operator=(pooled_connection&&) = delete;
  ~pooled_connection();
  [[nodiscard]] connection& operator*() const noexcept { return *connection_; }
  [[nodiscard]] connection* operator->() const noexcept { return connection_.get(); }

 private:
  friend class pool;
  using time_point = std::chrono::steady_clock::time_point;
  pooled_connection(pool& owner, std::unique_ptr<connection> lent, bool is_writer,
                    time_point opened);

  pool* owner_;
  std::unique_ptr<connection> connection_;
  bool is_writer_;
  time_point opened_;
  time_point lent_;
};

/// A bounded pool of connections that are opened on demand. One connection is reserved for writing:
/// a write waits for the writes before it, but never for readers. (SQLite has a single writer
/// anyway.)
///
/// Thread-safety: every function may be called from any thread. Every pooled_connection must be
/// destroyed before the pool.
class HOLDFAST_API pool {
 public:
  pool(connection_factory connect, pool_options options, std::shared_ptr<const logger> log);
  pool(const pool&) = delete;
  pool& operator=(const pool&) = delete;

  /// Lends a connection. Waits up to the acquire timeout. Throws errc::timeout (transient) if all
  /// are in use, or what connecting throws.
  [[nodiscard]] pooled_connection acquire_reader();
  /// As acquire_reader(), but lends the connection that is reserved for writing. Callers get it in
  /// the order in which they asked.
  [[nodiscard]] pooled_connection acquire_writer();

  /// Opens a connection outside the pool, for a caller that keeps it as long as the program runs.
  [[nodiscard]] std::unique_ptr<connection> open_unpooled() const { return connect_(); }

  struct counters {
    std::size_t open = 0;             ///< open connections
    std::size_t in_use = 0;           ///< open connections that are lent
    std::size_t waiting_writers = 0;  ///< callers that wait in acquire_writer()
    std::uint64_t opened = 0;         ///< connections opened so far
    std::uint64_t timeouts = 0;       ///< callers that waited in vain
    std::uint64_t held_too_long = 0;  ///< connections that were held longer than leak_detection
  };
  [[nodiscard]] counters stats() const;

 private:
  friend class pooled_connection;
  using time_point = std::chrono::steady_clock::time_point;
  struct idle_connection {
    std::unique_ptr<sql::connection> connection;
    time_point opened;
  };

  std::optional<idle_connection> take_idle(std::vector<idle_connection>& idle,
                                           std::vector<idle_connection>& expired);
  pooled_connection open(std::unique_lock<std::mutex>& lock, bool is_writer);
  void keep_writer_connect_error() noexcept;
  void give_back(pooled_connection& returned) noexcept;
  void warn_held_too_long(std::chrono::steady_clock::duration held) const noexcept;
  [[noreturn]] void throw_timeout(const std::string& reason);
  [[nodiscard]] bool too_old(time_point opened) const;

  const connection_factory connect_;
  const pool_options options_;
  const std::shared_ptr<const logger> log_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<idle_connection> idle_readers_;
  std::vector<idle_connection> idle_writers_;  // at most one
  bool writer_in_use_ = false;
  std::uint64_t last_ticket_ = 0;
  std::deque<std::uint64_t> waiting_writers_{};  // their tickets, the first caller in front
  time_point last_broken_{};                     // when a broken connection was last returned
  // Of the last attempt to open the connection for writing; empty if it succeeded.
  std::string writer_connect_failure_{};
  counters counters_;
};

}  // namespace HOLDFAST_NAMESPACE::detail::sql
