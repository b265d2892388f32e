#include "base/line_text.hpp"

#include "base/hex.hpp"
#include "base/utf8.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>

namespace HOLDFAST_NAMESPACE::detail {

namespace {

void append_json_escape(std::string& out, unsigned code) {
  const std::array<unsigned char, 2> bytes{static_cast<unsigned char>(code >> 8U),
                                           static_cast<unsigned char>(code)};
  out += "\\u" + to_hex(bytes);
}

void append_escaped_byte(std::string& out, char c) {
  out += "\\x";
  append_hex(out, {&c, 1});
}

void append_digits(std::string& out, std::int64_t number, std::size_t width) {
  const std::string digits = std::to_string(number);
  out.append(width - std::min(width, digits.size()), '0').append(digits);
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t size = code_point_size(text);
    const auto first = static_cast<unsigned char>(text.front());
    const bool control =
        first < 0x20 || first == 0x7f || controls_display(short_code_point(text.substr(0, size)));
    const std::size_t consumed = size == 0 ? 1 : size;
    if (size == 0 || control) {
      for (const char c : text.substr(0, consumed)) append_escaped_byte(out, c);
    } else {
      out += text.substr(0, consumed);
    }
    text.remove_prefix(consumed);
  }
  return out;
}

std::string json_text(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const std::size_t size = code_point_size(text);
    const char first = text.front();
    if (size == 0) {
      out += "\\ufffd";
    } else if (first == '"' || first == '\\') {
      out += '\\';
      out += first;
    } else if (static_cast<unsigned char>(first) < 0x20 || first == 0x7f) {
      append_json_escape(out, static_cast<unsigned char>(first));
    } else if (const auto code = short_code_point(text.substr(0, size)); controls_display(code)) {
      append_json_escape(out, code);
    } else {
      out += text.substr(0, size);
    }
    text.remove_prefix(size == 0 ? 1 : size);
  }
  out += '"';
  return out;
}

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

}  // namespace HOLDFAST_NAMESPACE::detail
