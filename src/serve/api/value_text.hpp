#pragma once

/// \file
/// Times and durations as the API writes them, in JSON and in queries.

#include <holdfast/version.hpp>

#include <chrono>
#include <optional>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// `500ms`, `30s`, `15m`, `24h`, `7d`. Returns nothing for other texts, and for negative ones.
[[nodiscard]] std::optional<std::chrono::milliseconds> parse_duration(std::string_view text);

/// RFC 3339 with a zone, at most microseconds: `2026-11-15T23:05:16.120431Z`.
[[nodiscard]] std::optional<std::chrono::sys_time<std::chrono::microseconds>> parse_time(
    std::string_view text);

}  // namespace HOLDFAST_NAMESPACE::detail::serve
