#include <holdfast/codec.hpp>
#include <holdfast/error.hpp>

#include "base/base64.hpp"
#include "base/utf8.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail {

void rethrow_as_codec_error(const char* problem) {
  try {
    throw;
  } catch (const error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;  // the bytes are not at fault
  } catch (const std::exception& e) {
    throw error(errc::malformed, std::string(problem) + ": " + e.what());
  } catch (...) {
    throw error(errc::malformed, std::string(problem) +
                                     ": the codec threw an exception that is not a std::exception");
  }
}

namespace {

template <class Number>
void append_number(std::string& out, Number value) {
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  out.append(digits.data(), end);
}

template <class Number>
void append_finite(std::string& out, Number value) {
  if (!std::isfinite(value))
    throw error(errc::not_finite,
                "JSON cannot represent NaN or infinity; leave the value out or make it null",
                {.path = "answer"});
  const std::size_t begin = out.size();
  append_number(out, value);
  // `1.0`, as nlohmann::json writes it, and not `1`: other programs see that it is not an integer.
  if (out.find_first_of(".e", begin) == std::string::npos) out += ".0";
}

[[nodiscard]] bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

/// The number of digits that the text begins with.
[[nodiscard]] std::size_t count_digits(std::string_view text) noexcept {
  return static_cast<std::size_t>(std::ranges::find_if_not(text, is_digit) - text.begin());
}

template <class Number>
[[nodiscard]] Number parse_integer(std::string_view token, Number least, Number most) {
  Number value = 0;
  const auto [stop, failure] = std::from_chars(token.data(), token.data() + token.size(), value);
  if (failure != std::errc{} || stop != token.data() + token.size() || value < least ||
      value > most)
    throw error(errc::malformed, "the payload is not an integer of this size", {.path = "payload"});
  return value;
}

}  // namespace

void json_writer::boolean(bool value) { out_ += value ? "true" : "false"; }
void json_writer::integer(std::int64_t value) { append_number(out_, value); }
void json_writer::unsigned_integer(std::uint64_t value) { append_number(out_, value); }
void json_writer::number(float value) { append_finite(out_, value); }
void json_writer::number(double value) { append_finite(out_, value); }
void json_writer::null() { out_ += "null"; }
void json_writer::punctuation(char c) { out_ += c; }
std::string json_writer::finish() noexcept { return std::move(out_); }

void json_writer::text(std::string_view value) {
  if (!is_utf8(value))
    throw error(errc::ill_formed_text, "the answer contains text that is not well-formed UTF-8",
                {.path = "answer"});
  constexpr std::string_view hex = "0123456789abcdef";
  out_ += '"';
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out_ += '\\';
      out_ += c;
    } else if (byte >= 0x20) {
      out_ += c;
    } else {
      out_ += "\\u00";
      out_ += hex[byte >> 4U];
      out_ += hex[byte & 0xFU];
    }
  }
  out_ += '"';
}

void json_writer::bytes(std::span<const std::byte> value) {
  out_ += '"';
  const std::size_t begin = out_.size();
  out_.resize(begin + base64_size(value.size()));
  encode_base64(value, out_.data() + begin);
  out_ += '"';
}

void json_reader::fail() const {
  throw error(errc::malformed,
              text_.empty() ? "the payload is empty"
                            : "the payload is not JSON: error at byte " +
                                  std::to_string(text_.size() - rest_.size() + 1),
              {.path = "payload"});
}

void json_reader::fail(const char* expected) const {
  if (rest_.empty()) fail();
  throw error(errc::malformed,
              "the payload does not match the type: expected " + std::string(expected) +
                  " at byte " + std::to_string(text_.size() - rest_.size() + 1),
              {.path = "payload"});
}

void json_reader::skip_space() noexcept {
  rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\n\r"), rest_.size()));
}

bool json_reader::skip(std::string_view word) noexcept {
  if (!rest_.starts_with(word)) return false;
  rest_.remove_prefix(word.size());
  return true;
}

bool json_reader::boolean() {
  skip_space();
  if (skip("true")) return true;
  if (skip("false")) return false;
  fail("true or false");
}

bool json_reader::null() {
  skip_space();
  return skip("null");
}

