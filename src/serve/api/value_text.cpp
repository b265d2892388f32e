#include "serve/api/value_text.hpp"

#include <charconv>
#include <cstddef>
#include <cstdint>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

template <class Duration>
std::optional<std::chrono::milliseconds> scaled(std::int64_t count) {
  using std::chrono::milliseconds;
  constexpr auto most = milliseconds::max().count() / milliseconds(Duration(1)).count();
  if (count > most) return std::nullopt;
  return milliseconds(Duration(count));
}

/// Reads so many digits.
bool read_digits(std::string_view& text, std::size_t count, unsigned& value) {
  if (text.size() < count) return false;
  value = 0;
  for (const char c : text.substr(0, count)) {
    if (c < '0' || c > '9') return false;
    value = value * 10 + static_cast<unsigned>(c - '0');
  }
  text.remove_prefix(count);
  return true;
}

bool skip(std::string_view& text, std::string_view characters) {
  if (text.empty() || characters.find(text.front()) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

std::optional<std::chrono::milliseconds> parse_duration(std::string_view text) {
  std::int64_t count = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (status != std::errc{} || count < 0) return std::nullopt;
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (unit == "ms") return std::chrono::milliseconds(count);
  if (unit == "s") return scaled<std::chrono::seconds>(count);
  if (unit == "m") return scaled<std::chrono::minutes>(count);
  if (unit == "h") return scaled<std::chrono::hours>(count);
  if (unit == "d") return scaled<std::chrono::days>(count);
  return std::nullopt;
}

std::optional<std::chrono::sys_time<std::chrono::microseconds>> parse_time(std::string_view text) {
  namespace chrono = std::chrono;
  unsigned year = 0;
  unsigned month = 0;
  unsigned day = 0;
  unsigned hour = 0;
  unsigned minute = 0;
  unsigned second = 0;
  if (!read_digits(text, 4, year) || !skip(text, "-") || !read_digits(text, 2, month) ||
      !skip(text, "-") || !read_digits(text, 2, day) || !skip(text, "Tt") ||
      !read_digits(text, 2, hour) || !skip(text, ":") || !read_digits(text, 2, minute) ||
      !skip(text, ":") || !read_digits(text, 2, second))
    return std::nullopt;
  unsigned micros = 0;
  if (skip(text, ".")) {
    unsigned scale = 100'000;
    unsigned digit = 0;
    std::size_t digits = 0;
    for (; read_digits(text, 1, digit); ++digits, scale /= 10) micros += digit * scale;
    if (digits == 0 || digits > 6) return std::nullopt;
  }
  chrono::minutes offset{};
  if (!skip(text, "Zz")) {
    const bool west = text.starts_with('-');
    unsigned hours = 0;
    unsigned minutes = 0;
    if (!skip(text, "+-") || !read_digits(text, 2, hours) || !skip(text, ":") ||
        !read_digits(text, 2, minutes) || hours > 23 || minutes > 59)
      return std::nullopt;
    offset = chrono::minutes(hours * 60 + minutes) * (west ? -1 : 1);
  }
  const chrono::year_month_day date{chrono::year(static_cast<int>(year)), chrono::month(month),
                                    chrono::day(day)};
  if (!text.empty() || !date.ok() || hour > 23 || minute > 59 || second > 59) return std::nullopt;
  return chrono::sys_days(date) + chrono::hours(hour) + chrono::minutes(minute) +
         chrono::seconds(second) + chrono::microseconds(micros) - offset;
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
