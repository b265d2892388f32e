#pragma once

#include <holdfast/clock.hpp>
#include <holdfast/version.hpp>

#include <atomic>
#include <chrono>

namespace HOLDFAST_NAMESPACE::detail::failover {

/// The versions of answers: when their calls started. They do not decrease, unless the clock was
/// set back by more than `max_skew`.
///
/// All threads compare with the newest shared stamp. A stamp that is newer by less than
/// `share_every` is not shared: bringing the cache line from another processor takes a sixth of a
/// call. If the clock is set back by less than `share_every`, a stamp may be older than that of an
/// earlier call, by less than `share_every`.
/// Thread-safety: every function may be called from any thread.
class call_stamps {
 public:
  struct stamp {
    timestamp time{};
    bool set_back = false;  ///< this call noticed that the clock was set back
  };

  call_stamps(std::chrono::microseconds max_skew, std::chrono::microseconds share_every) noexcept
      : max_skew_(max_skew), share_every_(share_every) {}

  [[nodiscard]] stamp next(timestamp now) noexcept {
    auto newest = newest_.load(std::memory_order_relaxed);
    while (now != newest) {
      const bool first = newest == timestamp::min();
      if (!first && now > newest && now - newest < share_every_) return {.time = now};
      // If this process kept the future time, other processes would overwrite its entries, and it
      // would serve expired ones. So it follows the clock.
      const bool set_back = !first && newest - now > max_skew_;
      if (now < newest && !set_back) return {.time = newest};
      if (newest_.compare_exchange_weak(newest, now, std::memory_order_relaxed))
        return {.time = now, .set_back = set_back};
    }
    return {.time = now};
  }

 private:
  const std::chrono::microseconds max_skew_;
  const std::chrono::microseconds share_every_;
  std::atomic<timestamp> newest_{timestamp::min()};
};

}  // namespace HOLDFAST_NAMESPACE::detail::failover
