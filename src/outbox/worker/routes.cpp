#include "outbox/worker/routes.hpp"

#include <holdfast/error.hpp>

#include "outbox/checks.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::outbox {

namespace {

using std::chrono::milliseconds;

std::unique_ptr<handler_route> make_route(const handler_options& options) {
  check_handler_options(options);
  auto route = std::make_unique<handler_route>();
  route->options = options;
  if (options.breaker) {
    route->guard = std::make_unique<breaker>(*options.breaker);
    route->open_time = std::max(std::chrono::duration_cast<milliseconds>(options.breaker->open_for),
                                milliseconds(1));
  }
  return route;
}

std::unique_ptr<handler_route> make_batch_route(batch_handler handler, std::size_t most,
                                                const handler_options& options,
                                                const std::string& subject) {
  if (!handler) throw error(errc::invalid_argument, "the handler of " + subject + " is empty");
  if (most == 0 || most > max_events_per_call)
    throw error(errc::invalid_argument,
                "the batches of " + subject + " must have 1 to 1000 events");
  auto route = make_route(options);
  route->handle_batch = std::move(handler);
  route->most = most;
  return route;
}

bool is_open(const handler_route& route, steady_time now) {
  return route.guard && route.guard->state(now) != breaker_state::closed;
}

}  // namespace

handler_routes::handler_routes(event_handler default_handler,
                               const handler_options& default_options) {
  has_parked_handlers_ = static_cast<bool>(default_options.on_parked);
  if (!default_handler) return;
  default_route_ = make_route(default_options);
  default_route_->handler = std::move(default_handler);
}

void handler_routes::add(const std::string& type, event_handler handler,
                         const handler_options& options) {
  if (!handler) throw error(errc::invalid_argument, "the handler of type " + type + " is empty");
  auto route = make_route(options);
  route->handler = std::move(handler);
  add(type, std::move(route));
}

void handler_routes::add(const std::string& type, batch_handler handler, std::size_t most,
                         const handler_options& options) {
  add(type, make_batch_route(std::move(handler), most, options, "type " + type));
}

void handler_routes::add_default(batch_handler handler, std::size_t most,
                                 const handler_options& options) {
  if (default_route_) throw error(errc::duplicate, "the worker already has a default handler");
  default_route_ = make_batch_route(std::move(handler), most, options, "other types");
}

void handler_routes::add(const std::string& type, std::unique_ptr<handler_route> route) {
  if (type.empty()) throw error(errc::invalid_argument, "the type of a handler is empty");
  const bool has_parked_handler = static_cast<bool>(route->options.on_parked);
  if (!routes_.try_emplace(type, std::move(route)).second)
    throw error(errc::duplicate, "the type " + type + " already has a handler");
  has_parked_handlers_ = has_parked_handlers_ || has_parked_handler;
}

std::vector<std::shared_ptr<event_batch>> handler_routes::take_waiting() const {
  std::vector<std::shared_ptr<event_batch>> batches;
  const auto move_from = [&](handler_route& route) {
    std::ranges::move(route.waiting, std::back_inserter(batches));
    route.waiting.clear();
  };
  for (const auto& [type, route] : routes_) move_from(*route);
  if (default_route_) move_from(*default_route_);
  return batches;
}

handler_route* handler_routes::find(const std::string& type) const {
  const auto route = routes_.find(type);
  return route != routes_.end() ? route->second.get() : default_route_.get();
}

std::vector<std::string> handler_routes::open_breakers(steady_time now) const {
  std::vector<std::string> types;
  for (const auto& [type, route] : routes_) {
    if (is_open(*route, now)) types.push_back(type);
  }
  if (default_route_ && is_open(*default_route_, now)) types.emplace_back("*");
  return types;
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
