#include "http/structured_field.hpp"

#include <holdfast/error.hpp>

#include "base/base64.hpp"
#include "base/hex.hpp"
#include "base/utf8.hpp"
#include "http/syntax.hpp"

#include <algorithm>
#include <span>

namespace HOLDFAST_NAMESPACE::detail::http::structured {

namespace {

constexpr std::int64_t max_integer = 999'999'999'999'999;

bool begins_key(char c) noexcept { return is_lower(c) || c == '*'; }
bool continues_key(char c) noexcept {
  return begins_key(c) || is_digit(c) || c == '_' || c == '-' || c == '.';
}
bool begins_token(char c) noexcept { return is_alpha(c) || c == '*'; }
bool continues_token(char c) noexcept { return is_token_character(c) || c == ':' || c == '/'; }

/// Sets the value of a key, at its first position if it is there already.
template <class Value>
void assign(std::vector<std::pair<std::string, Value>>& entries, std::string key, Value value) {
  for (auto& [name, current] : entries) {
    if (name == key) {
      current = std::move(value);
      return;
    }
  }
  entries.emplace_back(std::move(key), std::move(value));
}

/// The algorithms of RFC 9651, section 4.2. Each function reads from the front of the rest, and
/// returns false if the text is ill-formed.
class parser {
 public:
  explicit parser(std::string_view text) : rest_(text) { skip_spaces(); }

  bool at_end() {
    skip_spaces();
    return rest_.empty();
  }
  bool read_item(item& result) {
    return read_bare_item(result.value) && read_parameters(result.parameters);
  }
  bool read_list(list& result) {
    while (!rest_.empty()) {
      if (!read_member(result.emplace_back())) return false;
      if (!read_separator()) return false;
    }
    return true;
  }
  bool read_dictionary(dictionary& result) {
    while (!rest_.empty()) {
      std::string key;
      if (!read_key(key)) return false;
      member value;
      if (skip('=')) {
        if (!read_member(value)) return false;
      } else {
        item flag{.value = true};
        if (!read_parameters(flag.parameters)) return false;
        value = std::move(flag);
      }
      assign(result, std::move(key), std::move(value));
      if (!read_separator()) return false;
    }
    return true;
  }

