#include "outbox/worker_instruments.hpp"

namespace HOLDFAST_NAMESPACE {

namespace {

tally counted(metrics_sink& into, std::string_view name, std::string_view help) { return tally(into.counter(name, {}, help)); }

tally outcomes(metrics_sink& into, std::string_view how) {
  return tally(into.counter("holdfast_outbox_outcomes_total", {{"outcome", how}}, "Deliveries by what became of them"));
}

}  // namespace

worker_instruments::worker_instruments(metrics_sink& into)
    : claims(counted(into, "holdfast_outbox_claims_total", "Claims that gave events")),
      deliveries(counted(into, "holdfast_outbox_deliveries_total", "Events handed to a handler")),
      done(outcomes(into, "done")),
      retried(outcomes(into, "retry")),
      throttled(outcomes(into, "throttled")),
      parked(outcomes(into, "parked")),
      released(outcomes(into, "released")),
      fenced(counted(into, "holdfast_outbox_fenced_total", "Leases and locks that were lost, and outcomes refused for it")),
      in_doubt(counted(into, "holdfast_outbox_in_doubt_total", "Outcomes whose arrival nobody knows")),
      tickets(counted(into, "holdfast_outbox_tickets_total", "Tickets that became events")),
      wakes(counted(into, "holdfast_outbox_wakes_total", "Wake-ups by a new event")),
      errors(counted(into, "holdfast_outbox_errors_total", "Calls of the outbox that failed")),
      handle_seconds(into.histogram("holdfast_outbox_handle_seconds", {}, "Time in a handler")),
      lag_seconds(into.histogram("holdfast_outbox_lag_seconds", {}, "From the moment an event was published to its first claim")),
      wake_seconds(into.histogram("holdfast_outbox_wake_seconds", {}, "From a wake-up to the claimed events")),
      in_flight(into.gauge("holdfast_outbox_in_flight", {}, "Events that the worker holds")),
      depth(into.gauge("holdfast_outbox_depth", {}, "Events kept, without the parked ones")),
      parked_now(into.gauge("holdfast_outbox_parked", {}, "Events kept aside")),
      overdue(into.gauge("holdfast_outbox_overdue_seconds", {}, "How long the longest waiting event or ticket has been due")),
      tickets_waiting(into.gauge("holdfast_outbox_tickets", {}, "Tickets that have not expired")) {}

worker_numbers worker_instruments::count() const {
  return {.claims = claims.get(),
          .deliveries = deliveries.get(),
          .done = done.get(),
          .retried = retried.get(),
          .throttled = throttled.get(),
          .parked = parked.get(),
          .released = released.get(),
          .fenced = fenced.get(),
          .in_doubt = in_doubt.get(),
          .tickets = tickets.get(),
          .wakes = wakes.get(),
          .errors = errors.get()};
}

void worker_instruments::looked(const outbox_stats& what) {
  depth->set(static_cast<double>(what.pending + what.following));
  parked_now->set(static_cast<double>(what.parked));
  overdue->set(static_cast<double>(what.overdue.count()) / 1000.0);
  tickets_waiting->set(static_cast<double>(what.tickets));
}

}  // namespace HOLDFAST_NAMESPACE
