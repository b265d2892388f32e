#include "serve/auth/masking.hpp"

#include "base/url.hpp"
#include "http/syntax.hpp"
#include "serve/api/json_writer.hpp"

#include <simdjson.h>

#include <algorithm>
#include <array>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

using simdjson::dom::element;

/// Found anywhere in a name, without its separators.
constexpr std::array<std::string_view, 20> sensitive_parts{
    "password",      "passwd",         "passphrase",    "passwort",   "secret",
    "token",         "apikey",         "authorization", "credential", "privatekey",
    "accesskey",     "iban",           "creditcard",    "cardnumber", "accountnumber",
    "encryptionkey", "socialsecurity", "sessionid",     "signingkey", "kontonummer"};
/// Found as a word of a name: `cardHolder`, but not `discard`.
constexpr std::array<std::string_view, 18> sensitive_words{
    "card", "pin", "pwd",  "pass",   "pan", "cvv",       "cvc", "cvc2",  "cvv2",
    "ssn",  "otp", "auth", "cookie", "jwt", "signature", "bic", "swift", "mfa"};

/// The words of a name: `cardHolder`, `card_holder`, `CARD-HOLDER`.
template <class Visitor>
void for_each_word(std::string_view name, Visitor visit) {
  std::string word;
  char previous = 0;
  const auto finish = [&] {
    if (!word.empty()) visit(std::string_view(word));
    word.clear();
  };
  for (const char c : name) {
    const bool upper = c >= 'A' && c <= 'Z';
    if (upper && http::is_lower(previous)) finish();
    if (http::is_alpha(c) || http::is_digit(c)) word += http::to_lower(c);
    else finish();
    previous = c;
  }
  finish();
}

// The parser refuses documents that are nested deeper than 1024.
void write_masked(json_writer& out, const element& value) {  // NOLINT(misc-no-recursion)
  simdjson::dom::object object;
  simdjson::dom::array array;
  if (value.get_object().get(object) == simdjson::SUCCESS) {
    out.begin_object();
    for (const auto& [name, member] : object) {
      out.key(name);
      if (is_sensitive_name(name) && !member.is_null()) out.text(mask_text);
      else write_masked(out, member);
    }
    out.end_object();
  } else if (value.get_array().get(array) == simdjson::SUCCESS) {
    out.begin_array();
    for (const auto each : array) write_masked(out, each);
    out.end_array();
  } else {
    out.raw(simdjson::minify(value));
  }
}

}  // namespace

bool is_sensitive_name(std::string_view name) {
  std::string joined;
  bool has_word = false;
  for_each_word(name, [&](std::string_view word) {
    joined += word;
    if (std::ranges::find(sensitive_words, word) != sensitive_words.end()) has_word = true;
  });
  return has_word || std::ranges::any_of(sensitive_parts, [&](std::string_view part) {
           return joined.find(part) != std::string::npos;
         });
}

std::optional<std::string> mask_json(std::string_view json) {
  simdjson::dom::parser parser;
  element root;
  if (parser.parse(simdjson::padded_string(json)).get(root) != simdjson::SUCCESS)
    return std::nullopt;
  json_writer out;
  write_masked(out, root);
  return out.take();
}

std::string mask_url(std::string_view url) {
  const auto fragment = url.find('#');
  const bool has_fragment = fragment != std::string_view::npos;
  url = url.substr(0, fragment);
  const auto question = url.find('?');
  std::string masked = without_password(url.substr(0, question));
  if (question != std::string_view::npos) {
    char separator = '?';
    auto query = url.substr(question + 1);
    for (;;) {
      const auto parameter = query.substr(0, query.find('&'));
      const auto equals = parameter.find('=');
      masked += separator;
      // A parameter without a name is a value.
      if (equals == std::string_view::npos) masked += mask_text;
      else masked.append(parameter.substr(0, equals + 1)).append(mask_text);
      separator = '&';
      if (parameter.size() == query.size()) break;
      query.remove_prefix(parameter.size() + 1);
    }
  }
  if (has_fragment) masked.append("#").append(mask_text);
  return masked;
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
