#include "http/cache_control.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace HOLDFAST_NAMESPACE::detail::http {

namespace {

using age = std::optional<std::chrono::seconds>;

constexpr std::chrono::seconds max_age_seconds{std::int64_t{1} << 31U};

struct age_directive {
  std::string_view name;
  age cache_control::* value;
};
constexpr std::array<age_directive, 6> age_directives = {{
    {"max-age", &cache_control::max_age},
    {"s-maxage", &cache_control::s_maxage},
    {"stale-if-error", &cache_control::stale_if_error},
    {"stale-while-revalidate", &cache_control::stale_while_revalidate},
    {"min-fresh", &cache_control::min_fresh},
    {"max-stale", &cache_control::max_stale},
}};

struct flag_directive {
  std::string_view name;
  bool cache_control::* value;
};
constexpr std::array<flag_directive, 10> flag_directives = {{
    {"no-store", &cache_control::no_store},
    {"no-cache", &cache_control::no_cache},
    {"private", &cache_control::is_private},
    {"public", &cache_control::is_public},
    {"must-revalidate", &cache_control::must_revalidate},
    {"proxy-revalidate", &cache_control::proxy_revalidate},
    {"must-understand", &cache_control::must_understand},
    {"no-transform", &cache_control::no_transform},
    {"only-if-cached", &cache_control::only_if_cached},
    {"immutable", &cache_control::immutable},
}};

std::chrono::seconds read_age(std::string_view argument) {
  if (argument.size() >= 2 && argument.front() == '"' && argument.back() == '"')
    argument = argument.substr(1, argument.size() - 2);
  const bool digits = !argument.empty() && std::ranges::all_of(argument, is_digit);
  if (!digits) return std::chrono::seconds(0);
  const auto number = parse_digits(argument);
  if (!number) return max_age_seconds;
  return std::min(max_age_seconds, std::chrono::seconds(static_cast<std::int64_t>(*number)));
}

}  // namespace

void cache_control::add(std::string_view value) {
  for_each_element(value, [this](std::string_view directive) {
    const auto equals = directive.find('=');
    const auto name = trim(directive.substr(0, equals));
    const bool has_argument = equals != std::string_view::npos;
    const auto argument = has_argument ? trim(directive.substr(equals + 1)) : std::string_view{};
    for (const auto& entry : flag_directives) {
      if (equals_ignoring_case(name, entry.name)) this->*entry.value = true;
    }
    for (const auto& entry : age_directives) {
      if (!equals_ignoring_case(name, entry.name)) continue;
      const bool any_age = !has_argument && entry.value == &cache_control::max_stale;
      const auto seconds = any_age ? max_age_seconds : read_age(argument);
      auto& current = this->*entry.value;
      current = current ? std::min(*current, seconds) : seconds;
    }
  });
}

cache_control cache_control::of(const fields& source) {
  cache_control directives;
  source.for_each("cache-control", [&](std::string_view value) { directives.add(value); });
  return directives;
}

}  // namespace HOLDFAST_NAMESPACE::detail::http
