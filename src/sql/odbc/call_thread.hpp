#pragma once

#include <holdfast/version.hpp>

#include "sql/public_names.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <thread>

namespace HOLDFAST_NAMESPACE::detail::sql::odbc {

/// A thread for calls that may never return.
///
/// Thread-safety: one caller at a time.
class call_thread {
 public:
  /// Throws errc::unavailable (transient) if too many calls hang already.
  call_thread();
  call_thread(const call_thread&) = delete;
  call_thread& operator=(const call_thread&) = delete;
  /// Does not wait for a call: an idle thread ends immediately, a hung one when its call returns.
  ~call_thread();

  /// Runs `work` on the thread and waits for it. Rethrows its exception. Returns false at the
  /// deadline: the thread is abandoned then, and `work` must own everything that it refers to.
  [[nodiscard]] bool run(std::function<void()> work,
                         std::chrono::steady_clock::time_point deadline);
  /// Whether a call hangs or hung on the thread. It cannot be used any more.
  [[nodiscard]] bool lost() const noexcept { return lost_; }
  /// For a forked child, where the thread does not exist: the destructor will not join it.
  void forget() noexcept;

  /// The number of calls that hang in this process.
  [[nodiscard]] static int hanging() noexcept;

 private:
  struct shared_state;
  static void serve(const std::shared_ptr<shared_state>& state);

  std::shared_ptr<shared_state> state_;
  std::jthread thread_;
  bool lost_ = false;
};

}  // namespace HOLDFAST_NAMESPACE::detail::sql::odbc