 private:
  [[nodiscard]] bool next_is(char c) const { return !rest_.empty() && rest_.front() == c; }
  bool skip(char c) {
    if (!next_is(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void skip_spaces() {
    while (skip(' ')) {
    }
  }
  /// Reads a comma, after which another member must follow, or the end.
  bool read_separator() {
    while (!rest_.empty() && is_whitespace(rest_.front())) rest_.remove_prefix(1);
    if (rest_.empty()) return true;
    if (!skip(',')) return false;
    while (!rest_.empty() && is_whitespace(rest_.front())) rest_.remove_prefix(1);
    return !rest_.empty();
  }
  bool read_member(member& result) {
    if (next_is('(')) return read_inner_list(result.emplace<inner_list>());
    return read_item(result.emplace<item>());
  }
  bool read_inner_list(inner_list& result) {
    rest_.remove_prefix(1);
    for (;;) {
      skip_spaces();
      if (skip(')')) return read_parameters(result.parameters);
      if (!read_item(result.items.emplace_back())) return false;
      if (!next_is(' ') && !next_is(')')) return false;
    }
  }
  bool read_key(std::string& key) {
    if (rest_.empty() || !begins_key(rest_.front())) return false;
    std::size_t size = 1;
    while (size < rest_.size() && continues_key(rest_[size])) ++size;
    key.assign(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return true;
  }
  bool read_parameters(parameters& result) {
    while (skip(';')) {
      skip_spaces();
      std::string key;
      if (!read_key(key)) return false;
      bare_item value = true;
      if (skip('=') && !read_bare_item(value)) return false;
      assign(result, std::move(key), std::move(value));
    }
    return true;
  }
  bool read_bare_item(bare_item& result) {
    if (rest_.empty()) return false;
    const char c = rest_.front();
    if (c == '-' || is_digit(c)) return read_number(result);
    if (begins_token(c)) return read_token(result);
    switch (c) {
      case '"':
        return read_string(result);
      case ':':
        return read_bytes(result);
      case '?':
        return read_boolean(result);
      case '@':
        return read_date(result);
      case '%':
        return read_display_string(result);
      default:
        return false;
    }
  }
  bool read_number(bare_item& result) {
    const bool negative = skip('-');
    std::size_t size = 0;
    std::size_t point = std::string_view::npos;
    for (; size < rest_.size(); ++size) {
      if (rest_[size] == '.' && point == std::string_view::npos) point = size;
      else if (!is_digit(rest_[size])) break;
    }
    const auto digits = rest_.substr(0, size);
    rest_.remove_prefix(size);
    const std::int64_t sign = negative ? -1 : 1;
    if (point == std::string_view::npos) {
      const auto number = digits.size() <= 15 ? parse_digits(digits) : std::nullopt;
      if (number) result = sign * static_cast<std::int64_t>(*number);
      return number.has_value();
    }
    const auto whole = parse_digits(digits.substr(0, point));
    std::string fraction(digits.substr(point + 1));
    if (!whole || point > 12 || fraction.empty() || fraction.size() > 3) return false;
    fraction.resize(3, '0');
    const auto thousandths = parse_digits(fraction);
    if (!thousandths) return false;
    result = decimal{sign * (static_cast<std::int64_t>(*whole) * 1000 +
                             static_cast<std::int64_t>(*thousandths))};
    return true;
  }
  bool read_token(bare_item& result) {
    std::size_t size = 1;
    while (size < rest_.size() && continues_token(rest_[size])) ++size;
    result = token{std::string(rest_.substr(0, size))};
    rest_.remove_prefix(size);
    return true;
  }
  bool read_string(bare_item& result) {
    std::string text;
    for (std::size_t i = 1; i < rest_.size(); ++i) {
      char c = rest_[i];
      if (c == '"') {
        rest_.remove_prefix(i + 1);
        result = std::move(text);
        return true;
      }
      if (c == '\\') {
        if (++i == rest_.size()) return false;
        c = rest_[i];
        if (c != '"' && c != '\\') return false;
      }
      if (c < ' ' || c > '~') return false;
      text += c;
    }
    return false;
  }
  bool read_bytes(bare_item& result) {
    const auto end = rest_.find(':', 1);
    if (end == std::string_view::npos) return false;
    const auto text = rest_.substr(1, end - 1);
    const auto size = decoded_base64_size(text);
    if (!size) return false;
    byte_sequence decoded{.bytes = std::string(*size, '\0')};
    if (!decode_base64(text, reinterpret_cast<std::byte*>(decoded.bytes.data()))) return false;
    rest_.remove_prefix(end + 1);
    result = std::move(decoded);
    return true;
  }
  bool read_boolean(bare_item& result) {
    rest_.remove_prefix(1);
    if (skip('1')) result = true;
    else if (skip('0')) result = false;
    else return false;
    return true;
  }
  bool read_date(bare_item& result) {
    rest_.remove_prefix(1);
    if (rest_.empty() || (rest_.front() != '-' && !is_digit(rest_.front()))) return false;
    bare_item number;
    if (!read_number(number) || !std::holds_alternative<std::int64_t>(number)) return false;
    result = date{std::get<std::int64_t>(number)};
    return true;
  }
  bool read_display_string(bare_item& result) {
    if (!rest_.starts_with("%\"")) return false;
    display_string decoded;
    for (std::size_t i = 2; i < rest_.size(); ++i) {
      const char c = rest_[i];
      if (c < ' ' || c > '~') return false;
      if (c == '"') {
        if (!is_utf8(decoded.text)) return false;
        rest_.remove_prefix(i + 1);
        result = std::move(decoded);
        return true;
      }
      if (c != '%') {
        decoded.text += c;
        continue;
      }
      const auto digits = rest_.substr(i + 1, 2);
      unsigned char byte = 0;
      // Upper-case digits are not allowed.
      if (digits.size() != 2 ||
          std::ranges::any_of(digits, [](char d) { return d >= 'A' && d <= 'F'; }) ||
          !from_hex(digits, &byte))
        return false;
      decoded.text += static_cast<char>(byte);
      i += 2;
    }
    return false;
  }

  std::string_view rest_;
};

[[noreturn]] void refuse(const char* problem) { throw error(errc::invalid_argument, problem); }

void append_key(std::string& out, std::string_view key) {
  if (key.empty() || !begins_key(key.front()) || !std::ranges::all_of(key, continues_key))
    refuse("a key of a structured field has lower-case letters, digits and _-.* only");
  out += key;
}

void append_bare(std::string& out, std::int64_t number) {
  if (number > max_integer || number < -max_integer)
    refuse("an integer of a structured field has at most 15 digits");
  out += std::to_string(number);
}
void append_bare(std::string& out, const decimal& number) {
  if (number.thousandths > max_integer || number.thousandths < -max_integer)
    refuse("a decimal of a structured field has at most 12 digits before the point");
  const auto magnitude = number.thousandths < 0 ? -number.thousandths : number.thousandths;
  std::string fraction = std::to_string(1000 + magnitude % 1000).substr(1);
  while (fraction.size() > 1 && fraction.back() == '0') fraction.pop_back();
  if (number.thousandths < 0) out += '-';
  out.append(std::to_string(magnitude / 1000)).append(1, '.').append(fraction);
}
void append_bare(std::string& out, const std::string& text) {
  out += '"';
  for (const char c : text) {
    if (c < ' ' || c > '~') refuse("a string of a structured field is printable ASCII");
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  out += '"';
}
void append_bare(std::string& out, const token& value) {
  if (value.text.empty() || !begins_token(value.text.front()) ||
      !std::ranges::all_of(value.text, continues_token))
    refuse("a token of a structured field begins with a letter and has no spaces");
  out += value.text;
}
void append_bare(std::string& out, const byte_sequence& value) {
  std::string encoded(base64_size(value.bytes.size()), '\0');
  encode_base64(std::as_bytes(std::span(value.bytes)), encoded.data());
  out.append(1, ':').append(encoded).append(1, ':');
}
void append_bare(std::string& out, bool flag) { out += flag ? "?1" : "?0"; }
void append_bare(std::string& out, const date& value) {
  out += '@';
  append_bare(out, value.seconds);
}
void append_bare(std::string& out, const display_string& value) {
  if (!is_utf8(value.text)) refuse("a display string is well-formed UTF-8");
  out += "%\"";
  for (const char c : value.text) {
    if (c >= ' ' && c <= '~' && c != '%' && c != '"') {
      out += c;
      continue;
    }
    out += '%';
    append_hex(out, {&c, 1});
  }
  out += '"';
}

void append_bare_item(std::string& out, const bare_item& value) {
  std::visit([&](const auto& alternative) { append_bare(out, alternative); }, value);
}

void append_parameters(std::string& out, const parameters& values) {
  for (const auto& [key, value] : values) {
    out += ';';
    append_key(out, key);
    if (value == bare_item(true)) continue;
    out += '=';
    append_bare_item(out, value);
  }
}

void append_item(std::string& out, const item& value) {
  append_bare_item(out, value.value);
  append_parameters(out, value.parameters);
}

void append_member(std::string& out, const member& value) {
  if (const auto* single = std::get_if<item>(&value)) {
    append_item(out, *single);
    return;
  }
  const auto& inner = std::get<inner_list>(value);
  out += '(';
  for (const auto& element : inner.items) {
    if (&element != inner.items.data()) out += ' ';
    append_item(out, element);
  }
  out += ')';
  append_parameters(out, inner.parameters);
}

}  // namespace

std::optional<item> parse_item(std::string_view text) {
  parser source(text);
  item result;
  if (!source.read_item(result) || !source.at_end()) return std::nullopt;
  return result;
}

std::optional<list> parse_list(std::string_view text) {
  parser source(text);
  list result;
  if (!source.read_list(result) || !source.at_end()) return std::nullopt;
  return result;
}

std::optional<dictionary> parse_dictionary(std::string_view text) {
  parser source(text);
  dictionary result;
  if (!source.read_dictionary(result) || !source.at_end()) return std::nullopt;
  return result;
}

std::string serialize(const item& value) {
  std::string text;
  append_item(text, value);
  return text;
}

std::string serialize(const list& value) {
  std::string text;
  for (const auto& entry : value) {
    if (!text.empty()) text += ", ";
    append_member(text, entry);
  }
  return text;
}

std::string serialize(const dictionary& value) {
  std::string text;
  for (const auto& [key, entry] : value) {
    if (!text.empty()) text += ", ";
    append_key(text, key);
    const auto* single = std::get_if<item>(&entry);
    if (single != nullptr && single->value == bare_item(true)) {
      append_parameters(text, single->parameters);
      continue;
    }
    text += '=';
    append_member(text, entry);
  }
  return text;
}

const bare_item* find(const parameters& values, std::string_view key) noexcept {
  for (const auto& [name, value] : values) {
    if (name == key) return &value;
  }
  return nullptr;
}

}  // namespace HOLDFAST_NAMESPACE::detail::http::structured
