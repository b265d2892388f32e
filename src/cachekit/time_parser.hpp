#pragma once

/// \file
/// Parses the times of interop values: ISO 8601 as Python's `isoformat()` and JavaScript's
/// `toISOString()` print it. Each function returns nullopt for any other form, and for a date or
/// time that does not exist.
///
/// A fraction of a second has one to nine digits.

#include <holdfast/key/value.hpp>
#include <holdfast/version.hpp>

#include <optional>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::cachekit {

/// `2024-01-31T12:30:45Z`, or with an offset as in `+01:00` or `-01:00:30` instead of `Z`. The
/// seconds may have a fraction. The offset is required; its seconds may have a fraction of whole
/// microseconds. Years are 0001 to 9999.
[[nodiscard]] std::optional<holdfast::key::instant> parse_instant(std::string_view text);

/// `2024-01-31`
[[nodiscard]] std::optional<holdfast::key::date> parse_date(std::string_view text);

/// `12:30:45`, without an offset. The seconds may have a fraction of whole microseconds.
[[nodiscard]] std::optional<holdfast::key::time_of_day> parse_time_of_day(std::string_view text);

}  // namespace HOLDFAST_NAMESPACE::detail::cachekit
