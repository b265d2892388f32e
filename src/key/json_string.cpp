#include "key/json_string.hpp"

#include "base/hex.hpp"
#include "base/utf8.hpp"

namespace HOLDFAST_NAMESPACE::detail::key {

namespace {

void append_escaped(std::string& out, std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\xC2':
        if (text.substr(i, 2) == "\xC2\x85") out += "\\u0085", ++i;
        else out += c;
        break;
      case '\xE2':
        if (text.substr(i, 3) == "\xE2\x80\xA8") out += "\\u2028", i += 2;
        else if (text.substr(i, 3) == "\xE2\x80\xA9") out += "\\u2029", i += 2;
        else out += c;
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
          out += "\\u00";
          append_hex(out, {&c, 1});
        } else {
          out += c;
        }
    }
  }
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  append_escaped(out, text);
  out += '"';
}

std::string quote(std::string_view text) {
  constexpr std::size_t max_code_points = 64;
  const std::size_t size = prefix_size(text, max_code_points);
  std::string result = "\"";
  append_escaped(result, text.substr(0, size));
  result += size < text.size() ? "...\"" : "\"";
  return result;
}

}  // namespace HOLDFAST_NAMESPACE::detail::key
