#include "redis/connect_gate.hpp"

#include "base/backoff.hpp"

namespace HOLDFAST_NAMESPACE::detail::redis {

namespace {

constexpr std::chrono::microseconds first_connect_pause = std::chrono::milliseconds(20);
/// A server that has returned is used within this time.
constexpr std::chrono::microseconds longest_connect_pause = std::chrono::milliseconds(500);

}  // namespace

void connect_gate::enter(steady::time_point now) {
  if (!reason_) return;
  if (probing_ || now < retry_at_) throw error(*reason_);
  probing_ = true;
}

void connect_gate::succeeded() noexcept {
  failures_ = 0;
  probing_ = false;
  reason_.reset();
}

void connect_gate::failed(const error& problem, steady::time_point start, steady::time_point now) {
  // Attempts that began before the last failure are part of it.
  if (reason_ && start <= failed_at_) return;
  probing_ = false;
  failed_at_ = now;
  reason_ = problem;
  retry_at_ =
      now + with_jitter(doubled_pause(first_connect_pause, failures_++, longest_connect_pause),
                        thread_random());
}

void connect_gate::cancelled(steady::time_point start, steady::time_point now) noexcept {
  if (!probing_ || start <= failed_at_) return;
  probing_ = false;
  retry_at_ = now;
}

}  // namespace HOLDFAST_NAMESPACE::detail::redis
