#include "http/date.hpp"

#include "http/syntax.hpp"

#include <algorithm>
#include <array>

namespace HOLDFAST_NAMESPACE::detail::http {

namespace {

namespace chr = std::chrono;

constexpr std::array<std::string_view, 7> weekdays = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                      "Thursday", "Friday", "Saturday"};
constexpr std::array<std::string_view, 12> months = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

void append_padded(std::string& out, unsigned number, std::size_t width) {
  const auto digits = std::to_string(number);
  out.append(width - std::min(width, digits.size()), '0').append(digits);
}

/// Reads a date from the front of a text, piece by piece.
class date_scanner {
 public:
  explicit date_scanner(std::string_view text) : rest_(text) {}

  bool skip(std::string_view expected) {
    if (!rest_.starts_with(expected)) return false;
    rest_.remove_prefix(expected.size());
    return true;
  }
  /// Reads exactly so many digits. With `space`, the first one may be a space.
  bool number(std::size_t width, unsigned& result, bool space = false) {
    auto digits = rest_.substr(0, width);
    if (digits.size() != width) return false;
    if (space && digits.front() == ' ') digits.remove_prefix(1);
    const auto parsed = parse_digits(digits);
    if (!parsed) return false;
    result = static_cast<unsigned>(*parsed);
    rest_.remove_prefix(width);
    return true;
  }
  bool month(unsigned& result) {
    for (std::size_t i = 0; i < months.size(); ++i) {
      if (skip(months[i])) {
        result = static_cast<unsigned>(i) + 1;
        return true;
      }
    }
    return false;
  }
  /// Reads the first `width` characters of the name of a weekday, or all of them with 0.
  bool weekday(std::size_t width, unsigned& result) {
    for (std::size_t i = 0; i < weekdays.size(); ++i) {
      if (skip(width == 0 ? weekdays[i] : weekdays[i].substr(0, width))) {
        result = static_cast<unsigned>(i);
        return true;
      }
    }
    return false;
  }
  [[nodiscard]] bool at_end() const noexcept { return rest_.empty(); }

 private:
  std::string_view rest_;
};

struct date_parts {
  unsigned weekday = 0;
  unsigned day = 0;
  unsigned month = 0;
  unsigned year = 0;
  unsigned hour = 0;
  unsigned minute = 0;
  unsigned second = 0;
};

bool scan_time(date_scanner& scan, date_parts& parts) {
  return scan.number(2, parts.hour) && scan.skip(":") && scan.number(2, parts.minute) &&
         scan.skip(":") && scan.number(2, parts.second);
}

bool scan_fixdate(std::string_view text, date_parts& parts) {
  date_scanner scan(text);
  return scan.weekday(3, parts.weekday) && scan.skip(", ") && scan.number(2, parts.day) &&
         scan.skip(" ") && scan.month(parts.month) && scan.skip(" ") &&
         scan.number(4, parts.year) && scan.skip(" ") && scan_time(scan, parts) &&
         scan.skip(" GMT") && scan.at_end();
}

bool scan_rfc850(std::string_view text, date_parts& parts) {
  date_scanner scan(text);
  return scan.weekday(0, parts.weekday) && scan.skip(", ") && scan.number(2, parts.day) &&
         scan.skip("-") && scan.month(parts.month) && scan.skip("-") &&
         scan.number(2, parts.year) && scan.skip(" ") && scan_time(scan, parts) &&
         scan.skip(" GMT") && scan.at_end();
}

bool scan_asctime(std::string_view text, date_parts& parts) {
  date_scanner scan(text);
  return scan.weekday(3, parts.weekday) && scan.skip(" ") && scan.month(parts.month) &&
         scan.skip(" ") && scan.number(2, parts.day, true) && scan.skip(" ") &&
         scan_time(scan, parts) && scan.skip(" ") && scan.number(4, parts.year) && scan.at_end();
}

std::optional<chr::sys_seconds> to_time(const date_parts& parts) {
  const chr::year_month_day date(chr::year(static_cast<int>(parts.year)), chr::month(parts.month),
                                 chr::day(parts.day));
  // 60 is a leap second.
  if (!date.ok() || parts.hour > 23 || parts.minute > 59 || parts.second > 60) return std::nullopt;
  const chr::sys_days day(date);
  if (chr::weekday(day).c_encoding() != parts.weekday) return std::nullopt;
  return day + chr::hours(parts.hour) + chr::minutes(parts.minute) + chr::seconds(parts.second);
}

}  // namespace

std::string format_date(chr::sys_seconds time) {
  const auto day = chr::floor<chr::days>(time);
  const chr::year_month_day date(day);
  const chr::hh_mm_ss clock(time - day);
  std::string text;
  text.reserve(29);
  text.append(weekdays[chr::weekday(day).c_encoding()].substr(0, 3)).append(", ");
  append_padded(text, static_cast<unsigned>(date.day()), 2);
  text.append(1, ' ').append(months[static_cast<unsigned>(date.month()) - 1]).append(1, ' ');
  append_padded(text, static_cast<unsigned>(static_cast<int>(date.year())), 4);
  text += ' ';
  append_padded(text, static_cast<unsigned>(clock.hours().count()), 2);
  text += ':';
  append_padded(text, static_cast<unsigned>(clock.minutes().count()), 2);
  text += ':';
  append_padded(text, static_cast<unsigned>(clock.seconds().count()), 2);
  text += " GMT";
  return text;
}

std::optional<chr::sys_seconds> parse_date(std::string_view text, chr::sys_seconds now) {
  date_parts parts;
  if (scan_fixdate(text, parts)) return to_time(parts);
  parts = {};
  if (scan_asctime(text, parts)) return to_time(parts);
  parts = {};
  if (!scan_rfc850(text, parts)) return std::nullopt;
  const auto this_year = static_cast<unsigned>(
      static_cast<int>(chr::year_month_day(chr::floor<chr::days>(now)).year()));
  parts.year += this_year / 100 * 100;
  if (parts.year > this_year + 50) parts.year -= 100;
  return to_time(parts);
}

}  // namespace HOLDFAST_NAMESPACE::detail::http
