#pragma once

/// \file
/// Reads points in time as interop values spell them: ISO 8601, as Python's
/// `isoformat()` and JavaScript's `toISOString()` print it. Anything else is
/// not one: there is no guessing.

#include <holdfast/key/value.hpp>
#include <holdfast/version.hpp>

#include <optional>
#include <string_view>

namespace HOLDFAST_NAMESPACE::key {

/// `2024-01-31T12:30:45[.123456789](Z|+01:00[:30[.123456]])`; years 0001 to 9999. The offset is required.
[[nodiscard]] std::optional<instant> parse_instant(std::string_view text);

/// `2024-01-31`
[[nodiscard]] std::optional<date> parse_date(std::string_view text);

/// `12:30:45[.123456]`, without an offset.
[[nodiscard]] std::optional<time_of_day> parse_time_of_day(std::string_view text);

}  // namespace HOLDFAST_NAMESPACE::key
