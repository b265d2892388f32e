#pragma once

/// \file
/// Circuit breaker options. Protected calls and the handlers of an outbox use them.

#include <holdfast/version.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace HOLDFAST_NAMESPACE {

/// A circuit breaker: it opens when too many of the last calls to the upstream failed or were slow,
/// and then refuses calls for a while. It counts calls to the upstream, never those to the store.
struct breaker_options {
  /// Number of recent calls that are counted.
  std::size_t window = 100;
  /// The breaker stays closed until so many calls are counted.
  std::size_t minimum = 10;
  /// The breaker opens when this fraction of the calls failed.
  double failure_rate = 0.5;
  /// A call that takes longer is slow. Nothing: no call is slow.
  std::optional<std::chrono::microseconds> slow{};
  /// The breaker opens when this fraction of the calls was slow.
  double slow_rate = 1.0;
  /// How long an open breaker refuses calls.
  std::chrono::microseconds open_for = std::chrono::seconds(30);
  /// Number of calls that are admitted after `open_for`. If all succeed, the breaker closes.
  std::size_t probes = 3;
};

enum class breaker_state : std::uint8_t { closed, half_open, open };
/// The stable name: `closed`, `half_open`, `open`.
[[nodiscard]] HOLDFAST_API std::string_view to_string(breaker_state state) noexcept;

}  // namespace HOLDFAST_NAMESPACE
