#pragma once

#include <holdfast/executor.hpp>

#include "support/virtual_clock.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <vector>

namespace holdfast::test {

/// Tasks that run only when a test says so, on the test's own thread: a race becomes an order, and
/// a seed gives the same order again. Thread-safety: post from any thread, from within tasks, too;
/// run from one at a time. A task that throws ends the run: the exception leaves, the task is gone,
/// the others stay.
class manual_executor final : public holdfast::executor {
 public:
  /// Timers need a clock, which advance() moves.
  explicit manual_executor(std::shared_ptr<virtual_clock> clock = nullptr)
      : clock_(std::move(clock)) {}

  /// True: it takes every task.
  bool post(task what) override;
  /// Becomes ready when the clock's steady time has advanced by the delay. True, as for post.
  bool post_after(std::chrono::steady_clock::duration delay, task what) override;

  /// Tasks that could run now; all tasks, timers included.
  [[nodiscard]] std::size_t ready() const;
  [[nodiscard]] std::size_t size() const;

  /// The oldest ready task. False when there is none.
  bool run_one();
  /// One ready task, chosen by the generator.
  bool run_one(std::mt19937_64& random);
  /// Until none is ready, those posted meanwhile included. Gives how many ran. More than `limit` is
  /// a test that does not end: throws std::runtime_error.
  std::size_t run_all(std::size_t limit = 1'000'000);
  /// The same in an order that the seed decides.
  std::size_t run_all_shuffled(std::uint64_t seed, std::size_t limit = 1'000'000);
  /// Moves the clock on, from one timer to the next, and runs what gets ready on the way at its own
  /// time.
  std::size_t advance(std::chrono::microseconds time);
  /// Forgets all tasks, as a process that is killed would. Gives how many.
  std::size_t clear();

 private:
  struct entry {
    std::chrono::steady_clock::time_point when{};
    task what{};
  };

  void add(std::chrono::steady_clock::time_point when, task what);
  [[nodiscard]] std::chrono::steady_clock::time_point now() const;
  bool run(const std::function<std::size_t(std::size_t)>& choose);

  mutable std::mutex mutex_{};
  std::shared_ptr<virtual_clock> clock_;
  std::vector<entry> entries_{};  // in the order of their time, then of their arrival
};

}  // namespace holdfast::test
