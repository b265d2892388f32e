#include "key/time_text.hpp"

#include <cstdint>
#include <cstdlib>

namespace HOLDFAST_NAMESPACE::detail::key {

namespace {

using namespace std::chrono;

void append_digits(std::string& out, std::uint64_t number, int width) {
  const auto digits = std::to_string(number);
  const auto size = static_cast<std::size_t>(width);
  if (digits.size() < size) out.append(size - digits.size(), '0');
  out += digits;
}

bool is_python_date(const year_month_day& day) {
  return day.year() >= year{1} && day.year() <= year{9999};
}

/// Appends `2024-01-01`. A year outside 0 to 9999 gets a sign, as in Java.
void append_date(std::string& out, const year_month_day& day) {
  const int year = static_cast<int>(day.year());
  if (year < 0) out += '-';
  if (year > 9999) out += '+';
  append_digits(out, static_cast<std::uint64_t>(year < 0 ? -year : year), 4);
  out += '-';
  append_digits(out, static_cast<unsigned>(day.month()), 2);
  out += '-';
  append_digits(out, static_cast<unsigned>(day.day()), 2);
}

void append_time(std::string& out, seconds since_midnight) {
  const auto s = static_cast<std::uint64_t>(since_midnight.count());
  append_digits(out, s / 3600, 2);
  out += ':';
  append_digits(out, s / 60 % 60, 2);
  out += ':';
  append_digits(out, s % 60, 2);
}

void append_fraction(std::string& out, std::uint64_t fraction, int width) {
  out += '.';
  append_digits(out, fraction, width);
}

/// Returns nullopt outside the calendar, where year_month_day would wrap around.
std::optional<year_month_day> calendar_day(sys_seconds moment) {
  constexpr sys_days first = year{-32767} / January / 1;
  constexpr sys_days last = year{32767} / December / 31;
  if (moment < sys_seconds{first} || moment > sys_seconds{last}) return std::nullopt;
  return year_month_day{floor<days>(moment)};
}

/// Appends an offset: `+01:00`, or `-02:03:04.000005` if it has seconds or microseconds.
void append_offset(std::string& out, microseconds offset) {
  out += offset.count() < 0 ? '-' : '+';
  const auto magnitude = static_cast<std::uint64_t>(std::abs(offset.count()));
  const auto s = magnitude / 1'000'000;
  const auto fraction = magnitude % 1'000'000;
  append_digits(out, s / 3600, 2);
  out += ':';
  append_digits(out, s / 60 % 60, 2);
  if (s % 60 != 0 || fraction != 0) {
    out += ':';
    append_digits(out, s % 60, 2);
  }
  if (fraction != 0) append_fraction(out, fraction, 6);
}

}  // namespace

std::optional<std::string> iso_text(const instant& v) {
  const auto microsecond = v.nanoseconds / 1000U;
  // The local time where the instant was written. The offset can have a fraction of a second.
  const auto whole_offset = floor<seconds>(v.offset);
  auto fraction = microseconds{microsecond} + (v.offset - whole_offset);
  const auto carry = floor<seconds>(fraction);
  fraction -= carry;
  const sys_seconds local = v.seconds + whole_offset + carry;
  const auto day = calendar_day(local);
  std::string text;
  if (!day || !is_python_date(*day)) return std::nullopt;
  append_date(text, *day);
  text += 'T';
  append_time(text, local - floor<days>(local));
  if (fraction.count() != 0) append_fraction(text, static_cast<std::uint64_t>(fraction.count()), 6);
  append_offset(text, v.offset);
  return text;
}

std::optional<std::string> iso_text(const date& v) {
  std::string text;
  if (!v.day.ok() || !is_python_date(v.day)) return std::nullopt;
  append_date(text, v.day);
  return text;
}

std::string iso_text(const time_of_day& v) {
  std::string text;
  const auto whole = floor<seconds>(v.since_midnight);
  append_time(text, whole);
  const auto fraction = v.since_midnight - whole;
  if (fraction.count() != 0) append_fraction(text, static_cast<std::uint64_t>(fraction.count()), 6);
  return text;
}

std::optional<std::string> java_text(const instant& v) {
  const auto day = calendar_day(v.seconds);
  std::string text;
  if (!day) return std::nullopt;
  append_date(text, *day);
  text += 'T';
  append_time(text, v.seconds - floor<days>(v.seconds));
  if (v.nanoseconds % 1'000'000 == 0) {
    if (v.nanoseconds != 0) append_fraction(text, v.nanoseconds / 1'000'000, 3);
  } else if (v.nanoseconds % 1000 == 0) {
    append_fraction(text, v.nanoseconds / 1000, 6);
  } else {
    append_fraction(text, v.nanoseconds, 9);
  }
  return text + 'Z';
}

std::int64_t microseconds_since_epoch(const instant& v) noexcept {
  return v.seconds.time_since_epoch().count() * 1'000'000 + v.nanoseconds / 1000;
}

}  // namespace HOLDFAST_NAMESPACE::detail::key
