#include "base/url.hpp"

#include <holdfast/error.hpp>

#include "base/hex.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace HOLDFAST_NAMESPACE::detail {

namespace {

[[noreturn]] void refuse_url(const std::string& message) {
  throw error(errc::invalid_argument, message, {.path = "url"});
}

std::string percent_decode(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      result += text[i];
      continue;
    }
    unsigned char byte = 0;
    if (i + 2 >= text.size() || !from_hex(text.substr(i + 1, 2), &byte)) {
      refuse_url(
          "a percent sign in the URL must be followed by two hexadecimal digits; write %25 for the "
          "sign itself");
    }
    result += static_cast<char>(byte);
    i += 2;
  }
  if (result.find('\0') != std::string::npos) refuse_url("the URL contains a NUL character");
  return result;
}

/// Removes and returns the text before the first separator, and removes the separator. Returns
/// nullopt if the text does not contain it.
std::optional<std::string_view> cut(std::string_view& text, char separator) {
  const auto position = text.find(separator);
  if (position == std::string_view::npos) return std::nullopt;
  const auto first = text.substr(0, position);
  text.remove_prefix(position + 1);
  return first;
}

unsigned parse_port(std::string_view text) {
  unsigned number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc{} || end != text.data() + text.size() || number == 0 || number > 65535)
    refuse_url("the URL's port must be a number from 1 to 65535");
  return number;
}

url_host parse_host(std::string_view text) {
  url_host result;
  std::string_view port;
  if (text.starts_with('[')) {  // an IPv6 address
    const auto end = text.find(']');
    if (end == std::string_view::npos) refuse_url("the URL's host begins with [ and has no ]");
    result.name = text.substr(1, end - 1);
    port = text.substr(end + 1);
    if (!port.empty() && !port.starts_with(':'))
      refuse_url("after ] the URL's host may only have a port");
    if (!port.empty()) port.remove_prefix(1);
  } else {
    const auto colon = text.rfind(':');
    result.name = percent_decode(text.substr(0, colon));
    if (colon != std::string_view::npos) port = text.substr(colon + 1);
  }
  if (!port.empty()) result.port = parse_port(port);
  return result;
}

void read_authority(url& result, std::string_view authority) {
  if (const auto last = authority.rfind('@'); last != std::string_view::npos) {
    std::string_view credentials = authority.substr(0, last);
    authority.remove_prefix(last + 1);
    if (const auto user = cut(credentials, ':')) {
      result.user = percent_decode(*user);
      result.password = percent_decode(credentials);
    } else {
      result.user = percent_decode(credentials);
    }
  }
  if (authority.empty()) return;
  while (const auto host = cut(authority, ',')) result.hosts.push_back(parse_host(*host));
  result.hosts.push_back(parse_host(authority));
  const auto is_empty = [](const url_host& host) { return host.name.empty(); };
  if (result.hosts.size() > 1 && std::ranges::any_of(result.hosts, is_empty))
    refuse_url("the URL's list of hosts has an empty name; write it as host1:port1,host2:port2");
  result.host = result.hosts.front().name;
  result.port = result.hosts.front().port;
}

}  // namespace

url parse_url(std::string_view text) {
  auto result = parse_url_of_hosts(text);
  if (result.hosts.size() > 1)
    refuse_url("the URL names several hosts, separated by commas; name one");
  return result;
}

std::string url_to_open(std::string url, bool create) {
  const auto parameters = url.find('?');
  const bool has_parameters = parameters != std::string::npos;
  if (create || !url.starts_with("sqlite:") ||
      (has_parameters && url.find("mode=", parameters) != std::string::npos))
    return url;
  return url + (has_parameters ? "&" : "?") + "mode=rw";
}

url parse_url_of_hosts(std::string_view text) {
  url result;
  if (text.find('\0') != std::string_view::npos) refuse_url("the URL contains a NUL character");
  const auto scheme = cut(text, ':');
  if (!scheme || scheme->empty())
    refuse_url(
        "a database URL begins with its kind, like sqlite:answers.db or postgresql://host/name");
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
  result.path = percent_decode(text);
  while (!parameters.empty()) {
    const auto amp = parameters.find('&');
    std::string_view value = parameters.substr(0, amp);
    parameters = amp == std::string_view::npos ? std::string_view() : parameters.substr(amp + 1);
    const auto name = cut(value, '=');
    if (!name || name->empty())
      refuse_url("the URL's parameters must be name=value, joined with &");
    if (!result.parameters.emplace(percent_decode(*name), percent_decode(value)).second)
      refuse_url("the URL's parameter '" + percent_decode(*name) + "' is given twice");
  }
  return result;
}

