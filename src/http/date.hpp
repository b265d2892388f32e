#pragma once

/// \file
/// Dates in fields (RFC 9110, section 5.6.7), in whole seconds.

#include <holdfast/version.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::http {

/// `Sun, 06 Nov 1994 08:49:37 GMT`. The year must have four digits.
[[nodiscard]] std::string format_date(std::chrono::sys_seconds time);

/// Reads the form above, and the two obsolete ones: `Sunday, 06-Nov-94 08:49:37 GMT` and
/// `Sun Nov  6 08:49:37 1994`. A year of two digits that would be more than 50 years after `now` is
/// in the century before. The day of the week must be that of the date.
[[nodiscard]] std::optional<std::chrono::sys_seconds> parse_date(std::string_view text,
                                                                 std::chrono::sys_seconds now);

}  // namespace HOLDFAST_NAMESPACE::detail::http
