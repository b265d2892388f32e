#pragma once

/// \file
/// Reads of one row that several callers wait for.

#include <holdfast/store.hpp>

#include "failover/store_work.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <unordered_map>

namespace HOLDFAST_NAMESPACE::detail::failover {

enum class read_status : std::uint8_t { row, no_row, failed, late };
struct read_result {
  read_status status = read_status::no_row;
  std::optional<entry> row{};
};

/// A read on another thread.
struct row_read : store_work {
  read_result result{};
  std::exception_ptr read_error{};
  std::chrono::steady_clock::time_point started{};
};

/// The running reads, by the id of the row.
/// Thread-safety: every function may be called from any thread.
class shared_reads {
 public:
  struct membership {
    std::shared_ptr<row_read> read{};
    bool leader = false;  ///< this caller starts the read and must `finish` it
  };
  [[nodiscard]] membership join(const std::string& id) {
    const std::scoped_lock lock(mutex_);
    auto& running = running_[id];
    if (running) {
      const std::scoped_lock read_lock(running->mutex);
      // A read that all callers have left may never start.
      if (!running->abandoned) {
        ++running->callers;
        return {.read = running, .leader = false};
      }
    }
    running = std::make_shared<row_read>();
    return {.read = running, .leader = true};
  }
  /// A caller that joins later starts another read.
  void finish(const std::string& id, const row_read& read) {
    const std::scoped_lock lock(mutex_);
    const auto running = running_.find(id);
    if (running != running_.end() && running->second.get() == &read) running_.erase(running);
  }

 private:
  std::mutex mutex_{};
  std::unordered_map<std::string, std::shared_ptr<row_read>> running_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::failover
