#pragma once

/// \file
/// Long polls: claims that wait until an event is due.
///
///   loop thread      `start` queues the first try of a claim
///   hf-claims (4)    first tries; claims for clients that are gone are released
///   hf-lane          one for each lane that has had long polls: waits for the lane's signal, turns
///                    expired tickets into events, and claims for all polls of the lane in turn
///
/// A poll is answered once, by the thread that takes it out of its lane. If the client is gone, the
/// events that were claimed for it become due again at once, in their order.

#include <holdfast/outbox.hpp>
#include <holdfast/version.hpp>

#include "serve/api/endpoint.hpp"
#include "serve/api/services.hpp"
#include "serve/http_server.hpp"

#include <chrono>
#include <cstddef>
#include <memory>

namespace HOLDFAST_NAMESPACE::detail::serve {

struct claim_polls_options {
  /// Claims in progress, with those that wait. Beyond it: 503.
  std::size_t max_polls = 1'024;
  /// A lane is claimed at least this often while polls wait, because the lease of another worker
  /// may have ended.
  std::chrono::milliseconds idle{1'000};
};

/// The claims of all outboxes.
/// Thread-safety: every function may be called from any thread.
class claim_polls {
 public:
  explicit claim_polls(services& shared, claim_polls_options options = {});
  /// As `close`, without a limit.
  ~claim_polls();
  claim_polls(const claim_polls&) = delete;
  claim_polls& operator=(const claim_polls&) = delete;

  /// Claims, and waits for events at most for `wait`. Does not block.
  void start(outbox_service& service, claim_request claim, std::chrono::milliseconds wait,
             std::shared_ptr<api_request> request, responder answer);
  /// Answers all polls that wait, empty. Later claims do not wait.
  void drain();
  /// As `drain`; then waits for the threads. Returns false if one still waits for its database at
  /// the deadline.
  [[nodiscard]] bool close(std::chrono::steady_clock::time_point deadline);
  /// Claims in progress.
  [[nodiscard]] std::size_t count() const noexcept;

 private:
  struct state;
  std::shared_ptr<state> state_;
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve
