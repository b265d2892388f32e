#pragma once

/// \file
/// Characters and small pieces of the grammar of HTTP (RFC 9110, section 5.6).

#include <holdfast/version.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::http {

[[nodiscard]] constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
[[nodiscard]] constexpr bool is_lower(char c) noexcept { return c >= 'a' && c <= 'z'; }
[[nodiscard]] constexpr bool is_alpha(char c) noexcept {
  return is_lower(c) || (c >= 'A' && c <= 'Z');
}
[[nodiscard]] constexpr char to_lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

namespace syntax_tables {

/// A set of bytes, one flag for each.
using byte_set = std::array<bool, 256>;

constexpr byte_set make_set(std::string_view characters, bool alphanumeric) {
  byte_set set{};
  for (const char c : characters) set[static_cast<unsigned char>(c)] = true;
  for (std::size_t i = 0; i < 128 && alphanumeric; ++i) {
    const char c = static_cast<char>(i);
    if (is_alpha(c) || is_digit(c)) set[i] = true;
  }
  return set;
}

constexpr byte_set make_value_set() {
  byte_set set{};
  for (std::size_t i = 0x20; i < 256; ++i) set[i] = i != 0x7F;
  set['\t'] = true;
  return set;
}

inline constexpr byte_set token = make_set("!#$%&'*+-.^_`|~", true);
/// HTAB, SP, visible characters and obs-text.
inline constexpr byte_set field_value = make_value_set();

}  // namespace syntax_tables

[[nodiscard]] constexpr bool is_token_character(char c) noexcept {
  return syntax_tables::token[static_cast<unsigned char>(c)];
}

[[nodiscard]] constexpr bool all_in(std::string_view text,
                                    const syntax_tables::byte_set& set) noexcept {
  for (const char c : text) {
    if (!set[static_cast<unsigned char>(c)]) return false;
  }
  return true;
}

[[nodiscard]] constexpr bool is_token(std::string_view text) noexcept {
  return !text.empty() && all_in(text, syntax_tables::token);
}

/// Returns true if the text can be the value of a field: no control character except HTAB.
[[nodiscard]] constexpr bool is_field_value(std::string_view text) noexcept {
  return all_in(text, syntax_tables::field_value);
}

/// Compares ASCII text. Not affected by the locale.
[[nodiscard]] constexpr bool equals_ignoring_case(std::string_view a, std::string_view b) noexcept {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i] && to_lower(a[i]) != to_lower(b[i])) return false;
  }
  return true;
}

[[nodiscard]] constexpr bool is_whitespace(char c) noexcept { return c == ' ' || c == '\t'; }

/// Returns the text without spaces and tabs at both ends.
[[nodiscard]] constexpr std::string_view trim(std::string_view text) noexcept {
  while (!text.empty() && is_whitespace(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_whitespace(text.back())) text.remove_suffix(1);
  return text;
}

/// Reads a number that consists of digits only, at most 18 of them.
[[nodiscard]] constexpr std::optional<std::uint64_t> parse_digits(std::string_view text) noexcept {
  if (text.empty() || text.size() > 18) return std::nullopt;
  std::uint64_t number = 0;
  for (const char c : text) {
    if (!is_digit(c)) return std::nullopt;
    number = number * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return number;
}

/// Calls `visit(element)` for each element of a comma-separated list, trimmed. Empty elements are
/// skipped (RFC 9110, section 5.6.1.2). Commas in quoted strings do not separate.
template <class Visitor>
constexpr void for_each_element(std::string_view list, Visitor visit) {
  std::size_t begin = 0;
  bool quoted = false;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    if (i < list.size()) {
      if (quoted && list[i] == '\\') {
        if (i + 1 < list.size()) ++i;
        continue;
      }
      if (list[i] == '"') quoted = !quoted;
      if (quoted || list[i] != ',') continue;
    }
    if (begin > list.size()) return;
    const auto element = trim(list.substr(begin, i - begin));
    if (!element.empty()) visit(element);
    begin = i + 1;
  }
}

}  // namespace HOLDFAST_NAMESPACE::detail::http
