#include "http/cache_status.hpp"

#include <holdfast/error.hpp>

#include "http/structured_field.hpp"
#include "http/syntax.hpp"

namespace HOLDFAST_NAMESPACE::detail::http {

namespace {

std::string_view forward_name(cache_status::forward_reason reason) noexcept {
  switch (reason) {
    case cache_status::forward_reason::bypass:
      return "bypass";
    case cache_status::forward_reason::method:
      return "method";
    case cache_status::forward_reason::uri_miss:
      return "uri-miss";
    case cache_status::forward_reason::vary_miss:
      return "vary-miss";
    case cache_status::forward_reason::miss:
      return "miss";
    case cache_status::forward_reason::request:
      return "request";
    case cache_status::forward_reason::stale:
      return "stale";
    case cache_status::forward_reason::partial:
      return "partial";
  }
  return "miss";
}

structured::bare_item detail_item(const std::string& text) {
  if (is_token(text) && is_alpha(text.front())) return structured::token{text};
  return text;
}

}  // namespace

std::string to_field(const cache_status& status, std::string_view previous) {
  if (status.hit && status.forwarded)
    throw error(errc::invalid_argument, "Cache-Status has either hit or fwd, not both");
  structured::item entry{.value = structured::token{status.cache}};
  auto& parameters = entry.parameters;
  if (status.hit) parameters.emplace_back("hit", true);
  if (status.forwarded)
    parameters.emplace_back("fwd", structured::token{std::string(forward_name(*status.forwarded))});
  if (status.forwarded_status)
    parameters.emplace_back("fwd-status", std::int64_t{*status.forwarded_status});
  if (status.time_to_live) parameters.emplace_back("ttl", *status.time_to_live);
  if (status.stored) parameters.emplace_back("stored", true);
  if (status.collapsed) parameters.emplace_back("collapsed", true);
  if (!status.key.empty()) parameters.emplace_back("key", status.key);
  if (!status.detail.empty()) parameters.emplace_back("detail", detail_item(status.detail));
  const auto own = structured::serialize(entry);
  return previous.empty() ? own : std::string(previous) + ", " + own;
}

}  // namespace HOLDFAST_NAMESPACE::detail::http
