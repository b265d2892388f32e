#pragma once

#include <holdfast/log.hpp>
#include <holdfast/store/write_behind.hpp>

#include "store/write_behind/pending_operations.hpp"
#include "store/write_behind/queue_rules.hpp"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <random>

namespace HOLDFAST_NAMESPACE::detail::store {

/// The pause after failures of the store below: it doubles with each failure, with jitter.
class retry_pause {
 public:
  using time = std::chrono::steady_clock::time_point;

  explicit retry_pause(const write_behind_options& options);

  void add_failure(time now);
  void reset() noexcept;
  /// Ends the current pause. Keeps the number of failures.
  void skip() noexcept { not_before_ = time::min(); }
  [[nodiscard]] unsigned failures() const noexcept { return failures_; }
  [[nodiscard]] time not_before() const noexcept { return not_before_; }
  /// The time of the first failure since the last success.
  [[nodiscard]] std::optional<time> failing_since() const noexcept { return failing_since_; }

 private:
  std::chrono::microseconds first_;
  std::chrono::microseconds longest_;
  unsigned failures_ = 0;
  time not_before_ = time::min();
  std::optional<time> failing_since_{};
  std::minstd_rand random_;
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

  mutable std::mutex mutex{};
  std::condition_variable room_available{};  // for puts that wait for room
  std::condition_variable batch_finished{};  // for flushes
  std::size_t puts_waiting = 0;
  std::size_t flushes_waiting = 0;
  pending_operations pending;
  retry_pause retry;
  bool closed = false;   // puts and erases are refused
  bool stopped = false;  // nothing is written any more

  [[nodiscard]] time steady_now() const noexcept { return options.clock->steady(); }
  /// The skew_horizon of the current time.
  [[nodiscard]] timestamp horizon() const noexcept;
  /// Throws errc::unavailable if closed. Requires the lock, as numbers() does.
  void check_open() const;
  [[nodiscard]] write_behind_numbers numbers() const;
};

}  // namespace HOLDFAST_NAMESPACE::detail::store
