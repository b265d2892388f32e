#pragma once

#include <holdfast/outbox/operations.hpp>

#include "outbox/worker/context.hpp"

#include <cstddef>
#include <mutex>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::outbox {

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

  /// Guards the rest: the thread that renews leases reads it while a handler runs.
  std::mutex mutex{};
  /// Index of the event that is being handled.
  std::size_t current = 0;
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
