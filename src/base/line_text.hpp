#pragma once

/// \file
/// Text for lines that people and machines read: escaping, and times.

#include <holdfast/clock.hpp>
#include <holdfast/version.hpp>

#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail {

/// Escapes control characters (including C1), characters that change the direction of text,
/// ill-formed UTF-8 and line breaks as `\x1b`. The result fits on one line and cannot control the
/// terminal.
[[nodiscard]] HOLDFAST_API std::string printable(std::string_view text);

/// A JSON string with its quotes. Escapes the same characters as `printable`. Ill-formed bytes
/// become U+FFFD.
[[nodiscard]] HOLDFAST_API std::string json_text(std::string_view text);

/// Formats `2024-01-31T12:00:00.000001Z`. Times outside of the years 0 to 9999 are shown as the
/// first or the last time of that range.
[[nodiscard]] HOLDFAST_API std::string iso_time(timestamp time);

}  // namespace HOLDFAST_NAMESPACE::detail
