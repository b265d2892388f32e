#pragma once

#include <holdfast/log.hpp>
#include <holdfast/store/write_behind.hpp>

#include "store/write_behind/pending_operations.hpp"
#include "store/write_behind/queue_rules.hpp"
#include "store/write_behind/retry_pause.hpp"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

namespace HOLDFAST_NAMESPACE::detail::store {

/// Why an operation is given up.
enum class given_up : std::uint8_t {
  refused,      ///< the store below refuses it permanently
  quarantined,  ///< it keeps failing for an unknown reason; see batch_writer
  dropped       ///< the queue is full
};

/// What the parts of a write-behind store share: the store below, the options, and the state that
/// the mutex protects.
struct queue_state {
  using time = std::chrono::steady_clock::time_point;
  using guard = std::unique_lock<std::mutex>;

  /// Throws errc::invalid_argument for invalid options.
  queue_state(std::shared_ptr<holdfast::store> store_below, write_behind_options unchecked_options,
              std::shared_ptr<const queue_rules> rules_to_use);
  queue_state(const queue_state&) = delete;
  queue_state& operator=(const queue_state&) = delete;
  ~queue_state() = default;

  const std::shared_ptr<holdfast::store> next;
  const write_behind_options options;
  const std::shared_ptr<const queue_rules> rules;
  const logger log;
  const logger given_up_log;  // limits the records of each key, not all records together

  mutable std::mutex mutex{};
  std::condition_variable room_available{};  // for puts that wait for room
  std::condition_variable batch_finished{};  // for flushes
  std::size_t puts_waiting = 0;
  std::size_t flushes_waiting = 0;
  pending_operations pending;
  retry_pause retry;
  std::optional<time> writing_since{};  // since when a batch is being written
  bool closed = false;                  // puts and erases are refused
  bool stopped = false;                 // nothing is written any more

  [[nodiscard]] time steady_now() const noexcept { return options.clock->steady(); }
  /// The skew_horizon of the current time.
  [[nodiscard]] timestamp horizon() const noexcept;
  /// Throws errc::unavailable if closed. Requires the lock, as numbers() does.
  void check_open() const;
  [[nodiscard]] write_behind_numbers numbers() const;
  /// Logs an operation that was given up and calls on_failed. Must be called without the lock.
  void report_given_up(const entry& value, const error& reason, given_up cause) const noexcept;
};

}  // namespace HOLDFAST_NAMESPACE::detail::store
