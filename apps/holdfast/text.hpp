#pragma once

/// \file
/// Small works on text that several commands need.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace holdfast::cli {

/// For people: control characters (C1 too), characters that change the direction of text, ill-formed UTF-8 and line breaks become `\x1b`,
/// so that one value stays on one line and cannot drive the terminal.
[[nodiscard]] std::string printable(std::string_view text);

/// A JSON string with its quotes; the same characters are escaped. Ill-formed bytes become U+FFFD: use `is_utf8` (base/utf8.hpp) where that would lose something.
[[nodiscard]] std::string json_string(std::string_view text);

/// A JSON array of strings.
[[nodiscard]] std::string json_list(std::span<const std::string> texts);

/// The same JSON document, for a terminal: such characters can only stand in its strings, and become escapes.
[[nodiscard]] std::string json_for_terminal(std::string_view json);

/// A number as JSON, three digits after the point.
[[nodiscard]] std::string json_number(double number);

[[nodiscard]] std::string hex(std::string_view bytes);

/// `1234567` as `1,234,567`.
[[nodiscard]] std::string grouped(std::uint64_t number);

/// The candidate that was probably meant, or empty when none is near.
[[nodiscard]] std::string_view nearest(std::string_view word, std::span<const std::string> candidates);

/// `a, b or c`.
[[nodiscard]] std::string listed(std::span<const std::string> words);

}  // namespace holdfast::cli