namespace {

char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool is_hex(char c) noexcept {
  return (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'f');
}

bool is_base64(char c) noexcept {
  return (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'z') || c == '+' || c == '/';
}

/// The name of a parameter as a reader of the URL understands it: percent-decoded where it can be,
/// in lower case, without spaces after it.
std::string parameter_name(std::string_view text) {
  std::string name;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned code = static_cast<unsigned char>(text[i]);
    if (text[i] == '%' && i + 2 < text.size() && is_hex(text[i + 1]) && is_hex(text[i + 2])) {
      (void)std::from_chars(text.data() + i + 1, text.data() + i + 3, code, 16);
      i += 2;
    }
    name += lower(static_cast<char>(code));
  }
  name.erase(name.find_last_not_of(' ') + 1);
  return name;
}

bool names_a_secret(std::string_view parameter) {
  constexpr std::array<std::string_view, 5> secrets{"pwd", "password", "passphrase", "secret",
                                                    "token"};
  return std::ranges::any_of(
      secrets, [parameter](std::string_view name) { return parameter.ends_with(name); });
}

/// The end of a value: of `{...}` after its last brace, of any other at `;` or `&`.
std::size_t end_of_value(std::string_view text, std::size_t begin) {
  auto end = std::min(text.find_first_not_of(' ', begin), text.size());
  if (end < text.size() && text[end] == '{') {
    for (++end; end < text.size(); ++end) {
      if (text[end] != '}') continue;
      if (end + 1 == text.size() || text[end + 1] != '}')
        break;  // a brace in the value is written twice
      ++end;
    }
  }
  return std::min(text.find_first_of(";&", end), text.size());
}

/// `scheme://user:password@host`. A password may have an unescaped `/` or `@` in it. The only word
/// before the host of a Redis is more often a password than a user.
std::optional<text_range> password_before_host(std::string_view text) {
  const auto scheme = text.find("://");
  if (scheme == std::string_view::npos) return std::nullopt;
  const auto begin = scheme + 3;
  const auto last = text.rfind('@');
  if (last == std::string_view::npos || last < begin) return std::nullopt;
  if (const auto colon = text.find(':', begin); colon < last) return text_range{colon + 1, last};
  const auto letters = text.substr(0, scheme).find_last_of(" '\"=");
  const auto name = text.substr(letters == std::string_view::npos ? 0 : letters + 1);
  if (name.starts_with("redis")) return text_range{begin, last};
  return std::nullopt;
}

std::string masked(std::string_view text, const std::vector<text_range>& secrets) {
  std::string shown;
  std::size_t done = 0;
  for (const auto& secret : secrets) {
    if (secret.end <= done) continue;
    if (secret.begin >= done) shown.append(text.substr(done, secret.begin - done)).append("***");
    done = secret.end;
  }
  return shown.append(text.substr(done));
}

}  // namespace

std::vector<text_range> passwords_in(std::string_view text) {
  std::vector<text_range> ranges;
  std::string lowered(text);
  std::ranges::transform(lowered, lowered.begin(), lower);
  if (lowered.find("://") == std::string::npos && lowered.find("odbc:") == std::string::npos)
    return ranges;
  if (const auto password = password_before_host(text)) ranges.push_back(*password);
  std::size_t name = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '?' || text[i] == '&' || text[i] == ';') name = i + 1;
    if (text[i] != '=') continue;
    const bool secret = names_a_secret(parameter_name(text.substr(name, i - name)));
    name = i + 1;  // each character is read once, however many `=` there are
    if (!secret) continue;
    const auto end = end_of_value(text, i + 1);
    ranges.push_back({i + 1, end});
    i = end - 1;
  }
  std::ranges::sort(ranges, {}, &text_range::begin);
  return ranges;
}

std::string without_password(std::string_view text) { return masked(text, passwords_in(text)); }

std::string without_secrets(std::string_view text) {
  constexpr std::size_t shortest_hex = 32;     // of 16 bytes
  constexpr std::size_t shortest_base64 = 22;  // the same, without its padding
  auto ranges = passwords_in(text);
  for (std::size_t begin = 0; begin < text.size();) {
    const auto* const run = std::find_if_not(text.begin() + begin, text.end(), is_base64);
    const auto end = static_cast<std::size_t>(run - text.begin());
    const auto padding = std::min(text.find_first_not_of('=', end), text.size()) - end;
    const bool hex = end - begin >= shortest_hex && std::all_of(text.begin() + begin, run, is_hex);
    const bool base64 = end - begin >= shortest_base64 && (padding == 1 || padding == 2) &&
                        (end - begin + padding) % 4 == 0;
    if (hex || base64) ranges.push_back({begin, end + padding});
    begin = std::max(end + padding, begin + 1);
  }
  std::ranges::sort(ranges, {}, &text_range::begin);
  return masked(text, ranges);
}

}  // namespace HOLDFAST_NAMESPACE::detail
