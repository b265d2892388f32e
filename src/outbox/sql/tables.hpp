#pragma once

/// \file
/// All tables of one outbox, with their statements.

#include "outbox/sql/counter_table.hpp"
#include "outbox/sql/event_table.hpp"
#include "outbox/sql/key_locks.hpp"
#include "outbox/sql/lane_table.hpp"
#include "outbox/sql/remembered_ids.hpp"
#include "outbox/sql/tickets.hpp"

namespace HOLDFAST_NAMESPACE::detail::outbox {

struct outbox_tables {
  outbox_tables(const statement_builder& builder, const sql_outbox_setup& setup,
                std::shared_ptr<const clock> clock)
      : lanes(builder, setup.lanes, std::move(clock)),
        events(builder),
        remembered(builder, events, setup.lanes),
        tickets(make_ticket_statements(builder)),
        counters(builder),
        locks(builder, setup.order) {}

  lane_table lanes;
  event_table events;
  remembered_ids remembered;
  ticket_statements tickets;
  counter_table counters;
  key_locks locks;
};

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
