#include "key/time_text.hpp"

#include <cstdint>

namespace HOLDFAST_NAMESPACE::key {

namespace {

using namespace std::chrono;

void append_digits(std::string& to, std::uint64_t number, int width) {
  const auto text = std::to_string(number);
  to.append(static_cast<std::size_t>(width) > text.size() ? static_cast<std::size_t>(width) - text.size() : 0, '0').append(text);
}

bool python_has(const year_month_day& day) { return day.year() >= year{1} && day.year() <= year{9999}; }

/// `2024-01-01`. A year outside 0 to 9999 has a sign, as Java prints it.
void append_date(std::string& to, const year_month_day& day) {
  const int year = static_cast<int>(day.year());
  if (year < 0) to += '-';
  if (year > 9999) to += '+';
  append_digits(to, static_cast<std::uint64_t>(year < 0 ? -year : year), 4);
  to += '-';
  append_digits(to, static_cast<unsigned>(day.month()), 2);
  to += '-';
  append_digits(to, static_cast<unsigned>(day.day()), 2);
}

void append_time(std::string& to, seconds since_midnight) {
  const auto s = static_cast<std::uint64_t>(since_midnight.count());
  append_digits(to, s / 3600, 2);
  to += ':';
  append_digits(to, s / 60 % 60, 2);
  to += ':';
  append_digits(to, s % 60, 2);
}

void append_fraction(std::string& to, std::uint64_t fraction, int width) {
  to += '.';
  append_digits(to, fraction, width);
}

/// Days are counted in 64 bits first: a moment far outside the calendar must be refused, not wrapped around.
std::optional<year_month_day> calendar_day(sys_seconds at) {
  const auto day = floor<days>(at);
  constexpr sys_days first = year{-32767} / January / 1;
  constexpr sys_days last = year{32767} / December / 31;
  if (at < sys_seconds{first} || at > sys_seconds{last}) return std::nullopt;
  return year_month_day{day};
}

}  // namespace

std::optional<std::string> iso_text(const instant& v) {
  const auto microsecond = v.nanoseconds / 1000U;
  // The wall clock where it was written: the offset may itself have a fraction of a second.
  const auto whole_offset = floor<seconds>(v.offset);
  auto fraction = microseconds{microsecond} + (v.offset - whole_offset);
  const auto carry = floor<seconds>(fraction);
  fraction -= carry;
  const sys_seconds local = v.seconds + whole_offset + carry;
  const auto day = calendar_day(local);
  std::string text;
  if (!day || !python_has(*day)) return std::nullopt;
  append_date(text, *day);
  text += 'T';
  append_time(text, local - floor<days>(local));
  if (fraction.count() != 0) append_fraction(text, static_cast<std::uint64_t>(fraction.count()), 6);

  text += v.offset.count() < 0 ? '-' : '+';
  const auto distance = static_cast<std::uint64_t>(v.offset.count() < 0 ? -v.offset.count() : v.offset.count());
  const auto s = distance / 1'000'000;
  append_digits(text, s / 3600, 2);
  text += ':';
  append_digits(text, s / 60 % 60, 2);
  if (s % 60 != 0 || distance % 1'000'000 != 0) {
    text += ':';
    append_digits(text, s % 60, 2);
  }
  if (distance % 1'000'000 != 0) append_fraction(text, distance % 1'000'000, 6);
  return text;
}

std::optional<std::string> iso_text(const date& v) {
  std::string text;
  if (!v.day.ok() || !python_has(v.day)) return std::nullopt;
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

}  // namespace HOLDFAST_NAMESPACE::key
