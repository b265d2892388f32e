#pragma once

#include <holdfast/version.hpp>

namespace HOLDFAST_NAMESPACE::detail::serve {

class endpoint_table;
struct services;

/// POST /v1/outboxes/{outbox}/settlements, .../extensions; POST and DELETE .../locks
void add_outbox_settlement_endpoints(endpoint_table& table, services& shared);

}  // namespace HOLDFAST_NAMESPACE::detail::serve
