#include "bench/overload.hpp"

#include <holdfast/failover.hpp>
#include <holdfast/store/memory.hpp>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <latch>
#include <mutex>
#include <semaphore>
#include <string>
#include <thread>

namespace holdfast::bench {

namespace {

using steady = std::chrono::steady_clock;
using milliseconds = std::chrono::duration<double, std::milli>;

constexpr auto warm_up = std::chrono::seconds(1);
/// Half of the keys have a stored answer; the other half have none to serve.
constexpr int key_count = 1'000;

struct tally {
  std::atomic<std::uint64_t> live{0};
  std::atomic<std::uint64_t> stale{0};
  std::atomic<std::uint64_t> refused{0};
  std::mutex mutex{};
  std::vector<double> latencies{};
};

/// Makes calls at a fixed rate until the end, whether or not the earlier ones were answered.
template <class Point>
void offer(const Point& point, double rate, steady::time_point begin, steady::time_point end,
           std::chrono::milliseconds deadline, tally& results) {
  const auto measured_from = begin + warm_up;
  // Each caller waits for its answer, so there are as many as can be waiting at once.
  const auto callers =
      static_cast<std::size_t>(rate * milliseconds(deadline).count() / 1000 * 1.5) + 8;
  const std::chrono::duration<double> interval(1 / rate);
  std::atomic<std::uint64_t> next{0};
  std::vector<std::jthread> threads;
  threads.reserve(callers);
  for (std::size_t i = 0; i < callers; ++i)
    threads.emplace_back([&] {
      std::vector<double> latencies;
      for (;;) {
        const auto number = next++;
        const auto due = begin + std::chrono::duration_cast<steady::duration>(
                                     interval * static_cast<double>(number));
        if (due >= end) break;
        std::this_thread::sleep_until(due);
        const auto called = steady::now();
        const auto answer = point.try_call(static_cast<int>(number % key_count));
        const milliseconds took = steady::now() - called;
        if (due < measured_from) continue;
        latencies.push_back(took.count());
        ++(!answer.has_value() ? results.refused : answer->live() ? results.live : results.stale);
      }
      const std::scoped_lock lock(results.mutex);
      results.latencies.insert(results.latencies.end(), latencies.begin(), latencies.end());
    });
}

overload_result measure_factor(const overload_options& options, double factor) {
  overload_result result{.factor = factor};
  result.capacity =
      static_cast<double>(options.servers) * 1000 / milliseconds(options.service_time).count();
  result.offered = factor * result.capacity;
  std::counting_semaphore<> servers(static_cast<std::ptrdiff_t>(options.servers));
  engine e(make_memory_store());
  const auto point = e.protect(
      "overloaded", {.expiry = std::chrono::hours(1), .deadline = options.deadline}, [&](int n) {
        servers.acquire();
        std::this_thread::sleep_for(options.service_time);
        servers.release();
        return std::to_string(n);
      });
  for (int n = 0; n < key_count; n += 2) point.prime(n, std::to_string(n));
  tally results;
  const auto begin = steady::now();
  offer(point, result.offered, begin, begin + warm_up + options.duration, options.deadline,
        results);
  const auto seconds = std::chrono::duration<double>(options.duration).count();
  result.live = static_cast<double>(results.live) / seconds;
  result.stale = static_cast<double>(results.stale) / seconds;
  result.refused = static_cast<double>(results.refused) / seconds;
  result.p50 = quantile(results.latencies, 0.5);
  result.p99 = quantile(results.latencies, 0.99);
  result.longest = *std::ranges::max_element(results.latencies);
  return result;
}

}  // namespace

std::vector<row> measure_beside_hung(std::chrono::milliseconds duration) {
  using namespace std::chrono_literals;
  constexpr int healthy_callers = 8;
  constexpr int hung_callers = 100;
  constexpr int rounds = 5;
  std::latch released(1);
  engine e(make_memory_store());
  const auto hung = e.protect("hung", {.deadline = 250ms}, [&](int n) {
    released.wait();
    return std::to_string(n);
  });
  const auto healthy = e.protect("healthy", {.deadline = 250ms}, [](int n) {
    std::this_thread::sleep_for(5ms);
    return std::to_string(n);
  });
  struct figures {
    std::vector<double> rates{};
    std::vector<double> latencies{};  // milliseconds
  };
  const auto measure_healthy = [&](figures& measured) {
    std::mutex mutex;
    std::size_t live = 0;
    const auto end = steady::now() + duration;
    {
      std::vector<std::jthread> callers;
      for (int i = 0; i < healthy_callers; ++i)
        callers.emplace_back([&, i] {
          std::vector<double> latencies;
          for (auto called = steady::now(); called < end; called = steady::now()) {
            const auto answer = healthy.try_call(i);
            if (answer.has_value() && answer->live())
              latencies.push_back(milliseconds(steady::now() - called).count());
          }
          const std::scoped_lock lock(mutex);
          live += latencies.size();
          measured.latencies.insert(measured.latencies.end(), latencies.begin(), latencies.end());
        });
    }
    measured.rates.push_back(static_cast<double>(live) /
                             std::chrono::duration<double>(duration).count());
  };
  figures alone;
  figures beside;
  for (int round = 0; round < rounds; ++round) {
    measure_healthy(alone);
    std::atomic<bool> stop{false};
    std::vector<std::jthread> callers;
    for (int i = 0; i < hung_callers; ++i)
      callers.emplace_back([&, i] {
        while (!stop) {
          (void)hung.try_call(i);
          std::this_thread::sleep_for(10ms);
        }
      });
    measure_healthy(beside);
    stop = true;
  }
  released.count_down();
  constexpr double bar = 0.95;
  return {make_row("hung.rate_beside", median(beside.rates), median(alone.rates), "/s", bar,
                   bound::at_least),
          make_row("hung.latency_beside", median(beside.latencies), median(alone.latencies), "ms",
                   1 / bar)};
}

std::vector<overload_result> measure_overload(const overload_options& options) {
  std::vector<overload_result> results;
  results.reserve(options.factors.size());
  for (const auto factor : options.factors) results.push_back(measure_factor(options, factor));
  return results;
}

std::vector<row> overload_rows(const std::vector<overload_result>& results) {
  std::vector<row> rows;
  rows.reserve(results.size());
  for (const auto& result : results)
    rows.push_back(
        make_row("overload.live_" + std::to_string(static_cast<int>(result.factor)) + "x",
                 result.live, result.capacity, "/s", 0.9, bound::at_least));
  return rows;
}

std::string overload_table(const std::vector<overload_result>& results) {
  std::string table =
      "| offered | of the capacity | live | stale | refused | p50 | p99 | longest |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- |\n";
  for (const auto& result : results) {
    char line[200];
    std::snprintf(line, sizeof line,
                  "| %.0f/s | %.0fx | %.0f/s | %.0f/s | %.0f/s | %.0f ms | %.0f ms | %.0f ms |\n",
                  result.offered, result.factor, result.live, result.stale, result.refused,
                  result.p50, result.p99, result.longest);
    table += line;
  }
  return table;
}

}  // namespace holdfast::bench
