#include "text.hpp"

#include "base/utf8.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <vector>

namespace holdfast::cli {

namespace {

constexpr std::string_view digits = "0123456789abcdef";

/// How many bytes the well-formed character at the front of `text` has; 0 when it is ill-formed (surrogates and overlong forms included).
std::size_t character_size(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto continues = [&](std::size_t i) { return i < text.size() && (byte(i) & 0xc0U) == 0x80U; };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return continues(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    if (!continues(1) || !continues(2)) return 0;
    if (first == 0xe0 && byte(1) < 0xa0) return 0;
    if (first == 0xed && byte(1) > 0x9f) return 0;
    return 3;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    if (!continues(1) || !continues(2) || !continues(3)) return 0;
    if (first == 0xf0 && byte(1) < 0x90) return 0;
    if (first == 0xf4 && byte(1) > 0x8f) return 0;
    return 4;
  }
  return 0;
}

void append_json_escape(std::string& out, unsigned code) {
  out += "\\u";
  for (const unsigned shift : {12U, 8U, 4U, 0U}) out += digits[(code >> shift) & 0xfU];
}

void append_escaped_byte(std::string& out, char c) {
  const auto byte = static_cast<unsigned char>(c);
  out += "\\x";
  out += digits[byte >> 4U];
  out += digits[byte & 0xfU];
}

/// How many letters to insert, remove, replace, or swap with their neighbour.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> table(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        table[i][j] = i + j;
        continue;
      }
      const std::size_t replaced = table[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      table[i][j] = std::min({table[i - 1][j] + 1, table[i][j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) table[i][j] = std::min(table[i][j], table[i - 2][j - 2] + 1);
    }
  }
  return table[a.size()][b.size()];
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t size = character_size(text);
    const auto first = static_cast<unsigned char>(text.front());
    const bool control = first < 0x20 || first == 0x7f || controls_display(short_code_point(text.substr(0, size)));
    const std::size_t take = size == 0 ? 1 : size;
    if (size == 0 || control) {
      for (const char c : text.substr(0, take)) append_escaped_byte(out, c);
    } else {
      out += text.substr(0, take);
    }
    text.remove_prefix(take);
  }
  return out;
}

std::string json_string(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const std::size_t size = character_size(text);
    const char first = text.front();
    if (size == 0) {
      out += "\\ufffd";
    } else if (first == '"' || first == '\\') {
      out += '\\';
      out += first;
    } else if (static_cast<unsigned char>(first) < 0x20 || first == 0x7f) {
      append_json_escape(out, static_cast<unsigned char>(first));
    } else if (const auto code = short_code_point(text.substr(0, size)); controls_display(code)) {
      append_json_escape(out, code);
    } else {
      out += text.substr(0, size);
    }
    text.remove_prefix(size == 0 ? 1 : size);
  }
  out += '"';
  return out;
}

std::string json_list(std::span<const std::string> texts) {
  std::string list = "[";
  for (const auto& each : texts) list.append(list.size() == 1 ? "" : ",").append(json_string(each));
  return list + "]";
}

std::string json_for_terminal(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  while (!json.empty()) {
    const std::size_t size = std::max<std::size_t>(1, character_size(json));
    if (const auto code = short_code_point(json.substr(0, size)); json.front() == 0x7f) append_json_escape(out, 0x7f);
    else if (controls_display(code)) append_json_escape(out, code);
    else out += json.substr(0, size);
    json.remove_prefix(size);
  }
  return out;
}

std::string json_number(double number) {
  if (!std::isfinite(number)) return "null";
  std::array<char, 64> room{};
  // The locale of this program is never set, so the point is a point.
  const int length = std::snprintf(room.data(), room.size(), "%.3f", number);
  return {room.data(), static_cast<std::size_t>(std::clamp(length, 0, 63))};
}

std::string hex(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() * 2);
  for (const char c : bytes) {
    out += digits[static_cast<unsigned char>(c) >> 4U];
    out += digits[static_cast<unsigned char>(c) & 0xfU];
  }
  return out;
}

std::string grouped(std::uint64_t number) {
  std::string out = std::to_string(number);
  for (std::size_t at = out.size(); at > 3;) {
    at -= 3;
    out.insert(at, 1, ',');
  }
  return out;
}

std::string_view nearest(std::string_view word, std::span<const std::string> candidates) {
  // A long word makes the distance slow to find and cannot be a typing error of a short one.
  if (word.size() > 64) return {};
  std::string_view best;
  std::size_t best_distance = 0;
  for (const std::string& each : candidates) {
    const std::size_t distance = edit_distance(word, each);
    // A third of the word may be wrong; `--dom` for `--domain` is near as well.
    const bool near = distance <= std::max<std::size_t>(1, each.size() / 3) || (word.size() >= 3 && each.starts_with(word));
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

}  // namespace holdfast::cli
