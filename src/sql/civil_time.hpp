#pragma once

/// \file
/// Calendar dates in UTC for drivers that send and read times as separate fields. std::chrono::year
/// ends at 32767, but a timestamp reaches further.

#include <holdfast/clock.hpp>
#include <holdfast/version.hpp>

#include "sql/public_names.hpp"

#include <chrono>
#include <cstdint>

namespace HOLDFAST_NAMESPACE::detail::sql {

/// The last microsecond of the year 9999, where the dates of most databases end. Later times mean
/// "never" and are sent as this one.
inline constexpr timestamp last_date = std::chrono::sys_days(std::chrono::year(9999) / 12 / 31) +
                                       std::chrono::days(1) - std::chrono::microseconds(1);

struct civil_time {
  std::int64_t year = 1970;
  unsigned month = 1;
  unsigned day = 1;
  unsigned hour = 0;
  unsigned minute = 0;
  unsigned second = 0;
  unsigned microsecond = 0;
};

[[nodiscard]] civil_time to_civil(timestamp time) noexcept;

/// The inverse of to_civil. The fields must be valid: see is_valid.
[[nodiscard]] timestamp from_civil(const civil_time& civil) noexcept;

/// Whether the date exists and its year lies completely in the range of a timestamp.
[[nodiscard]] bool is_valid(const civil_time& civil) noexcept;

}  // namespace HOLDFAST_NAMESPACE::detail::sql
