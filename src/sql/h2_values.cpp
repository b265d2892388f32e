#include "sql/h2_values.hpp"

#include <holdfast/error.hpp>

#include "sql/civil_time.hpp"
#include "sql/h2_connection.hpp"

#include <libpq-fe.h>

#include <charconv>
#include <cstdio>
#include <memory>
#include <new>

namespace HOLDFAST_NAMESPACE::sql::h2 {

namespace {

constexpr postgres::oid any_type = 0;
constexpr postgres::oid bytea = 17;

/// As Java counts: a character beyond U+FFFF is two.
std::size_t utf16_length(std::string_view text) noexcept {
  std::size_t count = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xC0U) != 0x80U) count += byte >= 0xF0U ? 2 : 1;
  }
  return count;
}

[[noreturn]] void fail_size(std::size_t size, const char* what) {
  throw error(errc::too_large, "the value has " + std::to_string(size) + " " + what + ", and H2 takes at most " +
                                   std::to_string(h2_longest_value) +
                                   " in one value over this protocol; keep larger ones in another database");
}

[[noreturn]] void fail_type() { throw error(errc::invalid_argument, "a parameter is declared as one type, but its value is of another"); }

std::string checked_text(std::string_view text) {
  if (text.find('\0') != std::string_view::npos)
    throw error(errc::invalid_argument, "a text contains a NUL byte, which cannot be sent to H2; keep it in a column of bytes");
  if (text.size() > h2_longest_value) {
    if (const auto length = utf16_length(text); length > h2_longest_value) fail_size(length, "characters");
  }
  return std::string(text);
}

std::string checked_bytes(std::string_view bytes) {
  if (bytes.size() > h2_longest_value) fail_size(bytes.size(), "bytes");
  return std::string(bytes);
}

bool take_number(std::string_view& text, std::size_t most_digits, unsigned& into) {
  const auto digits = text.substr(0, most_digits);
  const auto [stop, wrong] = std::from_chars(digits.data(), digits.data() + digits.size(), into);
  if (wrong != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
  return true;
}

bool take(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

/// `+05`, `-05:30`, `+05:30:15`, or nothing.
bool take_offset(std::string_view& text, std::int64_t& seconds) {
  if (text.empty() || text == "Z") return text = {}, true;
  const bool west = text.front() == '-';
  if (!west && text.front() != '+') return false;
  text.remove_prefix(1);
  unsigned part = 0;
  std::int64_t unit = 3'600;
  do {
    if (unit == 0 || !take_number(text, 2, part)) return false;
    seconds += unit * part;
    unit /= 60;
  } while (take(text, ':'));
  if (west) seconds = -seconds;
  return text.empty();
}

}  // namespace

std::string time_text(timestamp when) {
  const auto t = to_civil(when);
  char text[64];
  // Four digits at least; a sign in front of years before 0.
  const int length =
      std::snprintf(text, sizeof text, "%s%04lld-%02u-%02u %02u:%02u:%02u.%06u+00", t.year < 0 ? "-" : "",
                    static_cast<long long>(t.year < 0 ? -t.year : t.year), t.month, t.day, t.hour, t.minute, t.second, t.microsecond);
  return {text, static_cast<std::size_t>(length)};
}

std::optional<timestamp> read_time(std::string_view text) {
  civil_time t;
  const bool before_zero = take(text, '-');
  if (!before_zero) take(text, '+');
  const auto [stop, wrong] = std::from_chars(text.data(), text.data() + text.size(), t.year);
  if (wrong != std::errc() || t.year < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
  if (before_zero) t.year = -t.year;
  if (!take(text, '-') || !take_number(text, 2, t.month) || !take(text, '-') || !take_number(text, 2, t.day)) return std::nullopt;
  if (!take(text, ' ') && !take(text, 'T')) return std::nullopt;
  if (!take_number(text, 2, t.hour) || !take(text, ':') || !take_number(text, 2, t.minute)) return std::nullopt;
  if (take(text, ':') && !take_number(text, 2, t.second)) return std::nullopt;
  if (take(text, '.')) {
    unsigned scale = 100'000;
    for (; !text.empty() && text.front() >= '0' && text.front() <= '9'; text.remove_prefix(1), scale /= 10)
      t.microsecond += scale * static_cast<unsigned>(text.front() - '0');
  }
  std::int64_t offset = 0;
  // The ends of our time lie within a year that is_civil does not have; what we wrote ourselves comes back.
  if (!take_offset(text, offset)) return std::nullopt;
  if (!is_civil(t)) {
    for (const auto end : {timestamp::max(), timestamp::min()}) {
      const auto e = to_civil(end);
      if (offset == 0 && e.year == t.year && e.month == t.month && e.day == t.day && e.hour == t.hour && e.microsecond == t.microsecond)
        return end;
    }
    return std::nullopt;
  }
  return from_civil(t) - std::chrono::seconds(offset);
}

namespace {

struct free_by_libpq {
  void operator()(unsigned char* memory) const noexcept { PQfreemem(memory); }
};

std::string unescaped(const char* text) {
  std::size_t length = 0;
  const std::unique_ptr<unsigned char, free_by_libpq> bytes(PQunescapeBytea(reinterpret_cast<const unsigned char*>(text), &length));
  if (!bytes) throw std::bad_alloc();
  return {reinterpret_cast<const char*>(bytes.get()), length};
}

}  // namespace

value read_text(const char* text, std::size_t size, type wanted, bool is_bytea) {
  const std::string_view whole(text, size);
  switch (wanted) {
    case type::integer: {
      std::int64_t number = 0;
      const auto [end, wrong] = std::from_chars(text, text + size, number);
      if (wrong != std::errc() || end != text + size) throw error(errc::malformed, "H2 sent a number that is none");
      return number;
    }
    case type::time:
      if (const auto when = read_time(whole)) return *when;
      return {};  // one odd row must not cost the others
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
  types_.push_back(declared == type::bytes ? bytea : any_type);
  formats_.push_back(declared == type::bytes ? 1 : 0);
  if (std::holds_alternative<std::monostate>(value)) {
    texts_.emplace_back();
    return;
  }
  // Text for bytes and bytes for text are welcome: which of them a payload is depends on its column.
  std::optional<std::string_view> characters;
  if (const auto* text = std::get_if<std::string_view>(&value)) characters = *text;
  if (const auto* bytes = std::get_if<std::span<const std::byte>>(&value))
    characters.emplace(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  switch (declared) {
    case type::integer:
      if (const auto* number = std::get_if<std::int64_t>(&value)) return void(texts_.emplace_back(std::to_string(*number)));
      break;
    case type::time:
      if (const auto* when = std::get_if<timestamp>(&value)) return void(texts_.emplace_back(time_text(*when)));
      break;
    case type::text:
      if (characters) return void(texts_.emplace_back(checked_text(*characters)));
      break;
    case type::bytes:
      if (characters) return void(texts_.emplace_back(checked_bytes(*characters)));
      break;
  }
  fail_type();
}

postgres::wire_parameters text_bindings::wire() {
  values_.clear();
  lengths_.clear();
  for (const auto& each : texts_) {
    values_.push_back(each ? each->c_str() : nullptr);
    lengths_.push_back(each ? static_cast<int>(each->size()) : 0);
  }
  return {.count = static_cast<int>(texts_.size()),
          .types = types_.data(),
          .values = values_.data(),
          .lengths = lengths_.data(),
          .formats = formats_.data(),
          .result_format = 0};
}

}  // namespace HOLDFAST_NAMESPACE::sql::h2
