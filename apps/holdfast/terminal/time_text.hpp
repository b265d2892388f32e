#pragma once

/// \file
/// Durations and times as text.

#include <holdfast/clock.hpp>

#include <chrono>
#include <string>
#include <string_view>

namespace holdfast::cli {

/// Parses `90s`, `15m`, `1h`, `7d`; at most 36500 days. Throws errc::invalid_argument.
[[nodiscard]] std::chrono::microseconds parse_duration(std::string_view text);

/// Formats `2024-01-31T12:00:00.000001Z`. Times outside of the years 0 to 9999 are shown as the
/// first or the last time of that range.
[[nodiscard]] std::string iso_time(timestamp time);

/// Parses what iso_time returns. Throws errc::invalid_argument.
[[nodiscard]] timestamp parse_iso_time(std::string_view text);

}  // namespace holdfast::cli
