#pragma once

#include <holdfast/version.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <thread>

namespace HOLDFAST_NAMESPACE::sql::odbc {

/// A thread on which calls are made that may never return.
/// Thread-safety: one caller at a time.
class call_thread {
 public:
  /// Throws errc::unavailable (transient) when too many calls hang already.
  call_thread();
  call_thread(const call_thread&) = delete;
  call_thread& operator=(const call_thread&) = delete;
  /// Waits for nobody: an idle thread ends at once, a hung one when its call returns.
  ~call_thread();

  /// Runs `work` there and waits for it; throws what it throws. False when it is not done by then: the thread is lost to us, and `work`
  /// must own all that it refers to.
  [[nodiscard]] bool run(std::function<void()> work, std::chrono::steady_clock::time_point until);
  [[nodiscard]] bool lost() const noexcept { return lost_; }
  /// In a child process the thread does not exist: forget it.
  void forget() noexcept;

  /// How many calls hang in this process.
  [[nodiscard]] static int hanging() noexcept;

 private:
  struct shared;
  static void serve(const std::shared_ptr<shared>& with);

  std::shared_ptr<shared> shared_;
  std::jthread thread_;
  bool lost_ = false;
};

}  // namespace HOLDFAST_NAMESPACE::sql::odbc
