#include "key/number_text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace HOLDFAST_NAMESPACE::detail::key {

namespace {

// ---- floating-point numbers

struct digits_and_exponent {
  char digits[20];  // NOLINT(*-avoid-c-arrays)
  std::size_t count = 0;
  int exponent = 0;  // of the first digit
};

digits_and_exponent parse_scientific(const char* p, const char* end) noexcept {
  digits_and_exponent result;
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

/// The shortest digits that give the same number when they are read back. Where one digit is
/// enough, Java prints two if they are closer to the number: 4.9E-324, not 5E-324.
template <class Float>
digits_and_exponent shortest_digits(Float magnitude) noexcept {
  char text[40];  // NOLINT(*-avoid-c-arrays)
  auto end = std::to_chars(text, text + sizeof text, magnitude, std::chars_format::scientific).ptr;
  auto result = parse_scientific(text, end);
  if (result.count == 1) {
    end = std::to_chars(text, text + sizeof text, magnitude, std::chars_format::scientific, 1).ptr;
    Float read_back{};
    if (std::from_chars(text, end, read_back).ec == std::errc{} && read_back == magnitude)
      result = parse_scientific(text, end);
  }
  while (result.count > 1 && result.digits[result.count - 1] == '0') --result.count;
  return result;
}

template <class Float>
std::size_t java_text_of(Float v, char* out) noexcept {
  const auto literal = [out](std::string_view text) {
    std::memcpy(out, text.data(), text.size());
    return text.size();
  };
  if (std::isnan(v)) return literal("NaN");
  if (std::isinf(v)) return literal(v < 0 ? "-Infinity" : "Infinity");
  if (v == 0) return literal(std::signbit(v) ? "-0.0" : "0.0");

  char* p = out;
  if (v < 0) *p++ = '-';
  const auto number = shortest_digits(std::fabs(v));
  const int exponent = number.exponent;
  const auto digit = [&number](int i) {
    return i < static_cast<int>(number.count) ? number.digits[i] : '0';
  };
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
  return static_cast<std::size_t>(p - out);
}

// ---- decimals

constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
constexpr char to_lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}

/// `prefix` is in lower case.
bool starts_with_ignoring_case(std::string_view text, std::string_view prefix) noexcept {
  return text.size() >= prefix.size() &&
         std::equal(prefix.begin(), prefix.end(), text.begin(),
                    [](char a, char b) { return a == to_lower(b); });
}

/// Removes a sign from the front of the text. Returns `-` or nothing.
std::string_view remove_sign(std::string_view& text) {
  if (text.empty() || (text.front() != '-' && text.front() != '+')) return "";
  const std::string_view sign = text.front() == '-' ? "-" : "";
  text.remove_prefix(1);
  return sign;
}

/// Python's special values: `inf`, `Infinity`, `nan`, `sNaN123`.
std::optional<std::string> special_decimal(std::string_view sign, std::string_view text) {
  if (text.size() == 3 && starts_with_ignoring_case(text, "inf"))
    return std::string(sign) + "Infinity";
  if (text.size() == 8 && starts_with_ignoring_case(text, "infinity"))
    return std::string(sign) + "Infinity";
  for (const auto& [prefix, name] :
       {std::pair<std::string_view, std::string_view>{"snan", "sNaN"}, {"nan", "NaN"}}) {
    if (!starts_with_ignoring_case(text, prefix)) continue;
    auto payload = text.substr(prefix.size());
    if (!std::all_of(payload.begin(), payload.end(), is_digit)) return std::nullopt;
    while (!payload.empty() && payload.front() == '0') payload.remove_prefix(1);
    return std::string(sign) + std::string(name) + std::string(payload);
  }
  return std::nullopt;
}

/// The number digits * 10^exponent.
struct scaled_digits {
  std::string digits;
  std::int64_t exponent = 0;
};

/// Reads `12.34e5`, without a sign. Returns nullopt if the text is not a decimal.
std::optional<scaled_digits> parse_decimal(std::string_view text) {
  scaled_digits result;
  std::size_t length = 0;  // of the digits and the point
  for (bool fraction = false; length < text.size(); ++length) {
    const char c = text[length];
    if (c == '.' && !fraction) {
      fraction = true;
    } else if (is_digit(c)) {
      result.digits.push_back(c);
      if (fraction) --result.exponent;
    } else {
      break;
    }
  }
  if (result.digits.empty()) return std::nullopt;
  if (length < text.size()) {
    if (to_lower(text[length]) != 'e') return std::nullopt;
    auto power_text = text.substr(length + 1);
    const bool plus = power_text.starts_with('+');
    if (plus) power_text.remove_prefix(1);
    if (power_text.empty() || (plus && !is_digit(power_text.front()))) return std::nullopt;
    // More digits could overflow the sum below. The decimal libraries refuse them as well.
    if (power_text.size() > 18) return std::nullopt;
    std::int64_t power = 0;
    const auto* const power_end = power_text.data() + power_text.size();
    const auto [end, failed] =
        std::from_chars(power_text.data(), power_text.data() + power_text.size(), power);
    if (failed != std::errc{} || end != power_end) return std::nullopt;
    result.exponent += power;
  }
  result.digits.erase(0, std::min(result.digits.find_first_not_of('0'), result.digits.size() - 1));
  return result;
}

/// Both libraries print without an exponent, unless the exponent is positive or more than five
/// zeros would follow the point.
std::string format_decimal(std::string_view sign, const scaled_digits& number) {
  const std::string& digits = number.digits;
  const auto count = static_cast<std::int64_t>(digits.size());
  const std::int64_t adjusted = number.exponent + count - 1;  // exponent of the first digit
  std::string result(sign);
  if (number.exponent <= 0 && adjusted >= -6) {
    if (number.exponent == 0) return result + digits;
    const std::int64_t integer_digits = count + number.exponent;
    if (integer_digits > 0) {
      const auto point = static_cast<std::size_t>(integer_digits);
      return result + digits.substr(0, point) + "." + digits.substr(point);
    }
    return result + "0." + std::string(static_cast<std::size_t>(-integer_digits), '0') + digits;
  }
  result += digits.front();
  if (count > 1) result += "." + digits.substr(1);
  result += adjusted < 0 ? "E-" : "E+";
  return result + std::to_string(adjusted < 0 ? -adjusted : adjusted);
}

}  // namespace

