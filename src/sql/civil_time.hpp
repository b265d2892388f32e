#pragma once

#include <holdfast/clock.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <cstdint>

/// Dates for databases that want them taken apart. std::chrono::year ends at 32767, a timestamp does not.
namespace HOLDFAST_NAMESPACE::sql {

/// The last moment of year 9999, where the dates of most databases end. What is later means "for ever", and is sent as this.
inline constexpr timestamp last_date =
    std::chrono::sys_days(std::chrono::year(9999) / 12 / 31) + std::chrono::days(1) - std::chrono::microseconds(1);

struct civil_time {
  std::int64_t year = 1970;
  unsigned month = 1;
  unsigned day = 1;
  unsigned hour = 0;
  unsigned minute = 0;
  unsigned second = 0;
  unsigned microsecond = 0;
};

[[nodiscard]] civil_time to_civil(timestamp when) noexcept;

/// The moment of a date in UTC; the parts must be in range, and the year in that of a timestamp.
[[nodiscard]] timestamp from_civil(const civil_time& given) noexcept;

/// Whether there is such a date, and a timestamp can hold it.
[[nodiscard]] bool is_civil(const civil_time& given) noexcept;

}  // namespace HOLDFAST_NAMESPACE::sql
