#pragma once

/// \file
/// A circuit breaker. See holdfast/breaker.hpp for its options.

#include <holdfast/breaker.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail {

/// How a call to the upstream ended.
enum class call_result : std::uint8_t {
  success,
  failure,
  none  ///< not counted: the call was cancelled, abandoned or never made
};

/// A state machine over the last calls of an upstream:
///
///     closed     --too many of the last calls failed or were slow-->  open
///     open       --open_for has passed-->                             half open
///     half open  --all probes succeeded-->                            closed
///     half open  --a probe failed or was slow-->                      open
///
/// Closed admits every call, open admits none, half open admits a few probes. The caller passes the
/// current time.
/// Thread-safety: every function may be called from any thread.
class HOLDFAST_API breaker {
 public:
  using moment = std::chrono::steady_clock::time_point;

  explicit breaker(const breaker_options& options);

  /// Returns what is wrong with the options, or an empty text.
  [[nodiscard]] static std::string problem_of(const breaker_options& options);

  /// The decision about one call. If it is allowed, the caller makes the call and passes the ticket
  /// to `ended`.
  struct ticket {
    bool allowed = false;
    /// Number of the state in which the call began. Later states do not count the call.
    std::uint32_t period = 0;
  };
  [[nodiscard]] ticket ask(moment now);
  void ended(ticket call, moment now, call_result result,
             std::chrono::steady_clock::duration duration);

  [[nodiscard]] breaker_state state(moment now) const;
  /// How often the breaker has opened.
  [[nodiscard]] std::uint64_t opened() const;

 private:
  struct outcome {
    bool failed;
    bool slow;
  };
  void open(moment now);
  void half_open(moment now);
  void enter(breaker_state state);
  void count(outcome call);

  const breaker_options options_;
  mutable std::mutex mutex_{};
  breaker_state state_ = breaker_state::closed;
  std::uint32_t period_ = 1;
  moment open_until_{};            // when half open: when the probes count as lost
  std::vector<outcome> window_{};  // a ring buffer once it is full
  std::size_t next_ = 0;           // index of the oldest outcome in a full window
  std::size_t failed_ = 0;         // failed calls in the window
  std::size_t slow_ = 0;           // slow calls in the window
  std::size_t probes_ = 0;         // probes that were admitted
  std::size_t good_probes_ = 0;    // probes that succeeded
  std::uint64_t opened_ = 0;
};

}  // namespace HOLDFAST_NAMESPACE::detail
