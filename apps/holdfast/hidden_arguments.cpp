#include "hidden_arguments.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <string_view>

namespace holdfast::cli {

namespace {

void hide(char* argument, std::size_t begin, std::size_t end) noexcept { std::fill(argument + begin, argument + end, '*'); }

char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

void hide_in_url(char* argument, std::string_view text) noexcept {
  const auto scheme = text.find("://");
  if (scheme == std::string_view::npos) return;
  const auto colon = text.find(':', scheme + 3);
  const auto at = text.rfind('@');
  if (colon != std::string_view::npos && at != std::string_view::npos && colon < at) hide(argument, colon + 1, at);
}

/// The end of a value: of `{...}` after its last brace, of any other at `;` or `&`.
std::size_t end_of_value(std::string_view text, std::size_t begin) noexcept {
  auto end = begin;
  if (end < text.size() && text[end] == '{') {
    for (++end; end < text.size(); ++end) {
      if (text[end] != '}') continue;
      if (end + 1 == text.size() || text[end + 1] != '}') break;  // a brace in the value is written twice
      ++end;
    }
  }
  return std::min(text.find_first_of(";&", end), text.size());
}

void hide_parameters(char* argument, std::string_view text) noexcept {
  for (const std::string_view name : std::array<std::string_view, 2>{"pwd", "password"}) {
    auto found = text.begin();
    while (true) {
      found = std::search(found, text.end(), name.begin(), name.end(), [](char a, char b) { return lower(a) == b; });
      if (found == text.end()) break;
      found += static_cast<std::ptrdiff_t>(name.size());
      auto value = static_cast<std::size_t>(found - text.begin());
      while (value < text.size() && text[value] == ' ') ++value;
      if (value == text.size() || text[value] != '=') continue;
      hide(argument, value + 1, end_of_value(text, value + 1));
    }
  }
}

}  // namespace

void hide_passwords(std::span<char*> arguments) noexcept {
  for (char* argument : arguments) {
    if (argument == nullptr) continue;
    const std::string_view text(argument, std::strlen(argument));
    // Only where it looks like the address of a database: an event may say `password=...` in its own words.
    const bool address = text.find("://") != std::string_view::npos || text.find("odbc:") != std::string_view::npos;
    if (!address) continue;
    hide_parameters(argument, text);
    hide_in_url(argument, text);
  }
}

}  // namespace holdfast::cli
