#pragma once

/// \file
/// When something that fails most of the time is left alone: shared by protected calls and by the handlers of an outbox.

#include <holdfast/version.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace HOLDFAST_NAMESPACE {

/// A breaker: an upstream that fails most of the time is left alone for a while. It sees the upstream only, never the store.
struct breaker_options {
  std::size_t window = 100;                                       ///< how many calls are looked at
  std::size_t minimum = 10;                                       ///< so many must be there before it can open
  double failure_rate = 0.5;                                      ///< it opens when this part of them failed
  std::optional<std::chrono::microseconds> slow{};                ///< a call that takes longer is slow
  double slow_rate = 1.0;                                         ///< it opens when this part of them was slow
  std::chrono::microseconds open_for = std::chrono::seconds(30);  ///< how long the upstream is left alone
  std::size_t probes = 3;                                         ///< calls that are let through afterwards; when they succeed it closes
};

enum class breaker_state : std::uint8_t { closed, half_open, open };
/// The stable spelling: `closed`, `half_open`, `open`.
[[nodiscard]] HOLDFAST_API std::string_view to_string(breaker_state state) noexcept;

}  // namespace HOLDFAST_NAMESPACE
