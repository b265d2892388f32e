#pragma once

/// \file
/// Work that is done at the first use of an object, because it asks a server.

#include <holdfast/version.hpp>

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>

namespace HOLDFAST_NAMESPACE::detail {

/// As std::once_flag, but callers that come while the action runs share its outcome, also its
/// failure. A server that does not answer therefore delays each of them once, instead of one after
/// the other. After a failure the next caller tries again.
///
/// Thread-safety: every function may be called from any thread. What the action wrote is visible to
/// everyone for whom run() returned or done() returned true.
class HOLDFAST_API first_use {
 public:
  first_use() = default;
  first_use(const first_use&) = delete;
  first_use& operator=(const first_use&) = delete;
  ~first_use() = default;

  /// Runs the action, unless it has succeeded before. Throws what the action throws.
  template <class Action>
  void run(Action&& action) {
    if (!done()) run_or_share(std::ref(action));
  }
  [[nodiscard]] bool done() const noexcept { return done_.load(std::memory_order_acquire); }

 private:
  struct attempt {
    bool ended = false;
    std::exception_ptr failure{};
  };
  void run_or_share(const std::function<void()>& action);
  void end(attempt& ended_attempt, std::exception_ptr failure) noexcept;

  std::atomic<bool> done_{false};
  std::mutex mutex_{};
  std::condition_variable attempt_ended_{};
  std::shared_ptr<attempt> running_{};  // null if no caller runs the action
};

}  // namespace HOLDFAST_NAMESPACE::detail
