#pragma once

/// \file
/// Times as text, in the forms of Java and Python.

#include <holdfast/key/value.hpp>
#include <holdfast/version.hpp>

#include <optional>
#include <string>

namespace HOLDFAST_NAMESPACE::detail::key {

using namespace holdfast::key;

/// Prints a time as Python's isoformat(): with the offset that it was written with, and with
/// microseconds only if they are not 0. Returns nullopt outside the years 1 to 9999.
[[nodiscard]] std::optional<std::string> iso_text(const instant& v);
[[nodiscard]] std::optional<std::string> iso_text(const date& v);
[[nodiscard]] std::string iso_text(const time_of_day& v);

/// Prints a time as java.time.Instant: in UTC, with 0, 3, 6 or 9 digits after the point. Returns
/// nullopt outside the years -32767 to 32767.
[[nodiscard]] std::optional<std::string> java_text(const instant& v);

/// Whole microseconds since 1970, rounded down.
[[nodiscard]] std::int64_t microseconds_since_epoch(const instant& v) noexcept;

}  // namespace HOLDFAST_NAMESPACE::detail::key
