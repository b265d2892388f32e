#pragma once

/// \file
/// Calls with a deadline: the upstream runs on a thread of the engine and owns everything it needs.
/// The caller waits until the deadline.

#include "failover/point_core.hpp"

namespace HOLDFAST_NAMESPACE::detail::failover {

/// What the caller of a call shares with the thread that runs it.
///
///     running --> answered --> ended        the caller waits
///        |  \         |
///        |  refused   |                     no thread was free in time
///     abandoned     taken                   the caller left at the deadline
struct handover {
  enum class phase : std::uint8_t {
    running,    ///< waiting for a thread, or running
    answered,   ///< the value is encoded and is being put; the call is not used any more
    ended,      ///< the call has its result
    refused,    ///< the upstream was not called
    abandoned,  ///< the caller left before there was an answer
    taken       ///< the caller left with the answer while it was being put
  };
  std::mutex mutex{};
  std::condition_variable changed{};
  phase state = phase::running;
  std::exception_ptr error{};
  std::stop_source stop{};
  /// The current attempt; null between attempts.
  std::shared_ptr<call_scheduler::job> job{};
  /// The breaker has the result, from the caller that left or from the thread of the call.
  std::atomic<bool> breaker_informed{false};
};

/// Runs a call on a thread of the engine and waits for it until the deadline. `caller_call` gets
/// the result; so does `shared`, unless it is null.
void run_on_executor(const std::shared_ptr<point_core>& point,
                     const std::shared_ptr<call_base>& call, call_base& caller_call,
                     shared_result* shared);

}  // namespace HOLDFAST_NAMESPACE::detail::failover