std::size_t java_text(double v, char* out) noexcept { return java_text_of(v, out); }
std::size_t java_text(float v, char* out) noexcept { return java_text_of(v, out); }

std::optional<std::string> decimal_text(std::string_view text, decimal_rules rules) {
  const bool python = rules == decimal_rules::python;
  std::string without_underscores;
  if (python) {
    // Python accepts white space around a number and underscores in it.
    constexpr std::string_view white_space = " \t\n\v\f\r";
    const auto first = std::min(text.find_first_not_of(white_space), text.size());
    text = text.substr(first, text.find_last_not_of(white_space) + 1 - first);
    if (text.find('_') != std::string_view::npos) {
      without_underscores = text;
      std::erase(without_underscores, '_');
      text = without_underscores;
    }
  }
  const auto sign = remove_sign(text);
  if (python) {
    if (auto special = special_decimal(sign, text)) return special;
  }
  const auto number = parse_decimal(text);
  if (!number) return std::nullopt;
  return format_decimal(!python && number->digits == "0" ? "" : sign, *number);
}

std::optional<std::string> integer_text(std::string_view text) {
  const auto sign = remove_sign(text);
  if (text.empty() || !std::all_of(text.begin(), text.end(), is_digit)) return std::nullopt;
  text.remove_prefix(std::min(text.find_first_not_of('0'), text.size() - 1));
  return std::string(text == "0" ? "" : sign) + std::string(text);
}

}  // namespace HOLDFAST_NAMESPACE::detail::key
