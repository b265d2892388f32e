#pragma once

#include <holdfast/version.hpp>

namespace HOLDFAST_NAMESPACE::detail::serve {

class claim_polls;
class endpoint_table;
struct services;

/// Endpoints below /v1/outboxes. `polls` must outlive the table.
void add_outbox_endpoints(endpoint_table& table, services& shared, claim_polls& polls);

}  // namespace HOLDFAST_NAMESPACE::detail::serve
