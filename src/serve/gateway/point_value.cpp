#include "serve/gateway/point_value.hpp"

#include <holdfast/error.hpp>

#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve::gateway {

namespace {

thread_local recovery_scope* recovery_of_this_thread = nullptr;

}  // namespace

std::string point_codec::encode(const point_value& value) const {
  return gateway::encode(value.response, value.form);
}

point_value point_codec::decode(std::string_view payload) const {
  return {.response = gateway::decode(payload)};
}

route_point make_route_point(engine& owner, const route& rules) {
  point_hooks<point_value> hooks;
  hooks.result = [](const point_value& value) {
    return value.keep ? result_kind::store : result_kind::ignore;
  };
  hooks.expiry = [](const point_value& value, timestamp) { return value.expires; };
  hooks.recovered = [](std::optional<point_value>& value, const provenance& source) {
    auto* const scope = recovery_scope::current();
    if (value && scope != nullptr && !scope->admits(*value, source.as_of)) value.reset();
  };
  return owner.protect<point_codec>(
      rules.name, {.payload_class = std::string(stored_response_class)},
      [](const run_time_arguments&) -> std::optional<point_value> {
        throw error(errc::internal, "the gateway calls the upstream itself");
      },
      std::move(hooks));
}

run_time_arguments arguments_of(std::string key_text) {
  run_time_arguments arguments;
  arguments.values.emplace_back(std::move(key_text));
  return arguments;
}

recovery_scope::recovery_scope(const route& rules, const request_facts& request, timestamp now,
                               std::optional<timestamp> invalidated) noexcept
    : rules_(rules), request_(request), now_(now), invalidated_(invalidated) {
  recovery_of_this_thread = this;
}

recovery_scope::~recovery_scope() { recovery_of_this_thread = nullptr; }

recovery_scope* recovery_scope::current() noexcept { return recovery_of_this_thread; }

bool recovery_scope::admits(const point_value& value, timestamp as_of) {
  if (!value.response.invalid.empty()) refusal_ = "replaced";
  else if (invalidated_ && as_of <= *invalidated_) refusal_ = "invalidated";
  else refusal_ = std::string(refusal_of(rules_, request_, value.response.fields, as_of, now_));
  return refusal_.empty();
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve::gateway
