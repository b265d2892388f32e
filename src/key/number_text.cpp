#include "key/number_text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace HOLDFAST_NAMESPACE::key {

namespace {

struct digits_and_exponent {
  char digits[20];  // NOLINT(*-avoid-c-arrays)
  std::size_t count = 0;
  int exponent = 0;  // of the first digit
};

template <class Float>
digits_and_exponent parse_scientific(const char* begin, const char* end) noexcept {
  digits_and_exponent result;
  const char* p = begin;
  for (; p != end && *p != 'e'; ++p) {
    if (*p != '.') result.digits[result.count++] = *p;
  }
  if (p != end) {
    ++p;
    if (*p == '+') ++p;
    std::from_chars(p, end, result.exponent);
  }
  return result;
}

/// The shortest digits that read back as the same number. Where one digit would do, Java prints two if there are two that are closer
/// and still read back (4.9E-324, not 5E-324).
template <class Float>
digits_and_exponent shortest(Float magnitude) noexcept {
  char text[40];  // NOLINT(*-avoid-c-arrays)
  auto end = std::to_chars(text, text + sizeof text, magnitude, std::chars_format::scientific).ptr;
  auto result = parse_scientific<Float>(text, end);
  if (result.count == 1) {
    end = std::to_chars(text, text + sizeof text, magnitude, std::chars_format::scientific, 1).ptr;
    Float back{};
    if (std::from_chars(text, end, back).ec == std::errc{} && back == magnitude) result = parse_scientific<Float>(text, end);
  }
  while (result.count > 1 && result.digits[result.count - 1] == '0') --result.count;
  return result;
}

template <class Float>
std::size_t java_text_of(Float v, char* to) noexcept {
  const auto literal = [to](std::string_view text) {
    std::memcpy(to, text.data(), text.size());
    return text.size();
  };
  if (std::isnan(v)) return literal("NaN");
  if (std::isinf(v)) return literal(v < 0 ? "-Infinity" : "Infinity");
  if (v == 0) return literal(std::signbit(v) ? "-0.0" : "0.0");

  char* p = to;
  if (v < 0) *p++ = '-';
  const auto number = shortest(std::fabs(v));
  const int exponent = number.exponent;
  const auto digit = [&number](int i) { return i < static_cast<int>(number.count) ? number.digits[i] : '0'; };
  const int count = static_cast<int>(number.count);

  if (exponent >= -3 && exponent < 7) {
    if (exponent >= 0) {
      for (int i = 0; i <= exponent; ++i) *p++ = digit(i);
    } else {
      *p++ = '0';
    }
    *p++ = '.';
    for (int i = exponent + 1; i < 0; ++i) *p++ = '0';
    const int first_fraction = std::max(exponent + 1, 0);
    if (first_fraction >= count) *p++ = '0';
    for (int i = first_fraction; i < count; ++i) *p++ = digit(i);
  } else {
    *p++ = digit(0);
    *p++ = '.';
    if (count == 1) *p++ = '0';
    for (int i = 1; i < count; ++i) *p++ = digit(i);
    *p++ = 'E';
    p = std::to_chars(p, p + 5, exponent).ptr;
  }
  return static_cast<std::size_t>(p - to);
}

constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
constexpr char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

bool starts_with_no_case(std::string_view text, std::string_view prefix) noexcept {
  return text.size() >= prefix.size() &&
         std::equal(prefix.begin(), prefix.end(), text.begin(), [](char a, char b) { return a == lower(b); });
}

/// Python's special values: `inf`, `Infinity`, `nan`, `sNaN123`.
std::optional<std::string> special_decimal(std::string_view sign, std::string_view text) {
  if (text.size() == 3 && starts_with_no_case(text, "inf")) return std::string(sign) + "Infinity";
  if (text.size() == 8 && starts_with_no_case(text, "infinity")) return std::string(sign) + "Infinity";
  for (const auto& [prefix, name] : {std::pair<std::string_view, std::string_view>{"snan", "sNaN"}, {"nan", "NaN"}}) {
    if (!starts_with_no_case(text, prefix)) continue;
    auto payload = text.substr(prefix.size());
    if (!std::all_of(payload.begin(), payload.end(), is_digit)) return std::nullopt;
    while (!payload.empty() && payload.front() == '0') payload.remove_prefix(1);
    return std::string(sign) + std::string(name) + std::string(payload);
  }
  return std::nullopt;
}

}  // namespace

