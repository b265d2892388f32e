#include "serve/gateway/keep_rules.hpp"

#include "serve/gateway/freshness.hpp"

#include <algorithm>
#include <array>

namespace HOLDFAST_NAMESPACE::detail::serve::gateway {

namespace {

using std::chrono::seconds;

constexpr std::array<int, 8> kept_statuses = {200, 203, 204, 300, 301, 308, 404, 410};

/// RFC 9111, section 3.5: these allow that an answer to one caller is given to others.
bool is_shared(const http::cache_control& directives) noexcept {
  return directives.is_public || directives.s_maxage || directives.must_revalidate;
}

/// Whether Vary names a field that is not part of the key.
bool varies_beyond_key(const route& rules, const response_fields& response) {
  bool beyond = false;
  response.for_each("vary", [&](std::string_view value) {
    http::for_each_element(value, [&](std::string_view name) {
      std::string lower(name);
      std::ranges::transform(lower, lower.begin(), http::to_lower);
      // The gateway forwards one of two values of Accept-Encoding, and has it in every key.
      if (lower != "accept-encoding" && !rules.varies_by(lower)) beyond = true;
    });
  });
  return beyond;
}

std::string_view forbidden_by(const overridden_directives& overridden,
                              const http::cache_control& response) noexcept {
  if (response.must_revalidate && !overridden.must_revalidate)
    return "forbidden-by=must-revalidate";
  if (response.proxy_revalidate && !overridden.proxy_revalidate)
    return "forbidden-by=proxy-revalidate";
  if (response.s_maxage && !overridden.s_maxage) return "forbidden-by=s-maxage";
  return {};
}

}  // namespace

std::string_view unkeyed_credential(const route& rules, const request_facts& request,
                                    const http::cache_control& response) noexcept {
  if (is_shared(response)) return {};
  if (request.has_authorization && !rules.varies_by("authorization")) return "authorization";
  if (request.has_cookie && !rules.varies_by("cookie")) return "cookie";
  return {};
}

request_facts request_facts::of(std::string_view method, const http::fields& request) {
  request_facts facts{.get = method == "GET",
                      .head = method == "HEAD",
                      .has_authorization = request.find("authorization").has_value(),
                      .has_cookie = request.find("cookie").has_value(),
                      .directives = http::cache_control::of(request)};
  // HTTP/1.0 (RFC 9111, section 5.4).
  const auto pragma = request.find("pragma");
  if (pragma && !request.find("cache-control") && http::equals_ignoring_case(*pragma, "no-cache"))
    facts.directives.no_cache = true;
  return facts;
}

bool is_failure(const route& rules, int status) noexcept {
  return status == 500 || (status >= 502 && status <= 504) ||
         std::ranges::find(rules.failures, status) != rules.failures.end();
}

keep_decision decide_keep(const route& rules, const request_facts& request, int status,
                          const response_fields& response, std::size_t content_size) {
  using enum keep_action;
  if (!request.get) return {.action = pass, .reason = request.head ? "head" : "method"};
  if (request.directives.no_store) return {.action = pass, .reason = "request-no-store"};
  if (std::ranges::find(kept_statuses, status) == kept_statuses.end())
    return {.action = pass, .reason = status == 206 ? "partial" : "status"};
  const auto directives = response.cache_control();
  if (const auto credential = unkeyed_credential(rules, request, directives); !credential.empty())
    return {.action = pass, .reason = credential};
  // Without the credential the key names no caller: all of them would share the answer.
  const bool keyed_by_caller = (request.has_authorization && rules.varies_by("authorization")) ||
                               (request.has_cookie && rules.varies_by("cookie"));
  std::string_view reason;
  if (directives.no_store) reason = "no-store";
  else if (directives.is_private && !keyed_by_caller) reason = "private";
  else if (response.has("set-cookie")) reason = "set-cookie";
  else if (varies_beyond_key(rules, response)) reason = "vary";
  else if (content_size > rules.max_payload) reason = "too-large";
  if (reason.empty()) return {.action = keep};
  return {.action = rules.keep_superseded ? pass : invalidate, .reason = reason};
}

timestamp longest_expiry(const route& rules, const expiry& usual, timestamp as_of) {
  return std::max(as_of + rules.max_expiry, usual.after(as_of));
}

timestamp keep_until(const route& rules, const response_fields& response, const expiry& usual,
                     timestamp as_of) {
  const auto if_error = response.cache_control().stale_if_error;
  if (!if_error) return usual.after(as_of);
  const auto fresh = freshness_lifetime(response, as_of) - initial_age(response);
  return std::min(longest_expiry(rules, usual, as_of),
                  as_of + std::max(fresh, seconds(0)) + *if_error);
}

reuse decide_reuse(const request_facts& request, const response_fields& kept, timestamp as_of,
                   timestamp now, std::chrono::microseconds soft) {
  const auto& asked = request.directives;
  const auto age = age_at(kept, as_of, now);
  if (asked.no_cache || asked.no_store || (asked.max_age && age >= *asked.max_age))
    return reuse::none;
  const auto directives = kept.cache_control();
  if (directives.max_age || directives.s_maxage || kept.has("expires")) {
    const auto remaining = freshness_lifetime(kept, as_of) - age;
    if (remaining <= seconds(0) || (asked.min_fresh && remaining < *asked.min_fresh))
      return reuse::none;
  } else if (asked.min_fresh) {
    return reuse::none;
  }
  return now - as_of <= soft ? reuse::young : reuse::refresh;
}

std::string_view refusal_of(const route& rules, const request_facts& request,
                            const response_fields& kept, timestamp as_of, timestamp now) {
  const auto directives = kept.cache_control();
  if (const auto credential = unkeyed_credential(rules, request, directives); !credential.empty())
    return credential;
  if (directives.no_cache && !rules.overridden.no_cache) return "forbidden-by=no-cache";
  if (rules.obey_request_no_cache && request.directives.no_cache) return "request-no-cache";
  const auto staleness = age_at(kept, as_of, now) - freshness_lifetime(kept, as_of);
  if (staleness < seconds(0)) return {};  // it is fresh
  if (const auto limit = request.directives.stale_if_error; limit && staleness >= *limit)
    return "request-stale-if-error";
  return forbidden_by(rules.overridden, directives);
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve::gateway
