#include "store_floor.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace holdfast::bench {

namespace {

/// What is before the mark is cut off and returned; without a mark, everything.
std::string_view cut(std::string_view& text, std::string_view mark) {
  const auto at = text.find(mark);
  const std::string_view before = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + mark.size());
  return before;
}

std::string decoded(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned char byte = 0;
    const char* const digits = text.data() + i + 1;
    if (text[i] == '%' && i + 2 < text.size() && std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2) {
      result += static_cast<char>(byte);
      i += 2;
    } else {
      result += text[i];
    }
  }
  return result;
}

}  // namespace

std::string store_place::parameter(std::string_view name) const {
  const auto found = parameters.find(name);
  return found == parameters.end() ? std::string() : found->second;
}

store_place read_place(std::string_view url) {
  store_place made{.url = std::string(url)};
  std::string_view rest = url;
  made.scheme = cut(rest, ":");
  std::ranges::transform(made.scheme, made.scheme.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  std::string_view body = cut(rest, "?");
  while (!rest.empty()) {
    std::string_view pair = cut(rest, "&");
    const std::string name = decoded(cut(pair, "="));
    made.parameters[name] = decoded(pair);
  }
  if (body.starts_with("//")) {
    body.remove_prefix(2);
    std::string_view authority = cut(body, "/");
    if (const auto at = authority.rfind('@'); at != std::string_view::npos) {
      std::string_view who = authority.substr(0, at);
      authority.remove_prefix(at + 1);
      made.user = decoded(cut(who, ":"));
      made.password = decoded(who);
    }
    if (authority.starts_with("[")) {
      authority.remove_prefix(1);
      made.host = cut(authority, "]");
      cut(authority, ":");
    } else {
      made.host = decoded(cut(authority, ":"));
    }
    std::from_chars(authority.data(), authority.data() + authority.size(), made.port);
    // Of a file the path is absolute; elsewhere it is a name.
    made.path = (made.scheme == "sqlite" ? "/" : "") + decoded(body);
  } else {
    made.path = decoded(body);
  }
  if (made.password.empty()) {
    if (const char* given = std::getenv("HOLDFAST_PASSWORD"); given != nullptr) made.password = given;  // NOLINT(concurrency-mt-unsafe)
  }
  return made;
}

}  // namespace holdfast::bench
