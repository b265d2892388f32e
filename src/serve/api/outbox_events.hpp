#pragma once

#include <holdfast/version.hpp>

namespace HOLDFAST_NAMESPACE::detail::serve {

class endpoint_table;
struct services;

/// GET /v1/outboxes/{outbox}/events, .../events/{id}, .../events/{id}/explain, .../parked,
/// .../parked/groups
void add_outbox_event_endpoints(endpoint_table& table, services& shared);

}  // namespace HOLDFAST_NAMESPACE::detail::serve
