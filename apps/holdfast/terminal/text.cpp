#include "terminal/text.hpp"

#include "base/edit_distance.hpp"
#include "base/hex.hpp"
#include "base/line_text.hpp"
#include "base/utf8.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>

namespace holdfast::cli {

namespace {

void append_json_escape(std::string& out, unsigned code) {
  const std::array<unsigned char, 2> bytes{static_cast<unsigned char>(code >> 8U),
                                           static_cast<unsigned char>(code)};
  out += "\\u" + detail::to_hex(bytes);
}

}  // namespace

std::string printable(std::string_view text) { return detail::printable(text); }

std::string json_string(std::string_view text) { return detail::json_text(text); }

std::string json_list(std::span<const std::string> texts) {
  std::string list = "[";
  for (const auto& text : texts) list.append(list.size() == 1 ? "" : ",").append(json_string(text));
  return list + "]";
}

std::string json_for_terminal(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  while (!json.empty()) {
    const std::size_t size = std::max<std::size_t>(1, detail::code_point_size(json));
    if (const auto code = detail::short_code_point(json.substr(0, size)); json.front() == 0x7f)
      append_json_escape(out, 0x7f);
    else if (detail::controls_display(code)) append_json_escape(out, code);
    else out += json.substr(0, size);
    json.remove_prefix(size);
  }
  return out;
}

std::string json_number(double number) {
  if (!std::isfinite(number)) return "null";
  std::array<char, 64> buffer{};
  // This program never sets a locale, so the decimal separator is a point.
  const int length = std::snprintf(buffer.data(), buffer.size(), "%.3f", number);
  return {buffer.data(), static_cast<std::size_t>(std::clamp(length, 0, 63))};
}

std::string hex(std::string_view bytes) {
  std::string out;
  detail::append_hex(out, bytes);
  return out;
}

std::string grouped(std::uint64_t number) {
  std::string out = std::to_string(number);
  for (std::size_t position = out.size(); position > 3;) {
    position -= 3;
    out.insert(position, 1, ',');
  }
  return out;
}

std::string human_bytes(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 4> units{" KiB", " MiB", " GiB", " TiB"};
  if (bytes < 1024) return std::to_string(bytes) + " B";
  std::size_t unit = 0;
  std::uint64_t whole = bytes;
  for (; whole >= std::uint64_t{1024} * 1024 && unit + 1 < units.size(); ++unit) whole /= 1024;
  const std::uint64_t tenths = whole * 10 / 1024;
  std::string text = grouped(tenths / 10);
  if (tenths < 100) text += "." + std::to_string(tenths % 10);
  return text.append(units.at(unit));
}

std::string_view nearest(std::string_view word, std::span<const std::string> candidates) {
  // The distance is slow to compute for a long word, which cannot be a mistyped short one.
  if (word.size() > 64) return {};
  std::string_view best;
  std::size_t best_distance = 0;
  for (const std::string& each : candidates) {
    const std::size_t distance = detail::edit_distance(word, each);
    // A third of the word may be wrong; `--dom` for `--domain` is near as well.
    const bool near = distance <= std::max<std::size_t>(1, each.size() / 3) ||
                      (word.size() >= 3 && each.starts_with(word));
    if (near && (best.empty() || distance < best_distance)) {
      best = each;
      best_distance = distance;
    }
  }
  return best;
}

std::string listed(std::span<const std::string> words) {
  std::string out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i != 0) out += i + 1 == words.size() ? " or " : ", ";
    out += words[i];
  }
  return out;
}

std::string folded(std::string_view text, std::size_t indent, std::size_t width) {
  std::string out;
  std::size_t column = indent;
  while (!text.empty()) {
    const std::size_t space = text.find(' ');
    const std::string_view word = text.substr(0, space);
    if (column != indent && column + 1 + word.size() > width) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    }
    if (column != indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    text = space == std::string_view::npos ? std::string_view() : text.substr(space + 1);
  }
  return out;
}

}  // namespace holdfast::cli
