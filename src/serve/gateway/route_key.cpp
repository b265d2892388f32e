#include "serve/gateway/route_key.hpp"

#include "base/hex.hpp"

#include <sodium.h>

#include <algorithm>
#include <array>

namespace HOLDFAST_NAMESPACE::detail::serve::gateway {

namespace {

constexpr std::string_view gzip_part = "\ngzip";

bool is_ignored(const route& rules, std::string_view name) noexcept {
  return std::ranges::any_of(rules.ignored_parameters, [&](const std::string& pattern) {
    return pattern.ends_with('*')
               ? name.starts_with(std::string_view(pattern).substr(0, pattern.size() - 1))
               : name == pattern;
  });
}

/// Appends a text of any bytes as printable ASCII, so that two texts never look the same.
void append_escaped(std::string& out, std::string_view text) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > ' ' && byte < 0x7F && byte != '%') {
      out += c;
    } else {
      out += '%';
      out += digits[byte / 16U];
      out += digits[byte % 16U];
    }
  }
}

bool is_credential(std::string_view name) noexcept {
  return name == "authorization" || name == "cookie" || name == "proxy-authorization";
}

/// Such a field ends here, so the upstream does not see it.
bool is_of_connection(const http::fields& request, std::string_view name) {
  bool named = false;
  request.for_each("connection", [&](std::string_view value) {
    http::for_each_element(value, [&](std::string_view element) {
      if (http::equals_ignoring_case(element, name)) named = true;
    });
  });
  return named;
}

std::string base_text(const route& rules, const key_source& source) {
  auto text = target_text(rules, source);
  if (rules.forward_host) {
    text += "\nhost=";
    const auto name = host_without_port(source.host);
    append_escaped(text, name);
    text.append(source.host.substr(std::min(name.size(), source.host.size())));
  }
  return text;
}

}  // namespace

key_source source_of(const http::target& target, std::string_view host) noexcept {
  return {.host = host,
          .path = target.path(),
          .query = target.query(),
          .has_query = target.has_query()};
}

std::string target_text(const route& rules, const key_source& source) {
  std::string text(source.path);
  if (!source.has_query) return text;
  if (rules.ignored_parameters.empty()) return text.append("?").append(source.query);
  char separator = '?';
  auto rest = source.query;
  while (!rest.empty()) {
    const auto size = std::min(rest.find('&'), rest.size());
    const auto parameter = rest.substr(0, size);
    if (!is_ignored(rules, parameter.substr(0, parameter.find('=')))) {
      text.append(1, separator).append(parameter);
      separator = '&';
    }
    rest.remove_prefix(std::min(size + 1, rest.size()));
  }
  return text;
}

bool accepts_gzip(const http::fields& request) {
  bool accepted = false;
  request.for_each("accept-encoding", [&](std::string_view value) {
    http::for_each_element(value, [&](std::string_view element) {
      const auto semicolon = element.find(';');
      const auto name = http::trim(element.substr(0, semicolon));
      if (!http::equals_ignoring_case(name, "gzip") && name != "*") return;
      // A weight of zero refuses the coding: q=0, q=0.0, q=0.00, q=0.000.
      auto weight = semicolon == std::string_view::npos ? std::string_view{}
                                                        : http::trim(element.substr(semicolon + 1));
      const bool has_weight = weight.starts_with("q=") || weight.starts_with("Q=");
      if (has_weight) weight.remove_prefix(2);
      if (!has_weight || weight.find_first_not_of("0.") != std::string_view::npos) accepted = true;
    });
  });
  return accepted;
}

std::string keyed_hash(std::string_view secret, std::string_view text) {
  std::array<unsigned char, crypto_generichash_KEYBYTES_MAX> key{};
  std::array<unsigned char, 16> digest{};
  // A key has at most 64 bytes.
  crypto_generichash(key.data(), key.size(), reinterpret_cast<const unsigned char*>(secret.data()),
                     secret.size(), nullptr, 0);
  crypto_generichash(digest.data(), digest.size(),
                     reinterpret_cast<const unsigned char*>(text.data()), text.size(), key.data(),
                     key.size());
  return to_hex(digest);
}

std::string route_keys::of_request(const route& rules, const key_source& source,
                                   const http::fields& request) const {
  auto text = base_text(rules, source);
  if (accepts_gzip(request)) text += gzip_part;
  for (const auto& name : rules.vary) {
    if (name == "accept-encoding") continue;
    const auto value = is_of_connection(request, name) ? std::nullopt : request.join(name);
    text.append("\n").append(name);
    // No field and an empty field are different requests.
    if (!value) continue;
    text += '=';
    if (is_credential(name)) text += keyed_hash(secret_, *value);
    else append_escaped(text, *value);
  }
  return text;
}

std::vector<std::string> route_keys::of_target(const route& rules, const key_source& source) {
  const auto text = base_text(rules, source);
  if (!rules.vary.empty()) return {invalidation_key(rules, source)};
  return {text, text + std::string(gzip_part)};
}

std::string route_keys::invalidation_key(const route& rules, const key_source& source) {
  return base_text(rules, source) + "\n*";
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve::gateway
