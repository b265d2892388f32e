#include "terminal/time_text.hpp"

#include <holdfast/error.hpp>

#include "base/url.hpp"
#include "terminal/text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <utility>

namespace holdfast::cli {

namespace {

void append_digits(std::string& out, std::int64_t number, std::size_t width) {
  const auto text = std::to_string(number);
  out.append(width > text.size() ? width - text.size() : 0, '0').append(text);
}

}  // namespace

std::string iso_time(timestamp time) {
  using namespace std::chrono;
  time = std::clamp(time, timestamp(sys_days{year{0} / January / 1}),
                    timestamp(sys_days{year{10000} / January / 1}) - microseconds(1));
  const auto day = floor<days>(time);
  const year_month_day date{day};
  const auto time_of_day = time - day;
  std::string text;
  append_digits(text, static_cast<int>(date.year()), 4);
  text += '-';
  append_digits(text, static_cast<unsigned>(date.month()), 2);
  text += '-';
  append_digits(text, static_cast<unsigned>(date.day()), 2);
  text += 'T';
  append_digits(text, floor<hours>(time_of_day).count(), 2);
  text += ':';
  append_digits(text, floor<minutes>(time_of_day).count() % 60, 2);
  text += ':';
  append_digits(text, floor<seconds>(time_of_day).count() % 60, 2);
  text += '.';
  append_digits(text, time_of_day.count() % 1'000'000, 6);
  return text + 'Z';
}

timestamp parse_iso_time(std::string_view text) {
  using namespace std::chrono;
  std::array<int, 7> parts{};
  constexpr std::string_view shape = "0000-00-00T00:00:00.000000Z";
  bool valid = text.size() == shape.size();
  std::size_t part = 0;
  for (std::size_t i = 0; valid && i < shape.size(); ++i) {
    if (shape[i] == '0') {
      valid = text[i] >= '0' && text[i] <= '9';
      parts[part] = parts[part] * 10 + (text[i] - '0');
    } else {
      valid = text[i] == shape[i];
      ++part;
    }
  }
  const year_month_day date{year{parts[0]}, month{static_cast<unsigned>(parts[1])},
                            day{static_cast<unsigned>(parts[2])}};
  if (!valid || !date.ok() || parts[3] > 23 || parts[4] > 59 || parts[5] > 59) {
    throw error(errc::invalid_argument, "'" +
                                            printable(detail::without_secrets(text).substr(0, 40)) +
                                            "' is not a time like 2024-01-31T12:00:00.000000Z");
  }
  return timestamp(sys_days{date} + hours{parts[3]} + minutes{parts[4]} + seconds{parts[5]} +
                   microseconds{parts[6]});
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
