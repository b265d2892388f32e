#pragma once

/// \file
/// Pauses between retries: they double with each failure up to a limit (exponential back-off), and
/// they are random, so that callers that failed together do not retry together (jitter).

#include <holdfast/version.hpp>

#include <algorithm>
#include <chrono>
#include <random>

namespace HOLDFAST_NAMESPACE::detail {

/// `first`, doubled `doublings` times, at most `longest`. Never overflows.
template <class Duration>
[[nodiscard]] constexpr Duration doubled_pause(Duration first, unsigned doublings,
                                               Duration longest) noexcept {
  Duration pause = std::min(first, longest);
  for (; doublings > 0 && pause < longest && pause > Duration::zero(); --doublings)
    pause = pause > longest / 2 ? longest : pause * 2;
  return pause;
}

/// A random duration from `shortest` to `longest`.
template <class Duration, class Random>
[[nodiscard]] Duration random_duration(Duration shortest, Duration longest, Random& random) {
  std::uniform_int_distribution<typename Duration::rep> distribution(
      shortest.count(), std::max(shortest, longest).count());
  return Duration(distribution(random));
}

/// A random duration from half of the pause to all of it.
template <class Duration, class Random>
[[nodiscard]] Duration with_jitter(Duration pause, Random& random) {
  return random_duration(pause / 2, pause, random);
}

/// A generator for jitter. Each thread has its own.
[[nodiscard]] inline std::minstd_rand& thread_random() {
  thread_local std::minstd_rand random(std::random_device{}());
  return random;
}

}  // namespace HOLDFAST_NAMESPACE::detail
