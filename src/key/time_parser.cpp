#include "key/time_parser.hpp"

#include <chrono>

namespace HOLDFAST_NAMESPACE::key {

namespace {

using namespace std::chrono;

/// Takes pieces off the front of a text, and remembers whether one was missing.
class scanner {
 public:
  explicit scanner(std::string_view text) : rest_(text) {}

  [[nodiscard]] bool starts_with(char c) const { return good_ && !rest_.empty() && rest_.front() == c; }
  void expect(char c) {
    good_ = starts_with(c);
    if (good_) rest_.remove_prefix(1);
  }
  /// Exactly so many digits, and no more than `most`.
  int number(std::size_t digits, int most) {
    good_ = good_ && rest_.size() >= digits;
    int result = 0;
    for (std::size_t i = 0; good_ && i < digits; ++i) result = result * 10 + digit(rest_[i]);
    good_ = good_ && result <= most;
    if (good_) rest_.remove_prefix(digits);
    return good_ ? result : 0;
  }
  /// `.` and one to nine digits, if there; as nanoseconds.
  nanoseconds fraction() {
    if (!starts_with('.')) return nanoseconds{0};
    rest_.remove_prefix(1);
    std::int64_t result = 0;
    std::size_t digits = 0;
    for (; digits < rest_.size() && is_digit(rest_[digits]) && digits < 9; ++digits) result = result * 10 + (rest_[digits] - '0');
    good_ = digits != 0;
    rest_.remove_prefix(digits);
    for (; digits < 9; ++digits) result *= 10;
    return nanoseconds{result};
  }
  void require(bool condition) { good_ = good_ && condition; }
  [[nodiscard]] bool complete() const { return good_ && rest_.empty(); }

 private:
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  int digit(char c) {
    good_ = good_ && is_digit(c);
    return good_ ? c - '0' : 0;
  }

  std::string_view rest_;
  bool good_ = true;
};

year_month_day scan_date(scanner& in) {
  const int y = in.number(4, 9999);
  in.expect('-');
  const int m = in.number(2, 12);
  in.expect('-');
  const int d = in.number(2, 31);
  const year_month_day day{year{y}, month{static_cast<unsigned>(m)}, std::chrono::day{static_cast<unsigned>(d)}};
  in.require(y >= 1 && day.ok());
  return day;
}

seconds scan_minutes(scanner& in) {
  const int h = in.number(2, 23);
  in.expect(':');
  return hours{h} + minutes{in.number(2, 59)};
}

nanoseconds scan_time(scanner& in) {
  const auto whole = scan_minutes(in);
  in.expect(':');
  const auto second = seconds{in.number(2, 59)};
  return whole + second + in.fraction();
}

bool whole_microseconds(nanoseconds span) { return span % microseconds{1} == nanoseconds{0}; }

microseconds scan_offset(scanner& in) {
  if (in.starts_with('Z')) {
    in.expect('Z');
    return microseconds{0};
  }
  const bool west = in.starts_with('-');
  in.expect(west ? '-' : '+');
  nanoseconds offset = scan_minutes(in);
  if (in.starts_with(':')) {
    in.expect(':');
    offset += seconds{in.number(2, 59)};
    offset += in.fraction();
  }
  in.require(whole_microseconds(offset));
  return duration_cast<microseconds>(west ? -offset : offset);
}

}  // namespace

std::optional<instant> parse_instant(std::string_view text) {
  scanner in(text);
  const auto day = scan_date(in);
  in.expect('T');
  const auto time = scan_time(in);
  const auto offset = scan_offset(in);
  if (!in.complete()) return std::nullopt;
  const nanoseconds since_midnight = time - offset;  // can leave the day on either side
  const auto whole = floor<seconds>(since_midnight);
  return instant{sys_days{day} + whole, static_cast<std::uint32_t>((since_midnight - whole).count()), offset};
}

std::optional<date> parse_date(std::string_view text) {
  scanner in(text);
  const auto day = scan_date(in);
  if (!in.complete()) return std::nullopt;
  return date{day};
}

std::optional<time_of_day> parse_time_of_day(std::string_view text) {
  scanner in(text);
  const auto time = scan_time(in);
  if (!in.complete() || !whole_microseconds(time)) return std::nullopt;
  return time_of_day{duration_cast<microseconds>(time)};
}

}  // namespace HOLDFAST_NAMESPACE::key
