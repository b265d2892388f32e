#include "outbox/relay/cloud_event.hpp"

#include <holdfast/outbox/relay.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <map>

namespace HOLDFAST_NAMESPACE {

namespace detail::outbox {

namespace {

/// `2024-01-31T12:00:00.000Z`.
std::string iso_text(timestamp time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(std::chrono::floor<std::chrono::milliseconds>(time - day));
  std::array<char, 64> buffer{};
  (void)std::snprintf(buffer.data(), buffer.size(), "%04d-%02u-%02uT%02ld:%02ld:%02ld.%03ldZ",
                      static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                      static_cast<unsigned>(date.day()), static_cast<long>(clock.hours().count()),
                      static_cast<long>(clock.minutes().count()),
                      static_cast<long>(clock.seconds().count()),
                      static_cast<long>(clock.subseconds().count()));
  return buffer.data();
}

// These functions take normalized names: see normalized_name.

bool is_credential(std::string_view name) {
  constexpr std::array<std::string_view, 8> credentials{
      "authorization", "cookie",      "cookie2",   "proxy-authorization",
      "set-cookie",    "set-cookie2", "x-api-key", "x-auth-token"};
  return std::ranges::find(credentials, name) != credentials.end();
}

/// Headers that an event must not set.
bool is_reserved(std::string_view name) {
  // With these, an event could look like another one.
  constexpr std::array<std::string_view, 3> set_by_relay{"content-encoding", "content-type",
                                                         "idempotency-key"};
  // With these, an event could end the request early or inject another one.
  constexpr std::array<std::string_view, 11> set_by_connection{
      "connection",     "content-length",    "expect", "host",
      "http2-settings", "keep-alive",        "te",     "trailer",
      "trailers",       "transfer-encoding", "upgrade"};
  // With these, an event could choose the sender, method or path that the receiver relies on. CGI
  // passes `Proxy` on as HTTP_PROXY.
  constexpr std::array<std::string_view, 9> set_by_proxies{
      "forwarded",         "proxy",          "via",       "x-http-method", "x-http-method-override",
      "x-method-override", "x-original-url", "x-real-ip", "x-rewrite-url"};
  const auto is_in = [&](const auto& names) {
    return std::ranges::find(names, name) != names.end();
  };
  return name.starts_with("ce-") || name.starts_with("x-forwarded-") ||
         (name.starts_with("proxy-") && !is_credential(name)) || is_in(set_by_relay) ||
         is_in(set_by_connection) || is_in(set_by_proxies);
}

}  // namespace

std::string normalized_name(std::string_view header) {
  std::string name(header);
  std::ranges::transform(name, name.begin(), [](char c) {
    if (c == '_') return '-';
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return name;
}

/// Control characters are not allowed: a line break would inject another header.
bool is_valid_header(std::string_view name, std::string_view value) {
  const auto is_control = [](unsigned char c) { return c < 0x20 || c == 0x7F; };
  const auto not_in_name = [&](unsigned char c) {
    return is_control(c) || c == ':' || c == ' ' || c >= 0x80;
  };
  return std::ranges::none_of(name, not_in_name) && std::ranges::none_of(value, is_control);
}

std::string percent_encoded(std::string_view text) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string result;
  result.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > 0x20 && byte < 0x7F && byte != '"' && byte != '%') result += c;
    else result.append(1, '%').append(1, digits[byte >> 4U]).append(1, digits[byte & 0xFU]);
  }
  return result;
}

std::vector<std::pair<std::string_view, std::string>> cloud_event_attributes(
    const delivery& delivery, std::string_view source) {
  const auto& event = delivery.event();
  std::vector<std::pair<std::string_view, std::string>> attributes{
      {"specversion", "1.0"},
      {"id", event.id},
      {"type", event.type},
      {"source", std::string(source)},
      {"time", iso_text(delivery.claimed().created_at)},
      {"sequence", std::to_string(delivery.claimed().sequence)},
      {"fence", std::to_string(delivery.fence())}};
  const auto add_if_set = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) attributes.emplace_back(name, value);
  };
  add_if_set("partitionkey", event.key);
  add_if_set("dataschema", event.schema);
  add_if_set("subject", event.aggregate_id);
  return attributes;
}

std::vector<std::pair<std::string_view, std::string_view>> headers_to_pass(const event& event,
                                                                           bool credentials) {
  std::vector<std::pair<std::string_view, std::string_view>> headers;
  for (const auto& [name, value] : event.headers) {
    const auto normalized = normalized_name(name);
    if (!is_reserved(normalized) && (credentials || !is_credential(normalized)) &&
        is_valid_header(name, value))
      headers.emplace_back(name, value);
  }
  return headers;
}

}  // namespace detail::outbox

namespace relay {

std::map<std::string, std::string> cloud_event_headers(const delivery& delivery,
                                                       std::string_view source,
                                                       cloud_event_options options) {
  std::map<std::string, std::string> headers;
  for (const auto& [name, value] :
       detail::outbox::headers_to_pass(delivery.event(), options.credentials))
    headers.emplace(name, value);
  for (const auto& [name, value] : detail::outbox::cloud_event_attributes(delivery, source))
    headers["ce-" + std::string(name)] = detail::outbox::percent_encoded(value);
  headers["Idempotency-Key"] = delivery.event().id;
  return headers;
}

}  // namespace relay

}  // namespace HOLDFAST_NAMESPACE
