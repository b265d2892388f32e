#include "sql/civil_time.hpp"

namespace HOLDFAST_NAMESPACE::sql {

namespace {

constexpr std::int64_t microseconds_a_day = 86'400'000'000;
// Whole years that a timestamp can hold.
constexpr std::int64_t first_year = -290'307;
constexpr std::int64_t last_year = 294'246;

constexpr std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

/// Days since 1970-01-01. Years are counted from March, so that a leap day is the last of its year, in eras of 400 years.
constexpr std::int64_t days_of(std::int64_t year, unsigned month, unsigned day) {
  const std::int64_t from_march = month > 2 ? month - 3 : month + 9;
  const std::int64_t y = month > 2 ? year : year - 1;
  const std::int64_t era = floor_div(y, 400);
  const std::int64_t in_era = y - era * 400;
  return era * 146'097 + in_era * 365 + in_era / 4 - in_era / 100 + (153 * from_march + 2) / 5 + day - 1 - 719'468;
}

constexpr bool leap(std::int64_t year) { return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0); }

constexpr unsigned days_in(std::int64_t year, unsigned month) {
  if (month == 2) return leap(year) ? 29 : 28;
  return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
}

}  // namespace

civil_time to_civil(timestamp when) noexcept {
  const std::int64_t count = when.time_since_epoch().count();
  const std::int64_t days = floor_div(count, microseconds_a_day);
  const std::int64_t after_midnight = count % microseconds_a_day;  // not a difference to the day's begin, which the first day does not have
  auto rest = static_cast<std::uint64_t>(after_midnight < 0 ? after_midnight + microseconds_a_day : after_midnight);
  const std::int64_t shifted = days + 719'468;
  const std::int64_t era = floor_div(shifted, 146'097);
  const std::int64_t in_era = shifted - era * 146'097;
  const std::int64_t year_of_era = (in_era - in_era / 1'460 + in_era / 36'524 - in_era / 146'096) / 365;
  const std::int64_t in_year = in_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const std::int64_t from_march = (5 * in_year + 2) / 153;
  civil_time result;
  result.day = static_cast<unsigned>(in_year - (153 * from_march + 2) / 5 + 1);
  result.month = static_cast<unsigned>(from_march < 10 ? from_march + 3 : from_march - 9);
  result.year = year_of_era + era * 400 + (result.month <= 2 ? 1 : 0);
  result.microsecond = static_cast<unsigned>(rest % 1'000'000);
  rest /= 1'000'000;
  result.second = static_cast<unsigned>(rest % 60);
  result.minute = static_cast<unsigned>(rest / 60 % 60);
  result.hour = static_cast<unsigned>(rest / 3'600);
  return result;
}

timestamp from_civil(const civil_time& given) noexcept {
  const std::int64_t seconds = (std::int64_t{given.hour} * 60 + given.minute) * 60 + given.second;
  const std::int64_t count =
      days_of(given.year, given.month, given.day) * microseconds_a_day + seconds * 1'000'000 + std::int64_t{given.microsecond};
  return timestamp(std::chrono::microseconds(count));
}

bool is_civil(const civil_time& given) noexcept {
  return given.year >= first_year && given.year <= last_year && given.month >= 1 && given.month <= 12 && given.day >= 1 &&
         given.day <= days_in(given.year, given.month) && given.hour < 24 && given.minute < 60 && given.second < 60 &&
         given.microsecond < 1'000'000;
}

}  // namespace HOLDFAST_NAMESPACE::sql
