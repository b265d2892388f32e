#pragma once

/// \file
/// The turn of the outlook that asks the store. A store that hangs keeps one thread, not one for
/// each question.

#include <holdfast/version.hpp>

#include <condition_variable>
#include <cstddef>
#include <mutex>

namespace HOLDFAST_NAMESPACE::detail::failover {

/// Thread-safety: every function may be called from any thread.
struct outlook_turn {
  std::mutex mutex{};
  std::condition_variable changed{};
  bool busy = false;
  std::size_t next_point = 0;  ///< of the gauges

  void give_back() {
    {
      const std::scoped_lock lock(mutex);
      busy = false;
    }
    changed.notify_all();
  }
};

}  // namespace HOLDFAST_NAMESPACE::detail::failover
