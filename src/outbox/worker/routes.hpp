#pragma once

/// \file
/// The handlers of a worker, by type of event.

#include <holdfast/worker.hpp>

#include "base/breaker.hpp"
#include "outbox/worker/context.hpp"
#include "outbox/worker/event_batch.hpp"

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::outbox {

struct handler_route {
  /// One of the two is set.
  event_handler handler{};
  batch_handler handle_batch{};
  /// Maximum number of events of one call.
  std::size_t most = 1;
  handler_options options{};
  /// Null if the options do not have one.
  std::unique_ptr<breaker> guard{};
  /// How long the breaker stays open.
  std::chrono::milliseconds open_time{};
  /// Handlers that run now, and batches that wait for one of them to return, if the options limit
  /// their number. Guarded by the mutex of the worker.
  std::size_t running = 0;
  std::deque<std::shared_ptr<event_batch>> waiting{};

  /// Events of this type are not mixed with others in a batch.
  [[nodiscard]] bool has_own_batches() const { return options.concurrency > 0 || handle_batch; }
};

/// Thread-safety: `add` only while the worker does not run; otherwise every function may be called
/// from any thread.
class handler_routes {
 public:
  /// An empty default handler leaves events of other types to other workers.
  handler_routes(event_handler default_handler, const handler_options& default_options);

  /// Throws errc::invalid_argument, and errc::duplicate if the type has a handler.
  void add(const std::string& type, event_handler handler, const handler_options& options);
  void add(const std::string& type, batch_handler handler, std::size_t most,
           const handler_options& options);
  /// Throws errc::duplicate if there is a default handler.
  void add_default(batch_handler handler, std::size_t most, const handler_options& options);
  /// Removes and returns the batches that wait because of a limit of their type. The caller holds
  /// the mutex of the worker.
  [[nodiscard]] std::vector<std::shared_ptr<event_batch>> take_waiting() const;
  [[nodiscard]] bool empty() const noexcept { return !default_route_ && routes_.empty(); }
  /// Returns the route of a type of events, or null if there is no handler for it.
  [[nodiscard]] handler_route* find(const std::string& type) const;
  /// One call of the route may have events of several types.
  [[nodiscard]] bool mixes_types(const handler_route& route) const noexcept {
    return &route == default_route_.get();
  }
  /// A handler for parked events was added for a type.
  [[nodiscard]] bool has_parked_handlers() const noexcept { return has_parked_handlers_; }
  /// Types whose breaker is not closed. `*` is the default handler.
  [[nodiscard]] std::vector<std::string> open_breakers(steady_time now) const;

 private:
  void add(const std::string& type, std::unique_ptr<handler_route> route);

  std::unique_ptr<handler_route> default_route_{};
  std::map<std::string, std::unique_ptr<handler_route>, std::less<>> routes_{};
  bool has_parked_handlers_ = false;
};

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
