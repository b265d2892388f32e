#include "support/virtual_clock.hpp"

#include <stdexcept>

namespace holdfast::test {
namespace {

template <class Duration>
void add(std::atomic<Duration>& time, Duration difference) noexcept {
  auto before = time.load();
  while (!time.compare_exchange_weak(before, before + difference));
}

}  // namespace

void virtual_clock::advance(std::chrono::microseconds time) {
  if (time.count() < 0)
    throw std::invalid_argument(
        "virtual_clock::advance: time does not run backwards; jump() sets the wall clock");
  add(wall_, time);
  add(steady_, std::chrono::steady_clock::duration(time));
}

void virtual_clock::jump(std::chrono::microseconds difference) noexcept { add(wall_, difference); }

}  // namespace holdfast::test
