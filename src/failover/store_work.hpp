#pragma once

#include <holdfast/version.hpp>

#include "failover/call_scheduler.hpp"

#include <atomic>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::failover {

/// State of work on the store that runs on another thread while callers wait. It outlives callers
/// that stop waiting. Derived classes add the results, which a caller reads only after `ended`, or
/// with the mutex locked.
struct store_work {
  std::mutex mutex{};
  std::condition_variable changed{};
  std::exception_ptr error{};        ///< thrown by the work
  std::atomic<bool> started{false};  ///< on a thread
  bool ended = false;
  std::atomic<bool> refused{false};    ///< ended because no thread was free in time
  std::size_t callers = 1;             ///< that wait
  std::atomic<bool> abandoned{false};  ///< no caller waits any more
  std::vector<std::shared_ptr<call_scheduler::job>> jobs{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::failover
