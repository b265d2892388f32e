#pragma once

/// \file
/// The threads that request blocks from a store, for all sequences on it.

#include <holdfast/error.hpp>
#include <holdfast/log.hpp>
#include <holdfast/sequence/block_store.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace HOLDFAST_NAMESPACE::detail::sequence {

/// A sequence, as the refiller sees it.
/// Thread-safety: called from the refiller's threads, one call at a time for each client.
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

/// All requests that arrive while a call to the store is under way go into the next call, as long
/// as the call is quick. A counter that is locked, a node that hangs or a slow request does not
/// stop the others: they get another thread, up to `max_threads`. Failed requests are repeated
/// after a pause of 10 ms to 1 s.
///
/// Thread-safety: every function may be called from any thread. The first thread starts with the
/// first request. Threads that are not needed any more end.
class refiller {
 public:
  /// Each may hold a connection of the pool, so this is less than half of the default pool.
  static constexpr std::size_t max_threads = 8;

  explicit refiller(refiller_settings settings);
  refiller(const refiller&) = delete;
  refiller& operator=(const refiller&) = delete;
  /// Waits up to a second for the threads. A thread that hangs in the store is detached, and ends
  /// when the store answers.
  ~refiller();

  /// Queues a client. A client must not be queued again before it was granted a block or has failed
  /// for good. Throws errc::unavailable (transient) if there is no thread and none can be started.
  void request(std::shared_ptr<refill_client> client);

  /// Removes a client from the queue. Returns false if it is not queued, or is being served.
  bool cancel(const refill_client& client);

 private:
  struct state;
  std::shared_ptr<state> state_;  // shared with the threads, which may outlive this object
};

}  // namespace HOLDFAST_NAMESPACE::detail::sequence
