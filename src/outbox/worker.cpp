#include <holdfast/error.hpp>
#include <holdfast/worker.hpp>

#include "outbox/worker_core.hpp"

#include <utility>

namespace HOLDFAST_NAMESPACE {

worker::worker(holdfast::outbox from, event_handler handler, worker_options options) {
  if (!handler) throw error(errc::invalid_argument, "a worker needs something to call for each event");
  core_ = std::make_shared<core>(std::move(from), std::move(handler), std::move(options));
}

worker::worker(holdfast::outbox from, worker_options options)
    : core_(std::make_shared<core>(std::move(from), event_handler(), std::move(options))) {}

worker::~worker() {
  core_->stop();
  core_->abandon();
}

worker& worker::on(const std::string& type, event_handler handler) { return on(type, std::move(handler), core_->defaults()); }

worker& worker::on(const std::string& type, event_handler handler, const handler_options& how) {
  core_->on(type, std::move(handler), how);
  return *this;
}

worker_report worker::run(const std::stop_token& stop) { return core_->run(stop, false); }
worker_report worker::run_until_empty(const std::stop_token& stop) { return core_->run(stop, true); }
worker_numbers worker::count() const { return core_->count(); }
worker_health worker::health() const { return core_->health(); }

}  // namespace HOLDFAST_NAMESPACE
