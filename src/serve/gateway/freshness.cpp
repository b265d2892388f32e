#include "serve/gateway/freshness.hpp"

#include "http/date.hpp"
#include "http/syntax.hpp"

#include <algorithm>
#include <cstdint>

namespace HOLDFAST_NAMESPACE::detail::serve::gateway {

namespace {

using std::chrono::seconds;

constexpr seconds longest{std::int64_t{1} << 31U};

}  // namespace

seconds freshness_lifetime(const response_fields& response, timestamp received) {
  const auto directives = response.cache_control();
  if (directives.s_maxage) return *directives.s_maxage;
  if (directives.max_age) return *directives.max_age;
  const auto expires = response.find("expires");
  if (!expires) return seconds(0);
  const auto now = std::chrono::floor<seconds>(received);
  const auto end = http::parse_date(*expires, now);
  if (!end) return seconds(0);
  const auto date_text = response.find("date");
  const auto date = date_text ? http::parse_date(*date_text, now) : std::nullopt;
  return std::clamp(*end - date.value_or(now), seconds(0), longest);
}

seconds initial_age(const response_fields& response) {
  const auto text = response.find("age");
  // A list of ages: the first counts.
  const auto number =
      text ? http::parse_digits(http::trim(text->substr(0, text->find(',')))) : std::nullopt;
  if (!number) return seconds(0);
  return std::min(longest, seconds(static_cast<std::int64_t>(*number)));
}

seconds age_at(const response_fields& response, timestamp as_of, timestamp now) {
  const auto resident = std::chrono::floor<seconds>(now - as_of);
  return std::min(longest, initial_age(response) + std::max(resident, seconds(0)));
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve::gateway
