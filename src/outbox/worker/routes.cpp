#include "outbox/worker/routes.hpp"

#include <holdfast/error.hpp>

#include <algorithm>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::outbox {

namespace {

using std::chrono::milliseconds;

std::unique_ptr<handler_route> make_route(event_handler handler, const handler_options& options) {
  check_handler_options(options);
  auto route = std::make_unique<handler_route>();
  route->handler = std::move(handler);
  route->options = options;
  if (options.breaker) {
    route->guard = std::make_unique<breaker>(*options.breaker);
    route->open_time = std::max(std::chrono::duration_cast<milliseconds>(options.breaker->open_for),
                                milliseconds(1));
  }
  return route;
}

bool is_open(const handler_route& route, steady_time now) {
  return route.guard && route.guard->state(now) != breaker_state::closed;
}

}  // namespace

handler_routes::handler_routes(event_handler default_handler,
                               const handler_options& default_options) {
  if (default_handler) default_route_ = make_route(std::move(default_handler), default_options);
}

void handler_routes::add(const std::string& type, event_handler handler,
                         const handler_options& options) {
  if (type.empty()) throw error(errc::invalid_argument, "the type of a handler is empty");
  if (!handler) throw error(errc::invalid_argument, "the handler of type " + type + " is empty");
  auto route = make_route(std::move(handler), options);
  if (!routes_.try_emplace(type, std::move(route)).second)
    throw error(errc::duplicate, "the type " + type + " already has a handler");
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
