#include "outbox/worker/metrics.hpp"

#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::outbox {

namespace {

readable_counter worker_counter(metrics_sink& sink, std::string_view name, std::string_view help) {
  return readable_counter(sink.counter(name, {}, help));
}

readable_counter outcome_counter(metrics_sink& sink, std::string_view outcome) {
  return readable_counter(sink.counter("holdfast_outbox_outcomes_total", {{"outcome", outcome}},
                                       "Settled deliveries by outcome"));
}

}  // namespace

worker_metrics::worker_metrics(metrics_sink& sink)
    : claims(worker_counter(sink, "holdfast_outbox_claims_total", "Claims that returned events")),
      deliveries(worker_counter(sink, "holdfast_outbox_deliveries_total", "Calls of handlers")),
      done(outcome_counter(sink, "done")),
      retried(outcome_counter(sink, "retry")),
      throttled(outcome_counter(sink, "throttled")),
      parked(outcome_counter(sink, "parked")),
      released(outcome_counter(sink, "released")),
      fenced(worker_counter(sink, "holdfast_outbox_fenced_total",
                            "Lost leases and locks, and settlements refused because of them")),
      in_doubt(worker_counter(sink, "holdfast_outbox_in_doubt_total", "Settlements in doubt")),
      timed_out(worker_counter(sink, "holdfast_outbox_timed_out_total",
                               "Handlers given up because they exceeded their time limit")),
      unhandled(worker_counter(sink, "holdfast_outbox_unhandled_total",
                               "Claimed events without a handler for their type")),
      tickets(worker_counter(sink, "holdfast_outbox_tickets_total", "Tickets that became events")),
      wakes(worker_counter(sink, "holdfast_outbox_wakes_total", "Wake-ups by a new event")),
      errors(
          worker_counter(sink, "holdfast_outbox_errors_total", "Calls of the outbox that failed")),
      handle_seconds(sink.histogram("holdfast_outbox_handle_seconds", {}, "Duration of a handler")),
      lag_seconds(sink.histogram("holdfast_outbox_lag_seconds", {},
                                 "Time from publishing an event to its first claim")),
      wake_seconds(sink.histogram("holdfast_outbox_wake_seconds", {},
                                  "Time from a wake-up to the claimed events")),
      in_flight(sink.gauge("holdfast_outbox_in_flight", {}, "Events that the worker holds")),
      depth(sink.gauge("holdfast_outbox_depth", {}, "Events that are not parked")),
      parked_now(sink.gauge("holdfast_outbox_parked", {}, "Parked events")),
      overdue(sink.gauge("holdfast_outbox_overdue_seconds", {},
                         "How long the oldest due event or ticket has been due")),
      tickets_waiting(sink.gauge("holdfast_outbox_tickets", {}, "Tickets that have not expired")) {}

worker_numbers worker_metrics::totals() const {
  return {.claims = claims.total(),
          .deliveries = deliveries.total(),
          .done = done.total(),
          .retried = retried.total(),
          .throttled = throttled.total(),
          .parked = parked.total(),
          .released = released.total(),
          .fenced = fenced.total(),
          .in_doubt = in_doubt.total(),
          .timed_out = timed_out.total(),
          .unhandled = unhandled.total(),
          .tickets = tickets.total(),
          .wakes = wakes.total(),
          .errors = errors.total()};
}

void worker_metrics::set_backlog(const outbox_stats& stats) {
  depth->set(static_cast<double>(stats.pending + stats.following));
  parked_now->set(static_cast<double>(stats.parked));
  overdue->set(static_cast<double>(stats.overdue.count()) / 1000.0);
  tickets_waiting->set(static_cast<double>(stats.tickets));
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
