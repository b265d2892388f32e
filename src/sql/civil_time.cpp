// The calendar arithmetic counts years from March, so that a leap day is the last day of its year,
// and groups them in eras of 400 years, which all have the same number of days.

#include "sql/civil_time.hpp"

namespace HOLDFAST_NAMESPACE::detail::sql {

namespace {

constexpr std::int64_t microseconds_per_day = 86'400'000'000;
constexpr std::int64_t days_per_era = 146'097;
constexpr std::int64_t days_before_1970 = 719'468;  // since 0000-03-01
// The years that lie completely in the range of a timestamp.
constexpr std::int64_t first_year = -290'307;
constexpr std::int64_t last_year = 294'246;

/// Rounds towards negative infinity. b must be positive.
constexpr std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  return a / b - (a % b < 0 ? 1 : 0);
}

constexpr std::int64_t days_since_1970(std::int64_t year, unsigned month, unsigned day) {
  const std::int64_t month_from_march = month > 2 ? month - 3 : month + 9;
  const std::int64_t year_from_march = month > 2 ? year : year - 1;
  const std::int64_t era = floor_div(year_from_march, 400);
  const std::int64_t year_of_era = year_from_march - era * 400;
  return era * days_per_era + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 +
         (153 * month_from_march + 2) / 5 + day - 1 - days_before_1970;
}

constexpr bool is_leap(std::int64_t year) {
  return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

constexpr unsigned days_in_month(std::int64_t year, unsigned month) {
  if (month == 2) return is_leap(year) ? 29 : 28;
  return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
}

}  // namespace

civil_time to_civil(timestamp time) noexcept {
  const std::int64_t count = time.time_since_epoch().count();
  const std::int64_t days = floor_div(count, microseconds_per_day);
  const std::int64_t days_since_0000_03_01 = days + days_before_1970;
  const std::int64_t era = floor_div(days_since_0000_03_01, days_per_era);
  const std::int64_t day_of_era = days_since_0000_03_01 - era * days_per_era;
  const std::int64_t year_of_era =
      (day_of_era - day_of_era / 1'460 + day_of_era / 36'524 - day_of_era / 146'096) / 365;
  const std::int64_t day_of_year =
      day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const std::int64_t month_from_march = (5 * day_of_year + 2) / 153;
  civil_time civil;
  civil.day = static_cast<unsigned>(day_of_year - (153 * month_from_march + 2) / 5 + 1);
  civil.month =
      static_cast<unsigned>(month_from_march < 10 ? month_from_march + 3 : month_from_march - 9);
  civil.year = year_of_era + era * 400 + (civil.month <= 2 ? 1 : 0);
  // Not count - days * microseconds_per_day: that product overflows on the first day of the range.
  const std::int64_t remainder = count % microseconds_per_day;
  auto rest =
      static_cast<std::uint64_t>(remainder < 0 ? remainder + microseconds_per_day : remainder);
  civil.microsecond = static_cast<unsigned>(rest % 1'000'000);
  rest /= 1'000'000;
  civil.second = static_cast<unsigned>(rest % 60);
  civil.minute = static_cast<unsigned>(rest / 60 % 60);
  civil.hour = static_cast<unsigned>(rest / 3'600);
  return civil;
}

timestamp from_civil(const civil_time& civil) noexcept {
  const std::int64_t seconds = (std::int64_t{civil.hour} * 60 + civil.minute) * 60 + civil.second;
  const std::int64_t count =
      days_since_1970(civil.year, civil.month, civil.day) * microseconds_per_day +
      seconds * 1'000'000 + std::int64_t{civil.microsecond};
  return timestamp(std::chrono::microseconds(count));
}

bool is_valid(const civil_time& civil) noexcept {
  return civil.year >= first_year && civil.year <= last_year && civil.month >= 1 &&
         civil.month <= 12 && civil.day >= 1 &&
         civil.day <= days_in_month(civil.year, civil.month) && civil.hour < 24 &&
         civil.minute < 60 && civil.second < 60 && civil.microsecond < 1'000'000;
}

}  // namespace HOLDFAST_NAMESPACE::detail::sql
