#include "support/manual_executor.hpp"

#include "base/deadline.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace holdfast::test {

std::chrono::steady_clock::time_point manual_executor::now() const {
  return clock_ ? clock_->steady() : std::chrono::steady_clock::time_point::min();
}

void manual_executor::add(std::chrono::steady_clock::time_point when, task what) {
  const std::lock_guard lock(mutex_);
  const auto place = std::upper_bound(entries_.begin(), entries_.end(), when,
                                      [](auto time, const entry& one) { return time < one.when; });
  entries_.insert(place, {.when = when, .what = std::move(what)});
}

bool manual_executor::post(task what) {
  add(now(), std::move(what));
  return true;
}

bool manual_executor::post_after(std::chrono::steady_clock::duration delay, task what) {
  if (!clock_) throw std::logic_error("manual_executor: timers need a clock");
  add(detail::moment_after(now(), delay), std::move(what));
  return true;
}

std::size_t manual_executor::ready() const {
  const std::lock_guard lock(mutex_);
  const auto time = now();
  return static_cast<std::size_t>(std::count_if(
      entries_.begin(), entries_.end(), [&](const entry& one) { return one.when <= time; }));
}

std::size_t manual_executor::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

bool manual_executor::run(const std::function<std::size_t(std::size_t)>& choose) {
  task what;
  {
    const std::lock_guard lock(mutex_);
    const auto time = now();
    const auto end = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const entry& one) { return one.when > time; });
    if (end == entries_.begin()) return false;
    const auto chosen =
        entries_.begin() +
        static_cast<std::ptrdiff_t>(choose(static_cast<std::size_t>(end - entries_.begin())));
    what = std::move(chosen->what);
    entries_.erase(chosen);
  }
  what();
  return true;
}

bool manual_executor::run_one() {
  return run([](std::size_t) { return std::size_t{0}; });
}

bool manual_executor::run_one(std::mt19937_64& random) {
  // Not std::uniform_int_distribution: a seed must mean the same order with every standard library.
  return run([&](std::size_t count) { return static_cast<std::size_t>(random() % count); });
}

std::size_t manual_executor::run_all(std::size_t limit) {
  std::size_t count = 0;
  while (run_one()) {
    if (++count > limit)
      throw std::runtime_error("manual_executor: the tasks do not come to an end");
  }
  return count;
}

std::size_t manual_executor::run_all_shuffled(std::uint64_t seed, std::size_t limit) {
  std::mt19937_64 random(seed);
  std::size_t count = 0;
  while (run_one(random)) {
    if (++count > limit)
      throw std::runtime_error("manual_executor: the tasks do not come to an end");
  }
  return count;
}

std::size_t manual_executor::advance(std::chrono::microseconds time) {
  if (!clock_) throw std::logic_error("manual_executor: advance() needs a clock");
  const auto end = clock_->steady() + time;
  auto count = run_all();
  for (;;) {
    auto next = end;
    {
      const std::lock_guard lock(mutex_);
      if (!entries_.empty()) next = std::min(next, entries_.front().when);
    }
    clock_->advance(std::chrono::ceil<std::chrono::microseconds>(next - clock_->steady()));
    count += run_all();
    if (next >= end) return count;
  }
}

std::size_t manual_executor::clear() {
  const std::lock_guard lock(mutex_);
  return std::exchange(entries_, {}).size();
}

}  // namespace holdfast::test
