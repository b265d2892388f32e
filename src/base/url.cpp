#include "base/url.hpp"

#include <holdfast/error.hpp>

#include <algorithm>
#include <charconv>

namespace HOLDFAST_NAMESPACE {

namespace {

[[noreturn]] void fail(const std::string& message) { throw error(errc::invalid_argument, message, {.path = "url"}); }

std::string decoded(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      result += text[i];
      continue;
    }
    unsigned code = 0;
    if (i + 2 >= text.size() || std::from_chars(text.data() + i + 1, text.data() + i + 3, code, 16).ptr != text.data() + i + 3) {
      fail("a percent sign in the URL must be followed by two hexadecimal digits; write %25 for the sign itself");
    }
    result += static_cast<char>(code);
    i += 2;
  }
  if (result.find('\0') != std::string::npos) fail("the URL contains a NUL character");
  return result;
}

/// Cuts `text` at the first `at`: what comes before is returned, what comes after stays. Nothing when it is not there.
std::optional<std::string_view> cut(std::string_view& text, char at) {
  const auto found = text.find(at);
  if (found == std::string_view::npos) return std::nullopt;
  const auto before = text.substr(0, found);
  text.remove_prefix(found + 1);
  return before;
}

void read_authority(url& into, std::string_view authority) {
  if (const auto last = authority.rfind('@'); last != std::string_view::npos) {
    std::string_view credentials = authority.substr(0, last);
    authority.remove_prefix(last + 1);
    if (const auto user = cut(credentials, ':')) {
      into.user = decoded(*user);
      into.password = decoded(credentials);
    } else {
      into.user = decoded(credentials);
    }
  }
  std::string_view port;
  if (authority.starts_with('[')) {  // an IPv6 address
    const auto end = authority.find(']');
    if (end == std::string_view::npos) fail("the URL's host begins with [ and has no ]");
    into.host = authority.substr(1, end - 1);
    port = authority.substr(end + 1);
    if (!port.empty() && !port.starts_with(':')) fail("after ] the URL's host may only have a port");
    if (!port.empty()) port.remove_prefix(1);
  } else {
    const auto colon = authority.rfind(':');
    into.host = decoded(authority.substr(0, colon));
    if (colon != std::string_view::npos) port = authority.substr(colon + 1);
  }
  if (!port.empty()) {
    unsigned number = 0;
    const auto [end, failed] = std::from_chars(port.data(), port.data() + port.size(), number);
    if (failed != std::errc{} || end != port.data() + port.size() || number == 0 || number > 65535)
      fail("the URL's port must be a number from 1 to 65535");
    into.port = number;
  }
}

}  // namespace

url parse_url(std::string_view text) {
  url result;
  if (text.find('\0') != std::string_view::npos) fail("the URL contains a NUL character");
  const auto scheme = cut(text, ':');
  if (!scheme || scheme->empty()) fail("a database URL begins with its kind, like sqlite:answers.db or postgresql://host/name");
  result.scheme = *scheme;
  std::string_view parameters;
  if (const auto question = text.find('?'); question != std::string_view::npos) {
    parameters = text.substr(question + 1);
    text = text.substr(0, question);
  }
  if (text.starts_with("//")) {
    text.remove_prefix(2);
    result.has_authority = true;
    const auto slash = text.find('/');
    read_authority(result, text.substr(0, slash));
    text = slash == std::string_view::npos ? std::string_view() : text.substr(slash + 1);
  }
  result.path = decoded(text);
  while (!parameters.empty()) {
    const auto amp = parameters.find('&');
    std::string_view each = parameters.substr(0, amp);
    parameters = amp == std::string_view::npos ? std::string_view() : parameters.substr(amp + 1);
    const auto name = cut(each, '=');
    if (!name || name->empty()) fail("the URL's parameters must be name=value, joined with &");
    if (!result.parameters.emplace(decoded(*name), decoded(each)).second)
      fail("the URL's parameter '" + decoded(*name) + "' is given twice");
  }
  return result;
}

namespace {

/// `odbc:Driver=x;PWD=secret;...`: the value of PWD or Password ends at a semicolon, unless it is in braces.
std::string without_odbc_password(std::string_view text) {
  std::string shown = "odbc:";
  text.remove_prefix(shown.size());
  while (!text.empty()) {
    const auto equals = text.find('=');
    if (equals == std::string_view::npos) return shown.append(text);
    std::string name;
    for (const char c : text.substr(0, equals))
      if (c != ' ' && c != ';') name += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    const auto value = text.substr(equals + 1);
    std::size_t end = 0;
    if (value.starts_with('{')) {
      // A closing brace in the value is written twice.
      for (end = 1; end < value.size(); ++end) {
        if (value[end] != '}') continue;
        if (end + 1 == value.size() || value[end + 1] != '}') break;
        ++end;
      }
    }
    end = std::min(value.find(';', end), value.size());
    shown.append(text.substr(0, equals + 1)).append(name == "PWD" || name == "PASSWORD" ? "***" : value.substr(0, end));
    text = value.substr(end);
  }
  return shown;
}

}  // namespace

std::string without_password(std::string_view text) {
  if (text.starts_with("odbc:")) return without_odbc_password(text);
  const auto begin = text.find("://");
  if (begin == std::string_view::npos) return std::string(text);
  const auto rest = text.substr(begin + 3);
  const auto at = rest.substr(0, rest.find_first_of("/?")).rfind('@');
  const auto colon = rest.find(':');
  if (at == std::string_view::npos || colon == std::string_view::npos || colon > at) return std::string(text);
  return std::string(text.substr(0, begin + 3 + colon + 1)) + "***" + std::string(rest.substr(at));
}

}  // namespace HOLDFAST_NAMESPACE