std::string_view json_reader::number_token() {
  skip_space();
  const std::string_view begin = rest_;
  (void)skip("-");
  const std::size_t digits = count_digits(rest_);
  if (digits == 0) fail("a number");
  if (digits > 1 && rest_.front() == '0') fail();
  rest_.remove_prefix(digits);
  if (skip(".")) {
    const std::size_t fraction = count_digits(rest_);
    if (fraction == 0) fail();
    rest_.remove_prefix(fraction);
  }
  if (skip("e") || skip("E")) {
    if (!skip("+")) (void)skip("-");
    const std::size_t exponent = count_digits(rest_);
    if (exponent == 0) fail();
    rest_.remove_prefix(exponent);
  }
  return begin.substr(0, begin.size() - rest_.size());
}

std::int64_t json_reader::integer(std::int64_t least, std::int64_t most) {
  return parse_integer(number_token(), least, most);
}

std::uint64_t json_reader::unsigned_integer(std::uint64_t most) {
  return parse_integer(number_token(), std::uint64_t{0}, most);
}

template <class Number>
Number json_reader::finite() {
  const std::string_view token = number_token();
  Number value = 0;
  if (std::from_chars(token.data(), token.data() + token.size(), value).ec != std::errc{})
    throw error(errc::malformed, "the payload contains a number that is too large or too small",
                {.path = "payload"});
  return value;
}

float json_reader::float_number() { return finite<float>(); }
double json_reader::double_number() { return finite<double>(); }

char32_t json_reader::code_unit() {
  std::uint16_t unit = 0;
  const auto digits = rest_.substr(0, 4);
  const auto [stop, failure] =
      std::from_chars(digits.data(), digits.data() + digits.size(), unit, 16);
  if (digits.size() < 4 || failure != std::errc{} || stop != digits.end()) fail();
  rest_.remove_prefix(digits.size());
  return unit;
}

/// The backslash is read already.
void json_reader::append_escaped(std::string& out) {
  constexpr std::string_view letters = "\"\\/bfnrt";
  constexpr std::string_view meanings = "\"\\/\b\f\n\r\t";
  if (rest_.empty()) fail();
  const char letter = rest_.front();
  rest_.remove_prefix(1);
  if (const auto index = letters.find(letter); index != std::string_view::npos) {
    out += meanings[index];
    return;
  }
  if (letter != 'u') fail();
  char32_t code_point = code_unit();
  if (code_point >= 0xD800 && code_point < 0xDC00) {
    if (!skip("\\u")) fail();
    const char32_t low = code_unit();
    if (low < 0xDC00 || low >= 0xE000) fail();
    code_point = 0x10000 + ((code_point - 0xD800) << 10U) + (low - 0xDC00);
  }
  std::array<char, 4> bytes{};
  const std::size_t size = encode_utf8(code_point, bytes.data());
  if (size == 0) fail();
  out.append(bytes.data(), size);
}

std::string json_reader::text() {
  skip_space();
  if (!skip("\"")) fail("a text");
  std::string out;
  for (;;) {
    const auto plain = std::ranges::find_if(rest_, [](char c) {
      return c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20;
    });
    const auto size = static_cast<std::size_t>(plain - rest_.begin());
    if (!is_utf8(rest_.substr(0, size))) fail();
    out.append(rest_.substr(0, size));
    rest_.remove_prefix(size);
    if (skip("\"")) return out;
    if (!skip("\\")) fail();
    append_escaped(out);
  }
}

std::vector<std::byte> json_reader::bytes() {
  const std::string encoded = text();
  const auto size = decoded_base64_size(encoded);
  std::vector<std::byte> out(size.value_or(0));
  if (!size || !decode_base64(encoded, out.data()))
    throw error(errc::malformed, "the payload does not match the type: a text is not base64",
                {.path = "payload"});
  return out;
}

void json_reader::begin_list() {
  skip_space();
  if (!skip("[")) fail("a list");
}

bool json_reader::next_item(bool first) {
  skip_space();
  if (skip("]")) return false;
  if (!first && !skip(",")) fail();
  return true;
}

void json_reader::end() {
  skip_space();
  if (!rest_.empty()) fail();
}

}  // namespace HOLDFAST_NAMESPACE::detail
