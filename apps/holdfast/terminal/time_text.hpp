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

/// Parses a time of RFC 3339: what iso_time returns, also without a fraction or with up to nine
/// digits (the last three are ignored), and with an offset: `2024-01-31T14:00:00+02:00`. Throws
/// errc::invalid_argument.
[[nodiscard]] timestamp parse_iso_time(std::string_view text);

/// Formats a duration for people in at most two units: `850 ms`, `8.1 s`, `12 s`, `3 m 5 s`, `2 h
/// 30 m`, `12 d 3 h`. Ignores the sign.
[[nodiscard]] std::string human_duration(std::chrono::microseconds duration);

}  // namespace holdfast::cli
