#include "base/first_use.hpp"

#include <utility>

namespace HOLDFAST_NAMESPACE::detail {

void first_use::run_or_share(const std::function<void()>& action) {
  std::unique_lock lock(mutex_);
  while (running_) {
    const auto shared = running_;
    attempt_ended_.wait(lock, [&] { return shared->ended; });
    if (shared->failure) std::rethrow_exception(shared->failure);
  }
  if (done()) return;
  const auto own = running_ = std::make_shared<attempt>();
  lock.unlock();
  try {
    action();
  } catch (...) {
    // Null if the thread is cancelled. The callers that wait then try themselves.
    end(*own, std::current_exception());
    throw;
  }
  done_.store(true, std::memory_order_release);
  end(*own, nullptr);
}

void first_use::end(attempt& ended_attempt, std::exception_ptr failure) noexcept {
  const std::scoped_lock lock(mutex_);
  ended_attempt.failure = std::move(failure);
  ended_attempt.ended = true;
  running_.reset();
  attempt_ended_.notify_all();
}

}  // namespace HOLDFAST_NAMESPACE::detail
