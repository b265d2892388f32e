#pragma once

#include "outbox/worker/context.hpp"
#include "outbox/worker/event_batch.hpp"
#include "outbox/worker/lane_locks.hpp"
#include "outbox/worker/routes.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::outbox {

/// The next runs of keys, claimed by the step that settled the last one.
struct continued_claim {
  claimed claim{};
  steady_time claimed_at{};
  std::chrono::milliseconds lease{};
};

/// Turns outcomes of handlers into settlements, and sends them to the outbox.
/// Thread-safety: every function may be called from any thread.
class event_settling {
 public:
  event_settling(worker_context& context, const handler_routes& routes, lane_locks& locks)
      : context_(context), routes_(routes), locks_(locks) {}

  /// Decides what happens to an event after its handler returned.
  [[nodiscard]] settlement decide(const event_batch& batch, std::size_t index,
                                  const outcome& outcome);
  /// Counts and reports events that a claim parked before a handler saw them.
  void report_parked(const claimed& claim);
  /// Sends the settlements and clears them. From now on the first `settled` events of the batch
  /// count as settled, even if the outbox could not be reached: then their leases end, and they are
  /// delivered again. With `claim_next_runs`, also claims the next runs of their keys.
  void settle(event_batch& batch, std::vector<settlement>& settlements, std::size_t settled,
              bool claim_next_runs, continued_claim& next);

 private:
  [[nodiscard]] std::chrono::milliseconds retry_delay(const backoff_options& backoff,
                                                      std::uint32_t attempts);
  /// Repeats after errors that may pass. Returns nothing if it gave up.
  [[nodiscard]] std::optional<settled> send(const event_batch& batch,
                                            const std::vector<settlement>& settlements,
                                            const std::optional<run_request>& next_runs);
  /// Updates the counters, and drops payloads of acknowledged events.
  void record(const event_batch& batch, const std::vector<settlement>& settlements,
              const std::vector<bool>& done);

  worker_context& context_;
  const handler_routes& routes_;
  lane_locks& locks_;
};

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
