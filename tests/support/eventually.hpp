#pragma once

#include <chrono>
#include <thread>

namespace holdfast::test {

/// Waits for what must become true; false when it did not. The limit is for machines that have
/// hardly any time for the test: a green test does not wait for it.
template <class Condition>
bool eventually(Condition condition, std::chrono::milliseconds timeout = std::chrono::seconds(60)) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

}  // namespace holdfast::test
