#include "serve/api/json_writer.hpp"

#include "base/utf8.hpp"
#include "key/json_string.hpp"

#include <array>
#include <charconv>
#include <cmath>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

template <class Number>
void append_number(std::string& out, Number value) {
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  out.append(digits.data(), end);
}

/// Appends a number of at least so many digits.
void append_padded(std::string& out, std::int64_t value, std::size_t width) {
  const auto digits = std::to_string(value);
  if (digits.size() < width) out.append(width - digits.size(), '0');
  out += digits;
}

void append_time(std::string& out, timestamp value) {
  const auto day = std::chrono::floor<std::chrono::days>(value);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(value - day);
  append_padded(out, static_cast<int>(date.year()), 4);
  out += '-';
  append_padded(out, static_cast<unsigned>(date.month()), 2);
  out += '-';
  append_padded(out, static_cast<unsigned>(date.day()), 2);
  out += 'T';
  append_padded(out, clock.hours().count(), 2);
  out += ':';
  append_padded(out, clock.minutes().count(), 2);
  out += ':';
  append_padded(out, clock.seconds().count(), 2);
  out += '.';
  append_padded(out, clock.subseconds().count(), 6);
  out += 'Z';
}

}  // namespace

std::string time_text(timestamp value) {
  std::string text;
  append_time(text, value);
  return text;
}

void json_writer::separate() {
  if (needs_comma_) json_ += ',';
  needs_comma_ = true;
}

json_writer& json_writer::begin_object() {
  separate();
  json_ += '{';
  needs_comma_ = false;
  return *this;
}

json_writer& json_writer::end_object() {
  json_ += '}';
  needs_comma_ = true;
  return *this;
}

json_writer& json_writer::begin_array() {
  separate();
  json_ += '[';
  needs_comma_ = false;
  return *this;
}

json_writer& json_writer::end_array() {
  json_ += ']';
  needs_comma_ = true;
  return *this;
}

json_writer& json_writer::key(std::string_view name) {
  text(name);
  json_ += ':';
  needs_comma_ = false;
  return *this;
}

json_writer& json_writer::text(std::string_view value) {
  separate();
  if (is_utf8(value)) key::append_json_string(json_, value);
  else key::append_json_string(json_, replace_ill_formed(value));
  return *this;
}

json_writer& json_writer::number(std::int64_t value) {
  separate();
  append_number(json_, value);
  return *this;
}

json_writer& json_writer::number(std::uint64_t value) {
  separate();
  append_number(json_, value);
  return *this;
}

json_writer& json_writer::number(double value) {
  if (!std::isfinite(value)) return null();
  separate();
  append_number(json_, value);
  return *this;
}

json_writer& json_writer::wide(std::int64_t value) {
  separate();
  json_ += '"';
  append_number(json_, value);
  json_ += '"';
  return *this;
}

json_writer& json_writer::boolean(bool value) {
  separate();
  json_ += value ? "true" : "false";
  return *this;
}

json_writer& json_writer::null() {
  separate();
  json_ += "null";
  return *this;
}

json_writer& json_writer::time(timestamp value) {
  separate();
  json_ += '"';
  append_time(json_, value);
  json_ += '"';
  return *this;
}

json_writer& json_writer::raw(std::string_view json) {
  separate();
  json_ += json;
  return *this;
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
