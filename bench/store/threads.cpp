#include "bench/store/threads.hpp"

#include "bench/store/traffic.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <latch>
#include <thread>
#include <vector>

namespace holdfast::bench {

namespace {

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

constexpr std::size_t thread_count = 200;
/// The connections with which a store writes to a server: one that is reserved for writing, and
/// three more.
constexpr std::size_t connection_count = 4;
constexpr auto round_time = 500ms;
/// A round has thousands of puts, so a few rounds are enough.
constexpr std::size_t most_rounds = 7;

/// The next entry of one thread. Threads do not write the same rows.
class thread_traffic {
 public:
  thread_traffic(std::size_t thread, std::size_t threads, timestamp start)
      : thread_(thread),
        threads_(threads),
        entry_{.name = std::string(entry_name),
               .key = {},
               .as_of = start,
               .expire_on = start + lifetime,
               .payload = make_payload(),
               .payload_class = std::string(entry_class)} {}

  const entry& next() {
    const auto own_rows = small_table_rows / threads_;
    entry_.key = key_at(thread_ + threads_ * (count_++ % own_rows));
    entry_.as_of += 1us;
    return entry_;
  }

 private:
  std::size_t thread_;
  std::size_t threads_;
  std::uint64_t count_ = 0;
  entry entry_;
};

/// Calls `put(thread)` in each of the threads for a while. Returns the calls per second.
double rate_of(std::size_t threads, const std::function<void(std::size_t thread)>& put) {
  std::latch ready(static_cast<std::ptrdiff_t>(threads) + 1);
  std::atomic<bool> stop = false;
  std::atomic<std::uint64_t> total = 0;
  std::vector<std::exception_ptr> failures(threads);
  steady::time_point start;
  {
    std::vector<std::jthread> running;
    for (std::size_t i = 0; i < threads; ++i) {
      running.emplace_back([&, i] {
        ready.arrive_and_wait();
        std::uint64_t count = 0;
        try {
          for (; !stop; ++count) put(i);
        } catch (...) {
          failures[i] = std::current_exception();
        }
        total += count;
      });
    }
    ready.arrive_and_wait();
    start = steady::now();
    std::this_thread::sleep_for(round_time);
    stop = true;
  }
  const std::chrono::duration<double> elapsed = steady::now() - start;
  for (const auto& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  return static_cast<double>(total) / elapsed.count();
}

std::vector<thread_traffic> make_traffic(std::size_t threads, timestamp start) {
  std::vector<thread_traffic> result;
  for (std::size_t i = 0; i < threads; ++i) result.emplace_back(i, threads, start);
  return result;
}

}  // namespace

row measure_thread_puts(const thread_puts& compared, const measure_options& options) {
  auto our_traffic = make_traffic(thread_count, compared.start);
  auto raw_traffic = make_traffic(connection_count, compared.start);
  std::vector<std::unique_ptr<raw_client>> connections;
  for (std::size_t i = 0; i < connection_count; ++i) {
    connections.push_back(connect_raw_client(compared.settings));
    connections.back()->prepare(compared.raw_table, compared.raw_table);
  }
  const auto put_ours = [&](std::size_t i) { compared.ours->put(our_traffic[i].next()); };
  const auto put_raw = [&](std::size_t i) {
    connections[i]->put_singly({&raw_traffic[i].next(), 1});
  };
  return best_of_three([&] {
    std::vector<double> ours;
    std::vector<double> raw;
    for (std::size_t i = 0; i < std::min(options.rounds, most_rounds); ++i) {
      raw.push_back(rate_of(connection_count, put_raw));
      ours.push_back(rate_of(thread_count, put_ours));
    }
    return make_row("store.threads_put", median(ours), median(raw), "puts/s", 0.8, bound::at_least);
  });
}

}  // namespace holdfast::bench
