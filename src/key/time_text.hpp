#pragma once

#include <holdfast/key/value.hpp>
#include <holdfast/version.hpp>

#include <optional>
#include <string>

namespace HOLDFAST_NAMESPACE::key {

/// As Python's datetime.isoformat(): in the offset it was written with, microseconds only when there are any.
/// Nothing outside the years 1 to 9999.
[[nodiscard]] std::optional<std::string> iso_text(const instant& v);
[[nodiscard]] std::optional<std::string> iso_text(const date& v);
[[nodiscard]] std::string iso_text(const time_of_day& v);

/// As java.time.Instant prints: UTC, the fraction in groups of three digits. Nothing outside the years -32767 to 32767.
[[nodiscard]] std::optional<std::string> java_text(const instant& v);

/// Whole microseconds since 1970, rounded down.
[[nodiscard]] std::int64_t microseconds_since_epoch(const instant& v) noexcept;

}  // namespace HOLDFAST_NAMESPACE::key
