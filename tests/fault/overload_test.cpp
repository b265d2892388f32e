// More calls than an upstream or a store can answer: it keeps answering as many as it can, and
// everyone else gets an answer in time. Rates are compared with those of the same run.

#include <holdfast/failover.hpp>
#include <holdfast/store/memory.hpp>

#include "support/faulty_store.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <semaphore>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

struct rates {
  double live = 0;
  double stale = 0;
  double longest = 0;  // milliseconds
};

/// Calls from so many threads for a while, after a warm-up.
template <class Point>
rates call_from(const Point& point, int threads, std::chrono::milliseconds time) {
  std::atomic<std::uint64_t> live{0};
  std::atomic<std::uint64_t> stale{0};
  std::atomic<std::int64_t> longest{0};
  const auto counted_from = steady::now() + 1s;
  const auto end = counted_from + time;
  {
    std::vector<std::jthread> callers;
    callers.reserve(static_cast<std::size_t>(threads));
    for (int i = 0; i < threads; ++i)
      callers.emplace_back([&, i] {
        for (auto began = steady::now(); began < end; began = steady::now()) {
          const auto answer = point.try_call(i);
          const auto took = steady::now() - began;
          if (began >= counted_from && answer.has_value()) ++(answer->live() ? live : stale);
          auto seen = longest.load();
          while (seen < took.count() && !longest.compare_exchange_weak(seen, took.count())) {
          }
          // Who was refused at once asks again soon, as clients do.
          if (took < 5ms) std::this_thread::sleep_for(5ms);
        }
      });
  }
  const auto seconds = std::chrono::duration<double>(time).count();
  return {.live = static_cast<double>(live) / seconds,
          .stale = static_cast<double>(stale) / seconds,
          .longest = static_cast<double>(longest) / 1e6};
}

constexpr double lowest_share = 0.6;

/// The best of three measurements: other work on the machine lowers some, a defect lowers all.
template <class Measure>
double best_share(Measure measure) {
  double best = 0;
  for (int turn = 0; turn < 3 && best < lowest_share; ++turn) best = std::max(best, measure());
  return best;
}

TEST(Overload, OfTheThreadsLeavesTheLiveAnswers) {
  engine e(make_memory_store(), {.threads = {.count = 16}});
  const auto point = e.protect("p", {.expiry = 24h, .deadline = 400ms}, [](int n) {
    std::this_thread::sleep_for(100ms);
    return std::to_string(n);
  });
  const auto share = best_share([&] {
    const auto alone = call_from(point, 16, 2s);
    const auto crowded = call_from(point, 200, 3s);
    EXPECT_GT(crowded.stale, 0);
    return crowded.live / alone.live;
  });
  EXPECT_GE(share, lowest_share);
}

TEST(Overload, OfTheUpstreamLeavesTheLiveAnswers) {
  std::counting_semaphore<> servers(4);
  engine e(make_memory_store());
  const auto point = e.protect("p", {.expiry = 24h, .deadline = 400ms}, [&](int n) {
    servers.acquire();
    std::this_thread::sleep_for(50ms);
    servers.release();
    return std::to_string(n);
  });
  const auto share = best_share([&] {
    const auto alone = call_from(point, 4, 2s);
    return call_from(point, 200, 3s).live / alone.live;
  });
  EXPECT_GE(share, lowest_share);
}

TEST(Overload, OfTheStoreLeavesTheRecoveries) {
  const auto slow = std::make_shared<faulty_store>(make_memory_store());
  std::counting_semaphore<> connections(8);
  engine e(slow, {.storage = {.read_deadline = 400ms}});
  std::atomic<bool> down{false};
  const auto point = e.protect("p", {.expiry = 24h}, [&](int n) {
    if (down) throw std::runtime_error("down");
    return std::to_string(n);
  });
  for (int n = 0; n < 300; ++n) (void)point(n);
  ASSERT_TRUE(e.flush(steady::now() + 20s));
  down = true;
  slow->before = [&](faulty_store::operation operation, std::span<const entry>) {
    if (operation != faulty_store::operation::find) return;
    connections.acquire();
    std::this_thread::sleep_for(50ms);
    connections.release();
  };
  const auto share = best_share([&] {
    const auto alone = call_from(point, 8, 2s);
    return call_from(point, 300, 3s).stale / alone.stale;
  });
  EXPECT_GE(share, lowest_share);
}

}  // namespace
}  // namespace holdfast::test
