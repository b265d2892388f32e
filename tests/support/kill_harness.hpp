#pragma once

/// \file
/// Kills workers with -9 at random moments, and starts them again.

#include "support/child_process.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace holdfast::test {

struct kill_options {
  std::size_t workers = 1;  ///< processes at the same time
  std::size_t kills = 20;   ///< in all
  /// If set, the kills go on until it returns true: for something that happens meanwhile
  std::function<bool()> finished{};
  /// A worker lives at least that long, counted from its first sign of life
  std::chrono::microseconds shortest{0};
  std::chrono::microseconds longest{20'000};  ///< and at most that long
  /// 0: a new one each time; HOLDFAST_SEED=n in the environment wins over both
  std::uint64_t seed = 0;
  std::filesystem::path log{};  ///< what the workers write; empty: thrown away
  /// For a worker's first sign of life, and for its end
  std::chrono::milliseconds patience = std::chrono::seconds(60);
};

struct kill_report {
  std::uint64_t seed = 0;
  std::size_t started = 0;
  std::size_t killed = 0;  ///< with -9, while they worked
  /// Workers that ended by themselves with anything but exit code 0
  std::vector<std::string> failures{};
};

/// Runs workers (see worker.hpp) and kills them. The seed is printed, so that a failing run can be
/// repeated: the moments are the same, what the workers have reached by then is up to the machine.
///
/// A worker's life is counted from the moment it calls worker_is_alive(): start-up, which dwarfs
/// the rest, would otherwise be where most kills hit. The last generation of workers is not killed
/// but told to finish: worker_should_stop() becomes true for them. Thread-safety: one thread.
class kill_harness {
 public:
  explicit kill_harness(kill_options options = {});

  /// `arguments` are those of the worker, told its number (0..workers-1) and its generation.
  kill_report run(const std::string& worker,
                  const std::function<std::vector<std::string>(std::size_t number,
                                                               std::size_t generation)>& arguments);
  kill_report run(const std::string& worker, const std::vector<std::string>& arguments);

 private:
  kill_options options_;
  std::uint64_t seed_;
};

/// In a worker: from now on it may be killed. Call it once, when set up.
void worker_is_alive();
/// In a worker: has the harness had enough? Finish what is under way and return.
[[nodiscard]] bool worker_should_stop();

}  // namespace holdfast::test
