#include <holdfast/error.hpp>
#include <holdfast/worker.hpp>

#include "outbox/worker/core.hpp"

#include <utility>

namespace HOLDFAST_NAMESPACE {

using detail::outbox::worker_core;

worker::worker(holdfast::outbox outbox, event_handler handler, worker_options options) {
  if (!handler) throw error(errc::invalid_argument, "the handler of the worker is empty");
  core_ = worker_core::create(std::move(outbox), std::move(handler), std::move(options));
}

worker::worker(holdfast::outbox outbox, worker_options options)
    : core_(worker_core::create(std::move(outbox), event_handler(), std::move(options))) {}

worker::~worker() {
  core_->stop();
  core_->abandon();
}

worker& worker::handle(const std::string& type, event_handler handler) {
  return handle(type, std::move(handler), core_->default_options());
}

worker& worker::handle(const std::string& type, event_handler handler,
                       const handler_options& options) {
  core_->handle(type, std::move(handler), options);
  return *this;
}

worker& worker::handle_batch(const std::string& type, batch_handler handler, std::size_t most) {
  return handle_batch(type, std::move(handler), most, core_->default_options());
}

worker& worker::handle_batch(const std::string& type, batch_handler handler, std::size_t most,
                             const handler_options& options) {
  core_->handle_batch(type, std::move(handler), most, options);
  return *this;
}

worker& worker::handle_other_types(batch_handler handler, std::size_t most) {
  core_->handle_other_types(std::move(handler), most);
  return *this;
}

worker_report worker::run(const std::stop_token& stop) { return core_->run(stop, false); }

worker_report worker::run_until_empty(const std::stop_token& stop) {
  return core_->run(stop, true);
}

worker_numbers worker::count() const { return core_->count(); }

worker_health worker::health() const { return core_->health(); }

}  // namespace HOLDFAST_NAMESPACE
