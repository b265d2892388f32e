#include "http/target.hpp"

#include "base/hex.hpp"
#include "http/syntax.hpp"

#include <array>

namespace HOLDFAST_NAMESPACE::detail::http {

namespace {

constexpr auto unreserved = syntax_tables::make_set("-._~", true);
constexpr auto path_characters = syntax_tables::make_set("/-._~!$&'()*+,;=:@", true);
// The second line is not in the grammar, but browsers send these unencoded.
constexpr auto query_characters = syntax_tables::make_set(
    "/?-._~!$&'()*+,;=:@"
    "[]{}|^`\\",
    true);

/// Returns the byte that the encoding at `offset` stands for, or -1 if it is ill-formed.
int decode_at(std::string_view text, std::size_t offset) noexcept {
  if (offset + 2 >= text.size()) return -1;
  const int high = hex_digit(text[offset + 1]);
  const int low = hex_digit(text[offset + 2]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

void append_encoded(std::string& out, int byte) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  out += '%';
  out += digits[static_cast<std::size_t>(byte) / 16];
  out += digits[static_cast<std::size_t>(byte) % 16];
}

/// Appends a part with normalised encodings. `refuse(byte)` names encoded bytes that are refused.
template <class Refuse>
bool append_normalised(std::string& out, std::string_view part,
                       const syntax_tables::byte_set& allowed, Refuse refuse) {
  for (std::size_t i = 0; i < part.size(); ++i) {
    const char c = part[i];
    if (c != '%') {
      if (!allowed[static_cast<unsigned char>(c)]) return false;
      out += c;
      continue;
    }
    const int byte = decode_at(part, i);
    if (byte < 0 || refuse(byte)) return false;
    if (unreserved[static_cast<std::size_t>(byte)]) out += static_cast<char>(byte);
    else append_encoded(out, byte);
    i += 2;
  }
  return true;
}

/// Removes the segments `.` and `..` in place. Returns false if `..` leads above the root.
bool remove_dot_segments(std::string& path) {
  if (path.find("/.") == std::string::npos) return true;
  std::string result;
  result.reserve(path.size());
  for (std::size_t begin = 0; begin < path.size();) {
    const auto end = std::min(path.find('/', begin + 1), path.size());
    const auto segment = std::string_view(path).substr(begin, end - begin);
    const bool last = end == path.size();
    if (segment == "/..") {
      if (result.empty()) return false;
      result.erase(result.rfind('/'));
      if (last) result += '/';
    } else if (segment == "/.") {
      if (last) result += '/';
    } else {
      result += segment;
    }
    begin = end;
  }
  path = std::move(result);
  return true;
}

/// Removes scheme and authority. Returns nothing if the text is not a target with a path.
std::optional<std::string_view> origin_form(std::string_view text) {
  if (text.starts_with('/')) return text;
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!equals_ignoring_case(text.substr(0, scheme.size()), scheme)) continue;
    const auto path = text.find_first_of("/?", scheme.size());
    return path == std::string_view::npos ? std::string_view{} : text.substr(path);
  }
  return std::nullopt;
}

}  // namespace

std::optional<target> target::parse(std::string_view text) {
  const auto origin = origin_form(text);
  if (!origin) return std::nullopt;
  const auto question = origin->find('?');
  const auto path = origin->substr(0, question);
  target parsed;
  parsed.text_.reserve(origin->size() + 1);
  const auto refused_in_path = [](int byte) {
    return byte < 0x20 || byte == 0x7F || byte == '/' || byte == '\\';
  };
  // An absolute target may have no path.
  if (path.empty()) parsed.text_ = "/";
  if (!append_normalised(parsed.text_, path, path_characters, refused_in_path) ||
      !remove_dot_segments(parsed.text_))
    return std::nullopt;
  parsed.path_size_ = parsed.text_.size();
  if (question == std::string_view::npos) return parsed;
  parsed.text_ += '?';
  if (!append_normalised(parsed.text_, origin->substr(question + 1), query_characters,
                         [](int byte) { return byte == 0; }))
    return std::nullopt;
  return parsed;
}

std::optional<std::string> percent_decode(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    const int byte = decode_at(text, i);
    if (byte < 0) return std::nullopt;
    decoded += static_cast<char>(byte);
    i += 2;
  }
  return decoded;
}

}  // namespace HOLDFAST_NAMESPACE::detail::http
