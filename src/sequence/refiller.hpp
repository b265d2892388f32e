#pragma once

#include <holdfast/error.hpp>
#include <holdfast/log.hpp>
#include <holdfast/sequence/block_store.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail {

/// Somebody who wants blocks.
/// Thread-safety: called from the refiller's thread, one call at a time.
class refill_client {
 public:
  virtual ~refill_client() = default;
  [[nodiscard]] virtual const std::string& name() const noexcept = 0;
  /// What to ask for, decided as late as possible. A count of 0: nothing any more.
  [[nodiscard]] virtual block_request wanted() = 0;
  virtual void granted(block_grant what, std::chrono::microseconds took) noexcept = 0;
  /// Returns whether to try again, later.
  [[nodiscard]] virtual bool failed(const error& why) noexcept = 0;
};

/// The one thread of a store: whatever was asked for while it was busy goes into the next call.
/// Thread-safety: every function may be called from any thread. It starts its thread with the first question.
class refiller {
 public:
  struct settings {
    std::shared_ptr<block_store> store;
    std::shared_ptr<const logger> log;
    std::function<void()>
        before_first{};  ///< called until it does not throw, before anything is asked for: the look at the store's settings
  };
  explicit refiller(settings how);
  refiller(const refiller&) = delete;
  refiller& operator=(const refiller&) = delete;
  /// Waits a second for the thread; one that hangs in the store is let go, and ends by itself.
  ~refiller();

  /// A client is in the queue once at most: it says when it was answered.
  void ask(std::shared_ptr<refill_client> who);

  /// Takes a client that waits out of the queue. False: it is not there, or is being served.
  bool forget(const refill_client& who);

  /// Calls to the store's `allocate`.
  [[nodiscard]] std::uint64_t calls() const noexcept;

 private:
  struct state;
  std::shared_ptr<state> state_;  // the thread's, too
  std::jthread thread_{};         // under the state's lock
};

}  // namespace HOLDFAST_NAMESPACE::detail
