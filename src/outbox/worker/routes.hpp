#pragma once

/// \file
/// The handlers of a worker, by type of event.

#include <holdfast/worker.hpp>

#include "base/breaker.hpp"
#include "outbox/worker/context.hpp"

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::outbox {

struct handler_route {
  event_handler handler;
  handler_options options;
  /// Null if the options do not have one.
  std::unique_ptr<breaker> guard{};
  /// How long the breaker stays open.
  std::chrono::milliseconds open_time{};
};

/// Thread-safety: `add` only while the worker does not run; otherwise every function may be called
/// from any thread.
class handler_routes {
 public:
  /// An empty default handler leaves events of other types to other workers.
  handler_routes(event_handler default_handler, const handler_options& default_options);

  /// Throws errc::invalid_argument, and errc::duplicate if the type has a handler.
  void add(const std::string& type, event_handler handler, const handler_options& options);
  /// Returns the route of a type of events, or null if there is no handler for it.
  [[nodiscard]] handler_route* find(const std::string& type) const;
  /// Types whose breaker is not closed. `*` is the default handler.
  [[nodiscard]] std::vector<std::string> open_breakers(steady_time now) const;

 private:
  std::unique_ptr<handler_route> default_route_{};
  std::map<std::string, std::unique_ptr<handler_route>, std::less<>> routes_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
