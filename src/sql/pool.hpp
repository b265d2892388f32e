#pragma once

#include <holdfast/database.hpp>
#include <holdfast/log.hpp>
#include <holdfast/sql.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::sql {

/// Connections, made on demand, bounded, and handed out one caller at a time. One of them is the writer's: a write waits for the write
/// before it, never for readers, and SQLite has only one writer anyway.
/// Thread-safety: every function may be called from any thread. Leases must be gone before the pool is.
class HOLDFAST_API pool {
 public:
  pool(connection_factory connect, pool_options options, std::shared_ptr<const logger> log);
  pool(const pool&) = delete;
  pool& operator=(const pool&) = delete;

  /// A connection for as long as this lives; it goes back by itself.
  class lease {
   public:
    lease(lease&& other) noexcept;
    lease& operator=(lease&&) = delete;
    ~lease();
    [[nodiscard]] connection& operator*() const noexcept { return *held_; }
    [[nodiscard]] connection* operator->() const noexcept { return held_.get(); }

   private:
    friend class pool;
    lease(pool& from, std::unique_ptr<connection> held, bool writer, std::chrono::steady_clock::time_point made);

    pool* from_;
    std::unique_ptr<connection> held_;
    bool writer_;
    std::chrono::steady_clock::time_point made_;
    std::chrono::steady_clock::time_point taken_;
  };

  /// Waits up to the acquire timeout. Throws errc::timeout (transient) when all are taken, or what connecting throws.
  [[nodiscard]] lease reader();
  [[nodiscard]] lease writer();

  /// What makes the connections: for a pool of a child process.
  [[nodiscard]] const connection_factory& factory() const noexcept { return connect_; }

  /// A connection of the caller's own, not counted: for one that is used for as long as the program runs.
  [[nodiscard]] std::unique_ptr<connection> another() const { return connect_(); }

  struct numbers {
    std::size_t open = 0;        ///< connections that exist
    std::size_t taken = 0;       ///< of these, in somebody's hands
    std::size_t waiting = 0;     ///< callers that wait for the writer
    std::uint64_t made = 0;      ///< since the beginning
    std::uint64_t timeouts = 0;  ///< callers that waited in vain
    std::uint64_t leaks = 0;     ///< leases held longer than the threshold, seen when they ended
  };
  [[nodiscard]] numbers count() const;

 private:
  struct idle {
    std::unique_ptr<connection> held;
    std::chrono::steady_clock::time_point made;
  };

  lease connect_now(std::unique_lock<std::mutex>& lock, bool writer);
  void note_refusal() noexcept;
  void take_back(lease& done) noexcept;
  std::optional<idle> take_idle(std::vector<idle>& from, std::vector<idle>& dropped);
  [[noreturn]] void fail_waiting(const std::string& what);
  [[nodiscard]] bool too_old(std::chrono::steady_clock::time_point made) const;

  const connection_factory connect_;
  const pool_options options_;
  const std::shared_ptr<const logger> log_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<idle> readers_;
  std::vector<idle> writers_;  // at most one
  bool writer_taken_ = false;
  std::uint64_t tickets_ = 0;
  std::deque<std::uint64_t> waiting_writers_{};           // their tickets, the first to come in front
  std::chrono::steady_clock::time_point broken_until_{};  // when a broken connection last came back
  std::string refusal_{};                                 // why the last try to connect failed; empty when it did not
  numbers numbers_;
};

}  // namespace HOLDFAST_NAMESPACE::sql
