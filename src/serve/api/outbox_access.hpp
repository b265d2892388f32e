#pragma once

/// \file
/// Who may use an outbox. Outboxes have no tenants: their events belong to all who may use them.
/// Therefore a caller with a tenant needs a scope that names the outbox; `*` does not suffice.

#include <holdfast/error.hpp>
#include <holdfast/version.hpp>

#include "serve/api/endpoint.hpp"
#include "serve/api/json_reader.hpp"
#include "serve/api/services.hpp"

#include <functional>
#include <optional>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// Whether the caller's tenant allows this outbox. Role and scope are checked by the dispatcher.
[[nodiscard]] bool tenant_may_use(const caller& actor, std::string_view outbox) noexcept;

/// The answer 403 if the caller's tenant does not allow the outbox of the path.
[[nodiscard]] std::optional<server_response> refuse_tenant(const api_request& request);

using outbox_action = std::function<server_response(outbox_service&, api_request&)>;

/// An `answer` that calls the action with the outbox of the path, or answers 403 or 404. Refuses
/// calls while the database hangs, as call_limit::begin.
[[nodiscard]] std::function<server_response(api_request&)> on_outbox(services& shared,
                                                                     outbox_action action);

/// A member that is a number from 1 to 1000. Throws errc::invalid_argument.
[[nodiscard]] std::size_t checked_count(json_object& body, std::string_view name,
                                        std::size_t fallback);

/// The query parameter or member `lane`, checked. Throws errc::invalid_argument.
[[nodiscard]] std::size_t checked_lane(const outbox_service& service, std::int64_t lane);

/// The outbox advises options of the library for a payload that is too large. Returns the error
/// with advice that a client can follow; other errors unchanged.
[[nodiscard]] error with_client_advice(const error& problem, const outbox_service& service);

}  // namespace HOLDFAST_NAMESPACE::detail::serve
