#pragma once

#include <holdfast/version.hpp>

#include "base/duration_limit.hpp"
#include "sql/public_names.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace HOLDFAST_NAMESPACE::detail::sql {

/// The time limit of one call to a driver. All round trips of the call share it.
struct call_deadline {
  using clock = std::chrono::steady_clock;

  explicit call_deadline(std::chrono::milliseconds longest)
      : limit(limit_duration(longest)), expires(clock::now() + limit) {}

  std::chrono::milliseconds limit;
  clock::time_point expires;

  [[nodiscard]] clock::time_point started() const { return expires - limit; }
  [[nodiscard]] bool expired() const { return clock::now() >= expires; }
  /// The remaining time for poll(2), rounded up: 0 when expired, at most one hour.
  [[nodiscard]] int poll_timeout() const {
    const auto remaining = std::chrono::ceil<std::chrono::milliseconds>(expires - clock::now());
    return static_cast<int>(std::clamp<std::int64_t>(remaining.count(), 0, 3'600'000));
  }
};

/// What a lost connection means for the statement that was sent.
enum class loss : std::uint8_t {
  harmless,  ///< the statement changes nothing, or the server rolls it back
  in_doubt   ///< the statement may have taken effect
};

}  // namespace HOLDFAST_NAMESPACE::detail::sql
