#include "serve/api/payload_masking.hpp"

#include "serve/api/json_slices.hpp"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <cstddef>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

/// The name as it is read, if it has escapes: `pass\u0077ord` is `password`.
std::string unescaped(std::string_view quoted) {
  if (quoted.find('\\') == std::string_view::npos)
    return std::string(quoted.substr(1, quoted.size() - 2));
  simdjson::dom::parser parser;
  std::string_view name;
  if (parser.parse(quoted.data(), quoted.size()).get_string().get(name) != simdjson::SUCCESS)
    return {};
  return std::string(name);
}

/// Whether a string at this position is the name of a member: a colon follows.
bool is_member_name(std::string_view after) {
  const auto next = after.find_first_not_of(" \t\r\n");
  return next != std::string_view::npos && after[next] == ':';
}

}  // namespace

bool is_secret_name(std::string_view name) {
  // Letters and digits in lower case: `Access-Token`, `access_token` and `accessToken` are one.
  std::string plain;
  for (const char c : name) {
    if (c >= 'A' && c <= 'Z') plain += static_cast<char>(c - 'A' + 'a');
    else if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) plain += c;
  }
  constexpr std::array<std::string_view, 14> anywhere{
      "password", "passwd",     "passphrase",    "secret", "token",  "apikey",     "iban",
      "cvv",      "creditcard", "authorization", "cookie", "cardno", "cardnumber", "privatekey"};
  constexpr std::array<std::string_view, 6> whole{"card", "pin", "cvc", "pan", "ssn", "pwd"};
  return std::ranges::find(whole, plain) != whole.end() ||
         std::ranges::any_of(anywhere, [&](std::string_view part) {
           return plain.find(part) != std::string::npos;
         });
}

std::string mask_json(std::string_view json) {
  std::string result;
  result.reserve(json.size());
  for (std::size_t i = 0; i < json.size();) {
    if (json[i] != '"') {
      result += json[i++];
      continue;
    }
    const auto text = json.substr(i, json_value_size(json.substr(i)));
    result += text;
    i += text.size();
    if (!is_member_name(json.substr(i)) || !is_secret_name(unescaped(text))) continue;
    const auto colon = json.find(':', i);
    const auto value = json.find_first_not_of(" \t\r\n", colon + 1);
    if (value == std::string_view::npos) break;
    result.append(json.substr(i, value - i)).append("\"***\"");
    i = value + json_value_size(json.substr(value));
  }
  return result;
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
