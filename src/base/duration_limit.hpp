#pragma once

/// \file
/// Upper bounds for durations that come from options. A caller may write `milliseconds::max()` for
/// "no limit". Added to a time point or converted to nanoseconds, that value overflows into the
/// past.

#include <holdfast/error.hpp>
#include <holdfast/version.hpp>

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <type_traits>

namespace HOLDFAST_NAMESPACE::detail {

/// One year: longer than any useful timeout, and safe to add to a time point in nanoseconds.
inline constexpr std::chrono::hours longest_duration{24 * 366};

/// The shorter of `duration` and `longest`.
template <class Rep, class Period>
[[nodiscard]] constexpr std::chrono::duration<Rep, Period> limit_duration(
    std::chrono::duration<Rep, Period> duration,
    std::type_identity_t<std::chrono::duration<Rep, Period>> longest = longest_duration) noexcept {
  return std::min(duration, longest);
}

/// As limit_duration. Throws errc::invalid_argument unless `duration` is positive; `name` is the
/// option that the message names.
template <class Rep, class Period>
[[nodiscard]] std::chrono::duration<Rep, Period> positive_duration(
    std::string_view name, std::chrono::duration<Rep, Period> duration,
    std::type_identity_t<std::chrono::duration<Rep, Period>> longest = longest_duration) {
  if (duration <= duration.zero())
    throw error(errc::invalid_argument, std::string(name) + " must be positive");
  return limit_duration(duration, longest);
}

}  // namespace HOLDFAST_NAMESPACE::detail
