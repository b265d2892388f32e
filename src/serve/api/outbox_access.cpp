#include "serve/api/outbox_access.hpp"

#include <holdfast/error.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

bool names_outbox(std::string_view scope, std::string_view outbox) noexcept {
  constexpr std::string_view room = "outbox:";
  if (!scope.starts_with(room)) return false;
  scope.remove_prefix(room.size());
  return scope.substr(0, scope.find(':')) == outbox;
}

}  // namespace

bool tenant_may_use(const caller& actor, std::string_view outbox) noexcept {
  return actor.tenant.empty() || std::ranges::any_of(actor.scopes, [&](const std::string& scope) {
           return names_outbox(scope, outbox);
         });
}

std::optional<server_response> refuse_tenant(const api_request& request) {
  if (tenant_may_use(request.caller, request.path("outbox"))) return std::nullopt;
  return problem_response(403,
                          "the token belongs to a tenant, and outboxes have no tenants: its scopes "
                          "must name this outbox, such as outbox:orders:publish");
}

std::function<server_response(api_request&)> on_outbox(services& shared, outbox_action action) {
  return [&shared, action = std::move(action)](api_request& request) {
    if (auto refusal = refuse_tenant(request)) return *std::move(refusal);
    auto& service = shared.find_outbox(request.path("outbox"));
    const auto call = service.calls->begin();
    return action(service, request);
  };
}

error with_client_advice(const error& problem, const outbox_service& service) {
  // A quota is transient.
  if (problem.code() != errc::too_large || problem.transient()) return problem;
  return {errc::too_large,
          "the payload of an event has at most " + std::to_string(service.options.inline_limit) +
              " bytes here; keep a larger one elsewhere, and send where it is",
          {.path = problem.path()}};
}

std::size_t checked_count(json_object& body, std::string_view name, std::size_t fallback) {
  const auto value = body.integer(name);
  if (!value) return fallback;
  if (*value >= 1 && *value <= 1000) return static_cast<std::size_t>(*value);
  throw error(errc::invalid_argument, "must be from 1 to 1000", {.path = std::string(name)});
}

std::size_t checked_lane(const outbox_service& service, std::int64_t lane) {
  const auto lanes = service.outbox.lanes();
  if (lane >= 0 && static_cast<std::uint64_t>(lane) < lanes) return static_cast<std::size_t>(lane);
  throw error(errc::invalid_argument,
              "must be from 0 to " + std::to_string(lanes - 1) + ", the lanes of this outbox",
              {.path = "lane"});
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
