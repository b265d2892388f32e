#pragma once

/// \file
/// Text for people and for JSON: escaping, formatting, folding, suggestions.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace holdfast::cli {

/// Escapes control characters (including C1), characters that change the direction of text,
/// ill-formed UTF-8 and line breaks as `\x1b`. The result fits on one line and cannot control the
/// terminal.
[[nodiscard]] std::string printable(std::string_view text);

/// A JSON string with its quotes. Escapes the same characters as `printable`. Ill-formed bytes
/// become U+FFFD: check with `is_utf8` (base/utf8.hpp) first if the bytes matter.
[[nodiscard]] std::string json_string(std::string_view text);

/// A JSON array of strings.
[[nodiscard]] std::string json_list(std::span<const std::string> texts);

/// The same JSON document with these characters escaped. They can only occur in its strings.
[[nodiscard]] std::string json_for_terminal(std::string_view json);

/// A JSON number with three digits after the point; `null` if it is not finite.
[[nodiscard]] std::string json_number(double number);

[[nodiscard]] std::string hex(std::string_view bytes);

/// `1234567` as `1,234,567`.
[[nodiscard]] std::string grouped(std::uint64_t number);

/// `512 B`, `1.5 KiB`, `20 MiB`.
[[nodiscard]] std::string human_bytes(std::uint64_t bytes);

/// The candidate that is most similar to a mistyped word; empty if none is similar.
[[nodiscard]] std::string_view nearest(std::string_view word,
                                       std::span<const std::string> candidates);

/// `a, b or c`.
[[nodiscard]] std::string listed(std::span<const std::string> words);

/// Breaks lines between words. The text starts at column `indent`; each further line is indented to
/// it. A line ends before column `width`, unless a single word is longer.
[[nodiscard]] std::string folded(std::string_view text, std::size_t indent, std::size_t width);

}  // namespace holdfast::cli
