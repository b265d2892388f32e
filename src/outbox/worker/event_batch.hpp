#pragma once

#include <holdfast/outbox/operations.hpp>

#include "base/breaker.hpp"
#include "outbox/worker/context.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::outbox {

struct handler_route;

/// One call of a handler.
struct handler_call {
  handler_route* route = nullptr;
  breaker::ticket permission{};
  /// When stop is requested, and when its thread is given up. max(): never.
  steady_time limit = steady_time::max();
  steady_time give_up_at = steady_time::max();
  bool stop_requested = false;
  /// Another thread continues with the batch. The outcome of this call does not count any more.
  bool given_up = false;
};

/// Claimed events that one thread handles one after the other and settles together. A claim becomes
/// one or more batches; the events of a key stay in one of them.
///
///     events:   e0  e1  e2  e3  e4  e5
///                       ^       ^
///                       settled current
struct event_batch {
  std::size_t lane = 0;
  holdfast::fence token = 0;
  std::vector<claimed_event> events{};
  /// Events that follow these runs; see claimed::left_out.
  std::vector<std::pair<std::string, std::string>> left_out{};
  /// When the claim was sent, by the clock of the worker.
  steady_time claimed_at{};
  /// When it was executed, by the clock of the store.
  timestamp store_time{};

  /// Used by the thread that handles the batch. If it is given up, the thread that replaces it
  /// continues here.
  struct progress {
    bool started = false;
    /// The first event that was not handled.
    std::size_t next = 0;
    /// The rest of the run of this key is not delivered by this batch.
    std::string ended_key{};
    /// Of the events after `settled`.
    std::vector<settlement> settlements{};
    /// Number of events that were handled since the last settlement, and how long it took.
    std::size_t handled = 0;
    std::chrono::nanoseconds handle_time{};
    steady_time settled_at{};
  };
  progress state{};

  /// Guards the rest: the thread that renews leases reads it while a handler runs.
  std::mutex mutex{};
  /// The handler that runs now; null between handlers.
  std::shared_ptr<handler_call> call{};
  /// Index of the event that is being handled, and how many events its handler got.
  std::size_t current = 0;
  std::size_t current_count = 1;
  /// Number of events at the front that are settled.
  std::size_t settled = 0;
  /// Settlements are being sent. Until the answer arrives, an event whose lease cannot be extended
  /// is not lost: it may be settled.
  bool settling = false;
  /// For each event: its lease is lost.
  std::vector<bool> lost{};
  /// Requests stop from the current handler.
  std::stop_source stop_source{};
  steady_time renew_at{};
  steady_time lease_end{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
