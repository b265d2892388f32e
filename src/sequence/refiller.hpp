#pragma once

/// \file
/// The thread that requests blocks from a store, for all sequences on it.

#include <holdfast/error.hpp>
#include <holdfast/log.hpp>
#include <holdfast/sequence/block_store.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

namespace HOLDFAST_NAMESPACE::detail::sequence {

/// A sequence, as the refiller sees it.
/// Thread-safety: called from the refiller's thread, one call at a time.
class refill_client {
 public:
  virtual ~refill_client() = default;
  [[nodiscard]] virtual const std::string& name() const noexcept = 0;
  /// The request to send now. A count of 0 means that no block is needed any more.
  [[nodiscard]] virtual block_request next_request() = 0;
  virtual void on_granted(block_grant grant, std::chrono::microseconds latency) noexcept = 0;
  /// Returns true if the refiller is to try again.
  [[nodiscard]] virtual bool on_failed(const error& reason) noexcept = 0;
};

struct refiller_settings {
  std::shared_ptr<block_store> store;
  std::shared_ptr<const logger> log;
  /// Called before the first request, until it does not throw.
  std::function<void()> before_first{};
};

/// One thread for each store. All requests that arrive while it is busy go into its next call to
/// the store. Failed requests are repeated after a pause of 10 ms to 1 s.
///
/// Thread-safety: every function may be called from any thread. The thread starts with the first
/// request.
class refiller {
 public:
  explicit refiller(refiller_settings settings);
  refiller(const refiller&) = delete;
  refiller& operator=(const refiller&) = delete;
  /// Waits up to a second for the thread. A thread that hangs in the store is detached, and ends
  /// when the store answers.
  ~refiller();

  /// Queues a client. A client must not be queued again before it was granted a block or has failed
  /// for good. Throws errc::unavailable (transient) if the thread cannot be started.
  void request(std::shared_ptr<refill_client> client);

  /// Removes a client from the queue. Returns false if it is not queued, or is being served.
  bool cancel(const refill_client& client);

 private:
  struct state;
  std::shared_ptr<state> state_;  // shared with the thread, which may outlive this object
  std::jthread thread_{};         // guarded by the mutex of the state
};

}  // namespace HOLDFAST_NAMESPACE::detail::sequence