std::size_t java_text(double v, char* to) noexcept { return java_text_of(v, to); }
std::size_t java_text(float v, char* to) noexcept { return java_text_of(v, to); }

std::optional<std::string> decimal_text(std::string_view text, decimal_rules rules) {
  std::string cleaned;
  if (rules == decimal_rules::python) {
    // Python takes white space around the number and underscores within it.
    constexpr std::string_view white = " \t\n\v\f\r";
    const auto first = std::min(text.find_first_not_of(white), text.size());
    text = text.substr(first, text.find_last_not_of(white) + 1 - first);
    if (text.find('_') != std::string_view::npos) {
      cleaned = text;
      std::erase(cleaned, '_');
      text = cleaned;
    }
  }
  std::string_view sign;
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) {
    if (text.front() == '-') sign = "-";
    text.remove_prefix(1);
  }
  if (rules == decimal_rules::python) {
    if (auto special = special_decimal(sign, text)) return special;
  }

  std::string digits;  // the coefficient
  std::int64_t exponent = 0;
  bool any = false;
  std::size_t at = 0;
  for (bool fraction = false; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '.' && !fraction) {
      fraction = true;
    } else if (is_digit(c)) {
      any = true;
      digits.push_back(c);
      if (fraction) --exponent;
    } else {
      break;
    }
  }
  if (!any) return std::nullopt;
  if (at < text.size()) {
    if (lower(text[at]) != 'e') return std::nullopt;
    auto power_text = text.substr(at + 1);
    const bool plus = power_text.starts_with('+');
    if (plus) power_text.remove_prefix(1);
    if (power_text.empty() || (plus && !is_digit(power_text.front()))) return std::nullopt;
    // An exponent of more digits would overflow the sum below; nobody's decimal library takes it either.
    std::int64_t power = 0;
    const auto [end, failed] = std::from_chars(power_text.data(), power_text.data() + power_text.size(), power);
    if (failed != std::errc{} || end != power_text.data() + power_text.size() || power_text.size() > 18) return std::nullopt;
    exponent += power;
  }
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size() - 1));
  if (rules == decimal_rules::java && digits == "0") sign = "";

  // The rule both libraries share: plain unless the exponent is positive or the first digit is more than six places behind the point.
  const auto count = static_cast<std::int64_t>(digits.size());
  const std::int64_t adjusted = exponent + count - 1;
  std::string result(sign);
  if (exponent <= 0 && adjusted >= -6) {
    const std::int64_t point = count + exponent;  // digits before the point
    if (exponent == 0) return result + digits;
    if (point > 0) return result + digits.substr(0, static_cast<std::size_t>(point)) + "." + digits.substr(static_cast<std::size_t>(point));
    return result + "0." + std::string(static_cast<std::size_t>(-point), '0') + digits;
  }
  result += digits.front();
  if (count > 1) result += "." + digits.substr(1);
  result += adjusted < 0 ? "E-" : "E+";
  return result + std::to_string(adjusted < 0 ? -adjusted : adjusted);
}

std::optional<std::string> integer_text(std::string_view text) {
  std::string sign;
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) {
    if (text.front() == '-') sign = "-";
    text.remove_prefix(1);
  }
  if (text.empty() || !std::all_of(text.begin(), text.end(), is_digit)) return std::nullopt;
  text.remove_prefix(std::min(text.find_first_not_of('0'), text.size() - 1));
  if (text == "0") sign.clear();
  return sign + std::string(text);
}

}  // namespace HOLDFAST_NAMESPACE::key
