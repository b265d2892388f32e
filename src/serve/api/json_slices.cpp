#include "serve/api/json_slices.hpp"

#include "http/syntax.hpp"

#include <simdjson.h>

#include <algorithm>
#include <cstddef>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

bool is_json_space(char c) noexcept { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

std::string_view skip_json_space(std::string_view text) noexcept {
  while (!text.empty() && is_json_space(text.front())) text.remove_prefix(1);
  return text;
}

/// The size of a string with its quotes.
std::size_t json_string_size(std::string_view text) noexcept {
  std::size_t i = 1;
  while (i < text.size() && text[i] != '"') i += text[i] == '\\' ? 2 : 1;
  return std::min(i + 1, text.size());
}

/// Calls `visit(name, value)` for the members of an object, or with an empty name for the elements
/// of an array, until it returns false. Names are without quotes, as they are written.
template <class Visitor>
void for_each_slice(std::string_view container, Visitor visit) {
  auto rest = skip_json_space(container);
  if (rest.empty() || (rest.front() != '{' && rest.front() != '[')) return;
  const bool is_object = rest.front() == '{';
  rest = skip_json_space(rest.substr(1));
  while (!rest.empty() && rest.front() != '}' && rest.front() != ']') {
    std::string_view name;
    if (is_object) {
      const auto size = json_string_size(rest);
      if (size < 2) return;
      name = rest.substr(1, size - 2);
      rest = skip_json_space(rest.substr(size));
      if (rest.empty()) return;
      rest = skip_json_space(rest.substr(1));  // the colon
    }
    const auto size = json_value_size(rest);
    if (size == 0 || !visit(name, rest.substr(0, size))) return;
    rest = skip_json_space(rest.substr(size));
    if (rest.empty()) return;
    if (rest.front() == ',') rest = skip_json_space(rest.substr(1));
  }
}

}  // namespace

std::size_t json_value_size(std::string_view text) noexcept {
  if (text.empty()) return 0;
  if (text.front() == '"') return json_string_size(text);
  std::size_t i = 0;
  if (text.front() != '{' && text.front() != '[') {
    while (i < text.size() && text[i] != ',' && text[i] != '}' && text[i] != ']' &&
           !is_json_space(text[i]))
      ++i;
    return i;
  }
  std::size_t depth = 0;
  while (i < text.size()) {
    const char c = text[i];
    if (c == '"') {
      i += json_string_size(text.substr(i));
      continue;
    }
    ++i;
    if (c == '{' || c == '[') ++depth;
    else if ((c == '}' || c == ']') && --depth == 0) break;
  }
  return i;
}

std::string_view member_slice(std::string_view object, std::string_view name) {
  std::string_view result;
  for_each_slice(object, [&](std::string_view member, std::string_view value) {
    if (member != name) return true;
    result = value;
    return false;
  });
  return result;
}

std::vector<json_member> member_slices(std::string_view object) {
  std::vector<json_member> result;
  for_each_slice(object, [&](std::string_view name, std::string_view value) {
    result.push_back({name, value});
    return true;
  });
  return result;
}

std::vector<std::string_view> element_slices(std::string_view array) {
  std::vector<std::string_view> result;
  for_each_slice(array, [&](std::string_view, std::string_view value) {
    result.push_back(value);
    return true;
  });
  return result;
}

bool is_json(std::string_view text) {
  simdjson::dom::parser parser;
  simdjson::dom::element parsed;
  return parser.parse(text.data(), text.size()).get(parsed) == simdjson::SUCCESS;
}

bool is_json_type(std::string_view content_type) {
  content_type = content_type.substr(0, content_type.find(';'));
  while (content_type.ends_with(' ')) content_type.remove_suffix(1);
  const auto ends_with = [&](std::string_view end) {
    return content_type.size() > end.size() &&
           http::equals_ignoring_case(content_type.substr(content_type.size() - end.size()), end);
  };
  return ends_with("/json") || ends_with("+json");
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
