#include "outbox/worker/core.hpp"

#include <holdfast/error.hpp>

#include <utility>

namespace HOLDFAST_NAMESPACE::detail::outbox {

std::shared_ptr<worker_core> worker_core::create(holdfast::outbox outbox, event_handler handler,
                                                 worker_options options) {
  const std::shared_ptr<worker_core> core(
      new worker_core(std::move(outbox), std::move(handler), std::move(options)));
  core->context_.core = core;
  return core;
}

worker_core::worker_core(holdfast::outbox outbox, event_handler handler, worker_options options)
    : context_(std::move(outbox), std::move(options)),
      routes_(std::move(handler), context_.options.handling),
      locks_(context_),
      leases_(context_, routes_),
      settling_(context_, routes_, locks_),
      handling_(context_, routes_, leases_, settling_),
      polling_(context_, locks_, leases_, handling_, settling_),
      backlog_(context_),
      loop_(context_, locks_, leases_, handling_, polling_, backlog_) {}

void worker_core::refuse_while_running() const {
  if (loop_.running())
    throw error(errc::invalid_argument, "the worker is running; add handlers before");
}

void worker_core::handle(const std::string& type, event_handler handler,
                         const handler_options& options) {
  refuse_while_running();
  routes_.add(type, std::move(handler), options);
}

void worker_core::handle_batch(const std::string& type, batch_handler handler, std::size_t most,
                               const handler_options& options) {
  refuse_while_running();
  routes_.add(type, std::move(handler), most, options);
  context_.sizing.set_minimum(most);
}

void worker_core::handle_other_types(batch_handler handler, std::size_t most) {
  refuse_while_running();
  routes_.add_default(std::move(handler), most, context_.options.handling);
  context_.sizing.set_minimum(most);
}

worker_report worker_core::run(const std::stop_token& stop, bool until_empty) {
  // It would hold lanes and deliver nothing.
  if (routes_.empty())
    throw error(errc::invalid_argument,
                "the worker has no handler, so it would deliver nothing; call handle or "
                "handle_batch before run");
  auto report = loop_.run(stop, until_empty);
  report.did = count();
  return report;
}

worker_numbers worker_core::count() const {
  auto totals = context_.metrics.totals();
  totals.in_flight = in_flight();
  return totals;
}

worker_health worker_core::health() const {
  const auto stats = backlog_.last();
  worker_health health{.locks = locks_.count(),
                       .depth = stats.pending + stats.following,
                       .parked = stats.parked,
                       .overdue = stats.overdue,
                       .open = routes_.open_breakers(context_.now())};
  const std::scoped_lock lock(context_.mutex);
  health.available = !context_.problem;
  if (context_.problem) health.problem = context_.problem->what();
  return health;
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
