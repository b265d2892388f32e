#include "cachekit/time_parser.hpp"

#include <chrono>

namespace HOLDFAST_NAMESPACE::detail::cachekit {

using namespace holdfast::key;

namespace {

using namespace std::chrono;

/// Reads parts from the front of a text. After the first failure all reads fail, so that callers
/// check once, with complete().
class scanner {
 public:
  explicit scanner(std::string_view text) : rest_(text) {}

  [[nodiscard]] bool starts_with(char c) const {
    return valid_ && !rest_.empty() && rest_.front() == c;
  }
  void expect(char c) {
    valid_ = starts_with(c);
    if (valid_) rest_.remove_prefix(1);
  }
  /// Reads a number of exactly `digits` digits. It must not exceed `max`.
  int number(std::size_t digits, int max) {
    valid_ = valid_ && rest_.size() >= digits;
    int result = 0;
    for (std::size_t i = 0; valid_ && i < digits; ++i) result = result * 10 + digit(rest_[i]);
    valid_ = valid_ && result <= max;
    if (valid_) rest_.remove_prefix(digits);
    return valid_ ? result : 0;
  }
  /// Reads an optional fraction: `.` and one to nine digits.
  nanoseconds fraction() {
    if (!starts_with('.')) return nanoseconds{0};
    rest_.remove_prefix(1);
    std::int64_t result = 0;
    std::size_t digits = 0;
    for (; digits < rest_.size() && is_digit(rest_[digits]) && digits < 9; ++digits)
      result = result * 10 + (rest_[digits] - '0');
    valid_ = digits != 0;
    rest_.remove_prefix(digits);
    for (; digits < 9; ++digits) result *= 10;
    return nanoseconds{result};
  }
  void require(bool condition) { valid_ = valid_ && condition; }
  [[nodiscard]] bool complete() const { return valid_ && rest_.empty(); }

 private:
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  int digit(char c) {
    valid_ = valid_ && is_digit(c);
    return valid_ ? c - '0' : 0;
  }

  std::string_view rest_;
  bool valid_ = true;
};

year_month_day read_date(scanner& scan) {
  const int y = scan.number(4, 9999);
  scan.expect('-');
  const int m = scan.number(2, 12);
  scan.expect('-');
  const int d = scan.number(2, 31);
  const year_month_day day{year{y}, month{static_cast<unsigned>(m)},
                           std::chrono::day{static_cast<unsigned>(d)}};
  scan.require(y >= 1 && day.ok());
  return day;
}

seconds read_minutes(scanner& scan) {
  const int h = scan.number(2, 23);
  scan.expect(':');
  return hours{h} + minutes{scan.number(2, 59)};
}

nanoseconds read_time(scanner& scan) {
  const auto minutes = read_minutes(scan);
  scan.expect(':');
  const auto whole_seconds = minutes + seconds{scan.number(2, 59)};
  return whole_seconds + scan.fraction();
}

bool is_whole_microseconds(nanoseconds span) { return span % microseconds{1} == nanoseconds{0}; }

microseconds read_offset(scanner& scan) {
  if (scan.starts_with('Z')) {
    scan.expect('Z');
    return microseconds{0};
  }
  const bool west = scan.starts_with('-');
  scan.expect(west ? '-' : '+');
  nanoseconds offset = read_minutes(scan);
  if (scan.starts_with(':')) {
    scan.expect(':');
    offset += seconds{scan.number(2, 59)};
    offset += scan.fraction();
  }
  scan.require(is_whole_microseconds(offset));
  return duration_cast<microseconds>(west ? -offset : offset);
}

}  // namespace

std::optional<instant> parse_instant(std::string_view text) {
  scanner scan(text);
  const auto day = read_date(scan);
  scan.expect('T');
  const auto time = read_time(scan);
  const auto offset = read_offset(scan);
  if (!scan.complete()) return std::nullopt;
  const nanoseconds since_midnight = time - offset;  // in UTC; may be in the day before or after
  const auto whole = floor<seconds>(since_midnight);
  return instant{sys_days{day} + whole,
                 static_cast<std::uint32_t>((since_midnight - whole).count()), offset};
}

std::optional<date> parse_date(std::string_view text) {
  scanner scan(text);
  const auto day = read_date(scan);
  if (!scan.complete()) return std::nullopt;
  return date{day};
}

std::optional<time_of_day> parse_time_of_day(std::string_view text) {
  scanner scan(text);
  const auto time = read_time(scan);
  if (!scan.complete() || !is_whole_microseconds(time)) return std::nullopt;
  return time_of_day{duration_cast<microseconds>(time)};
}

}  // namespace HOLDFAST_NAMESPACE::detail::cachekit
