#pragma once

#include <holdfast/version.hpp>

namespace HOLDFAST_NAMESPACE::detail::serve {

class claim_polls;
class endpoint_table;
struct services;

/// POST /v1/outboxes/{outbox}/claims
void add_outbox_claim_endpoints(endpoint_table& table, services& shared, claim_polls& polls);

}  // namespace HOLDFAST_NAMESPACE::detail::serve
