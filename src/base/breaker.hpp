#pragma once

#include <holdfast/breaker.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace HOLDFAST_NAMESPACE {

/// How a call to the upstream ended, as far as a breaker is concerned.
enum class call_result : std::uint8_t {
  success,
  failure,
  none  ///< says nothing about the upstream: cancelled, abandoned, never made
};

/// Looks at the last calls of an upstream; when too many of them failed or were slow it opens, and no call is let through. After a while a
/// few probes are: when all of them succeed it closes, when one fails it opens again.
/// Thread-safety: every function may be called from any thread. It reads no clock: the moment is given.
class HOLDFAST_API breaker {
 public:
  using moment = std::chrono::steady_clock::time_point;

  explicit breaker(const breaker_options& options);

  /// What is wrong with options; empty when nothing is.
  [[nodiscard]] static std::string problem_of(const breaker_options& options);

  /// A call that may be made; `ended` must be told with the same ticket. `allowed` is false when it must not be made.
  struct ticket {
    bool allowed = false;
    std::uint32_t period = 0;  ///< calls of an earlier state are not counted in a later one
  };
  [[nodiscard]] ticket ask(moment now);
  void ended(ticket which, moment now, call_result how, std::chrono::steady_clock::duration took);

  [[nodiscard]] breaker_state state(moment now) const;
  /// How often it opened.
  [[nodiscard]] std::uint64_t opened() const;

 private:
  struct outcome {
    bool failed;
    bool slow;
  };
  void open(moment now);
  void enter(breaker_state state);
  void note(outcome one);

  const breaker_options options_;
  mutable std::mutex mutex_{};
  breaker_state state_ = breaker_state::closed;
  std::uint32_t period_ = 1;
  moment open_until_{};
  std::vector<outcome> window_{};  // a ring, once it is full
  std::size_t next_ = 0;
  std::size_t failed_ = 0;
  std::size_t slow_ = 0;
  std::size_t probing_ = 0;  // probes that were let through
  std::size_t probed_ = 0;   // of these, succeeded
  std::uint64_t opened_ = 0;
};

}  // namespace HOLDFAST_NAMESPACE
