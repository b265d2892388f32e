#include "http/cookie.hpp"

#include <holdfast/error.hpp>

#include <algorithm>

namespace HOLDFAST_NAMESPACE::detail::http {

namespace {

bool is_cookie_value(std::string_view text) noexcept {
  return std::ranges::all_of(text, [](char c) {
    return c > ' ' && c < 0x7F && c != '"' && c != ',' && c != ';' && c != '\\';
  });
}

}  // namespace

std::optional<std::string_view> find_cookie(const fields& request, std::string_view name) noexcept {
  std::optional<std::string_view> result;
  std::size_t occurrences = 0;
  request.for_each("cookie", [&](std::string_view rest) {
    while (!rest.empty()) {
      const auto pair = trim(rest.substr(0, rest.find(';')));
      rest.remove_prefix(std::min(rest.size(), rest.find(';') == std::string_view::npos
                                                   ? rest.size()
                                                   : rest.find(';') + 1));
      const auto equals = pair.find('=');
      if (equals == std::string_view::npos || pair.substr(0, equals) != name) continue;
      ++occurrences;
      result = pair.substr(equals + 1);
    }
  });
  if (!result || occurrences != 1 || !is_cookie_value(*result)) return std::nullopt;
  return result;
}

std::string to_field(const cookie& value) {
  if (!is_token(value.name)) throw error(errc::invalid_argument, "the name of a cookie is a token");
  if (!is_cookie_value(value.value))
    throw error(errc::invalid_argument,
                "the value of a cookie has a character that is not allowed");
  const auto in_path = [](char c) { return c >= ' ' && c < 0x7F && c != ';'; };
  if (!value.path.starts_with('/') || !std::ranges::all_of(value.path, in_path))
    throw error(errc::invalid_argument, "the path of a cookie begins with / and has no semicolon");
  const bool host_only = value.name.starts_with("__Host-");
  if ((host_only || value.name.starts_with("__Secure-")) && !value.secure)
    throw error(errc::invalid_argument, "a cookie with the prefix __Host- or __Secure- is secure");
  if (host_only && value.path != "/")
    throw error(errc::invalid_argument, "a cookie with the prefix __Host- has the path /");
  if (value.site == cookie::same_site::none && !value.secure)
    throw error(errc::invalid_argument, "a cookie with SameSite=None is secure");
  std::string text = value.name + '=' + value.value + "; Path=" + value.path;
  if (value.max_age) text += "; Max-Age=" + std::to_string(value.max_age->count());
  if (value.secure) text += "; Secure";
  if (value.http_only) text += "; HttpOnly";
  switch (value.site) {
    case cookie::same_site::strict:
      text += "; SameSite=Strict";
      break;
    case cookie::same_site::lax:
      text += "; SameSite=Lax";
      break;
    case cookie::same_site::none:
      text += "; SameSite=None";
      break;
  }
  return text;
}

}  // namespace HOLDFAST_NAMESPACE::detail::http
