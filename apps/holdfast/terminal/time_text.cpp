#include "terminal/time_text.hpp"

#include <holdfast/error.hpp>

#include "base/line_text.hpp"
#include "base/url.hpp"
#include "terminal/text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <utility>

namespace holdfast::cli {

namespace {

/// Reads the parts of a time, one after the other. After a mistake, every function returns 0.
class time_reader {
 public:
  explicit time_reader(std::string_view text) : rest_(text) {}

  /// Skips one of these characters.
  time_reader& skip(std::string_view characters) {
    valid_ = valid_ && !rest_.empty() && characters.find(rest_.front()) != std::string_view::npos;
    if (valid_) rest_.remove_prefix(1);
    return *this;
  }
  int number(std::size_t digits) {
    int number = 0;
    for (std::size_t i = 0; i < digits; ++i) number = number * 10 + digit();
    return number;
  }
  /// `.123456`, or nothing. Ignores digits after the sixth.
  int microseconds() {
    if (!valid_ || !rest_.starts_with('.')) return 0;
    rest_.remove_prefix(1);
    int fraction = 0;
    std::size_t count = 0;
    for (; valid_ && !rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9'; ++count) {
      const int next = digit();
      if (count < 6) fraction = fraction * 10 + next;
    }
    valid_ = valid_ && count >= 1 && count <= 9;
    for (; count < 6; ++count) fraction *= 10;
    return fraction;
  }
  /// `Z`, or `+02:00`.
  int offset_minutes() {
    if (!valid_ || rest_.starts_with('Z') || rest_.starts_with('z')) {
      (void)skip("Zz");
      return 0;
    }
    const int sign = rest_.starts_with('-') ? -1 : 1;
    const int hours = skip("+-").number(2);
    const int minutes = skip(":").number(2);
    valid_ = valid_ && hours <= 23 && minutes <= 59;
    return sign * (hours * 60 + minutes);
  }
  [[nodiscard]] bool complete() const noexcept { return valid_ && rest_.empty(); }

 private:
  int digit() {
    valid_ = valid_ && !rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9';
    if (!valid_) return 0;
    const int digit = rest_.front() - '0';
    rest_.remove_prefix(1);
    return digit;
  }

  std::string_view rest_;
  bool valid_ = true;
};

}  // namespace

std::string iso_time(timestamp time) { return detail::iso_time(time); }

timestamp parse_iso_time(std::string_view text) {
  using namespace std::chrono;
  time_reader reader(text);
  const year_month_day date{year{reader.number(4)},
                            month{static_cast<unsigned>(reader.skip("-").number(2))},
                            day{static_cast<unsigned>(reader.skip("-").number(2))}};
  const int hour = reader.skip("Tt ").number(2);
  const int minute = reader.skip(":").number(2);
  const int second = reader.skip(":").number(2);
  const int fraction = reader.microseconds();
  const int offset = reader.offset_minutes();
  if (!reader.complete() || !date.ok() || hour > 23 || minute > 59 || second > 59) {
    throw error(errc::invalid_argument,
                "'" + printable(detail::without_secrets(text).substr(0, 40)) +
                    "' is not a time like 2024-01-31T12:00:00Z or 2024-01-31T12:00:00.000000Z");
  }
  return timestamp(sys_days{date} + hours{hour} + minutes{minute - offset} + seconds{second} +
                   std::chrono::microseconds{fraction});
}

std::string human_duration(std::chrono::microseconds duration) {
  using namespace std::chrono;
  if (duration < microseconds(0)) duration = -duration;
  const auto tenths = duration_cast<milliseconds>(duration).count() / 100;
  if (duration < seconds(1))
    return std::to_string(duration_cast<milliseconds>(duration).count()) + " ms";
  if (duration < seconds(10))
    return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
  constexpr std::array<std::pair<std::int64_t, std::string_view>, 4> units{
      {{86'400, " d"}, {3600, " h"}, {60, " m"}, {1, " s"}}};
  const std::int64_t total = duration_cast<seconds>(duration).count();
  for (std::size_t i = 0; i < units.size(); ++i) {
    const auto [size, name] = units[i];
    if (total < size) continue;
    std::string text = std::to_string(total / size).append(name);
    // The second unit matters only beside a small number of the first.
    if (i + 1 == units.size() || total / size >= 10) return text;
    const auto [part, part_name] = units[i + 1];
    if (const auto count = total % size / part; count != 0)
      text.append(" ").append(std::to_string(count)).append(part_name);
    return text;
  }
  return "0 s";
}

std::chrono::microseconds parse_duration(std::string_view text) {
  std::int64_t number = 0;
  const auto* end = text.data() + text.size();
  const auto [number_end, failure] = std::from_chars(text.data(), end, number);
  constexpr std::int64_t longest = 36'500LL * 86'400;
  constexpr std::array<std::pair<std::string_view, std::int64_t>, 4> units{
      {{"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86'400}}};
  const std::string_view unit(number_end, static_cast<std::size_t>(end - number_end));
  for (const auto& [name, scale] : units) {
    // The limit keeps sums with a clock of nanoseconds within 64 bits.
    if (failure == std::errc{} && unit == name && number >= 0 && number <= longest / scale)
      return std::chrono::seconds(number * scale);
  }
  throw error(
      errc::invalid_argument,
      "'" + printable(detail::without_secrets(text).substr(0, 40)) +
          "' is not a duration; write a number and its unit: 90s, 15m, 1h, 7d; at most 36500d");
}

}  // namespace holdfast::cli
