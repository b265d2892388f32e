#include "serve/api/outbox_endpoints.hpp"

#include "serve/api/outbox_admin.hpp"
#include "serve/api/outbox_bulk.hpp"
#include "serve/api/outbox_claims.hpp"
#include "serve/api/outbox_events.hpp"
#include "serve/api/outbox_publish.hpp"
#include "serve/api/outbox_settlements.hpp"
#include "serve/api/outbox_tickets.hpp"

namespace HOLDFAST_NAMESPACE::detail::serve {

void add_outbox_endpoints(endpoint_table& table, services& shared, claim_polls& polls) {
  add_outbox_admin_endpoints(table, shared);
  add_outbox_publish_endpoints(table, shared);
  add_outbox_event_endpoints(table, shared);
  add_outbox_claim_endpoints(table, shared, polls);
  add_outbox_settlement_endpoints(table, shared);
  add_outbox_ticket_endpoints(table, shared);
  add_outbox_bulk_endpoints(table, shared);
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
