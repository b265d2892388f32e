#include "sql/h2/values.hpp"

#include <holdfast/error.hpp>

#include "base/utf8.hpp"
#include "sql/civil_time.hpp"
#include "sql/driver_support.hpp"
#include "sql/h2/connection.hpp"

#include <libpq-fe.h>

#include <charconv>
#include <cstdio>
#include <memory>
#include <new>

namespace HOLDFAST_NAMESPACE::detail::sql::h2 {

namespace {

constexpr postgres::oid unspecified_type = 0;
constexpr int text_format = 0;
constexpr int binary_format = 1;

/// The length in UTF-16, as Java counts: a character above U+FFFF counts twice.
std::size_t utf16_length(std::string_view text) noexcept {
  std::size_t count = 0;
  for (const char c : text) {
    if (!continues_code_point(c)) count += static_cast<unsigned char>(c) >= 0xF0U ? 2 : 1;
  }
  return count;
}

[[noreturn]] void fail_size(std::size_t size, const char* unit) {
  throw error(errc::too_large,
              "the value has " + std::to_string(size) + " " + unit + ", and H2 takes at most " +
                  std::to_string(h2_longest_value) +
                  " in one value over this protocol; keep larger ones in another database");
}

std::string checked_text(std::string_view text) {
  if (text.find('\0') != std::string_view::npos)
    throw error(
        errc::invalid_argument,
        "a text contains a NUL byte, which cannot be sent to H2; keep it in a column of bytes");
  if (text.size() > h2_longest_value) {
    if (const auto length = utf16_length(text); length > h2_longest_value)
      fail_size(length, "characters");
  }
  return std::string(text);
}

std::string checked_bytes(std::string_view bytes) {
  if (bytes.size() > h2_longest_value) fail_size(bytes.size(), "bytes");
  return std::string(bytes);
}

// The parse_* functions remove what they read from the front of `text`.

bool parse_number(std::string_view& text, std::size_t most_digits, unsigned& number) {
  const auto digits = text.substr(0, most_digits);
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (problem != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

bool parse_character(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

/// `+05`, `-05:30`, `+05:30:15`, `Z`, or nothing. It must be the end of the text.
bool parse_offset(std::string_view& text, std::int64_t& seconds) {
  if (text.empty() || text == "Z") return text = {}, true;
  const bool west = text.front() == '-';
  if (!west && text.front() != '+') return false;
  text.remove_prefix(1);
  unsigned number = 0;
  std::int64_t unit = 3'600;
  do {
    if (unit == 0 || !parse_number(text, 2, number)) return false;
    seconds += unit * number;
    unit /= 60;
  } while (parse_character(text, ':'));
  if (west) seconds = -seconds;
  return text.empty();
}

bool parse_date(std::string_view& text, civil_time& civil) {
  const bool before_zero = parse_character(text, '-');
  if (!before_zero) parse_character(text, '+');
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), civil.year);
  if (problem != std::errc() || civil.year < 0) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (before_zero) civil.year = -civil.year;
  return parse_character(text, '-') && parse_number(text, 2, civil.month) &&
         parse_character(text, '-') && parse_number(text, 2, civil.day);
}

bool parse_time_of_day(std::string_view& text, civil_time& civil) {
  if (!parse_number(text, 2, civil.hour) || !parse_character(text, ':') ||
      !parse_number(text, 2, civil.minute))
    return false;
  if (parse_character(text, ':') && !parse_number(text, 2, civil.second)) return false;
  if (!parse_character(text, '.')) return true;
  for (unsigned scale = 100'000; !text.empty() && text.front() >= '0' && text.front() <= '9';
       text.remove_prefix(1), scale /= 10)
    civil.microsecond += scale * static_cast<unsigned>(text.front() - '0');
  return true;
}

struct free_memory {
  void operator()(unsigned char* memory) const noexcept { PQfreemem(memory); }
};

std::string unescaped(const char* text) {
  std::size_t length = 0;
  const std::unique_ptr<unsigned char, free_memory> bytes(
      PQunescapeBytea(reinterpret_cast<const unsigned char*>(text), &length));
  if (!bytes) throw std::bad_alloc();
  return {reinterpret_cast<const char*>(bytes.get()), length};
}

}  // namespace

std::string time_text(timestamp time) {
  const auto t = to_civil(time);
  char text[64];
  const int length =
      std::snprintf(text, sizeof text, "%s%04lld-%02u-%02u %02u:%02u:%02u.%06u+00",
                    t.year < 0 ? "-" : "", static_cast<long long>(t.year < 0 ? -t.year : t.year),
                    t.month, t.day, t.hour, t.minute, t.second, t.microsecond);
  return {text, static_cast<std::size_t>(length)};
}

std::optional<timestamp> read_time(std::string_view text) {
  civil_time civil;
  std::int64_t offset = 0;
  if (!parse_date(text, civil)) return std::nullopt;
  if (!parse_character(text, ' ') && !parse_character(text, 'T')) return std::nullopt;
  if (!parse_time_of_day(text, civil) || !parse_offset(text, offset)) return std::nullopt;
  if (is_valid(civil)) return from_civil(civil) - std::chrono::seconds(offset);
  // is_valid refuses the first and the last year of a timestamp, which are incomplete. The first
  // and the last timestamp, which mean "always" and "never", are accepted.
  for (const auto limit : {timestamp::max(), timestamp::min()}) {
    const auto expected = to_civil(limit);
    if (offset == 0 && expected.year == civil.year && expected.month == civil.month &&
        expected.day == civil.day && expected.hour == civil.hour &&
        expected.microsecond == civil.microsecond)
      return limit;
  }
  return std::nullopt;
}

value read_text(const char* text, std::size_t size, type expected, bool is_bytea) {
  const std::string_view whole(text, size);
  switch (expected) {
    case type::integer: {
      std::int64_t number = 0;
      const auto [end, problem] = std::from_chars(text, text + size, number);
      if (problem != std::errc() || end != text + size)
        throw error(errc::malformed, "H2 sent an invalid number");
      return number;
    }
    case type::time:
      if (const auto time = read_time(whole)) return *time;
      return {};  // one such row must not make the others unreadable
    case type::text:
    case type::bytes:
      break;
  }
  return is_bytea ? unescaped(text) : std::string(whole);
}

void text_bindings::clear() noexcept {
  texts_.clear();
  types_.clear();
  formats_.clear();
}

void text_bindings::add(type declared, const parameter& value) {
  types_.push_back(declared == type::bytes ? postgres::oid_of(type::bytes) : unspecified_type);
  formats_.push_back(declared == type::bytes ? binary_format : text_format);
  if (is_null(value)) {
    texts_.emplace_back();
    return;
  }
  const auto characters = characters_of(value);
  const auto* number = std::get_if<std::int64_t>(&value);
  const auto* time = std::get_if<timestamp>(&value);
  if (declared == type::integer && number != nullptr) texts_.emplace_back(std::to_string(*number));
  else if (declared == type::time && time != nullptr) texts_.emplace_back(time_text(*time));
  else if (declared == type::text && characters) texts_.emplace_back(checked_text(*characters));
  else if (declared == type::bytes && characters) texts_.emplace_back(checked_bytes(*characters));
  else fail_type(declared);
}

postgres::wire_parameters text_bindings::finish() {
  values_.clear();
  lengths_.clear();
  for (const auto& text : texts_) {
    values_.push_back(text ? text->c_str() : nullptr);
    lengths_.push_back(text ? static_cast<int>(text->size()) : 0);
  }
  return {.count = static_cast<int>(texts_.size()),
          .types = types_.data(),
          .values = values_.data(),
          .lengths = lengths_.data(),
          .formats = formats_.data(),
          .result_format = text_format};
}

}  // namespace HOLDFAST_NAMESPACE::detail::sql::h2
