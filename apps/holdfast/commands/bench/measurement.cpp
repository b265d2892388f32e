#include "commands/bench/measurement.hpp"

#include <holdfast/error.hpp>

#include <algorithm>
#include <bit>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::cli {

namespace {

using bench_clock = std::chrono::steady_clock;

// Durations below 128 ns have a bucket each. Of a longer one, the first 7 binary digits count; the
// first of them is always 1, so that there are 64 buckets for each power of two.
constexpr int bucket_digits = 6;

std::size_t bucket_of(std::uint64_t nanoseconds) {
  const int shift = std::max(0, static_cast<int>(std::bit_width(nanoseconds)) - bucket_digits - 1);
  return (static_cast<std::size_t>(shift) << bucket_digits) + (nanoseconds >> shift);
}

std::uint64_t lower_bound_of(std::size_t bucket) {
  const std::size_t first_digits = bucket & ((std::size_t{1} << bucket_digits) - 1);
  if (bucket < std::size_t{2} << bucket_digits) return bucket;
  const std::size_t shift = (bucket >> bucket_digits) - 1;
  return ((std::uint64_t{1} << bucket_digits) + first_digits) << shift;
}

/// The work of one thread.
struct thread_result {
  std::uint64_t count = 0;
  double seconds = 0;
  latency_histogram latencies{};
};

/// The first exception of several threads.
class first_failure {
 public:
  void record() {
    const std::scoped_lock lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
  }
  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::mutex mutex_{};
  std::exception_ptr failure_{};
};

void repeat_operation(const bench_workload& workload, std::size_t thread,
                      const std::atomic<bool>& stopping, thread_result& result) {
  const auto start = bench_clock::now();
  auto end = start;
  while (!stopping.load(std::memory_order_relaxed)) {
    if (workload.unmeasured) result.count += workload.unmeasured(thread);
    const auto operation_start = bench_clock::now();
    const std::uint64_t done = workload.operation(thread);
    end = bench_clock::now();
    result.count += done;
    if (done == 0) break;
    result.latencies.add(end - operation_start);
  }
  result.seconds = std::chrono::duration<double>(end - start).count();
}

}  // namespace

void latency_histogram::add(std::chrono::nanoseconds duration) {
  const auto nanoseconds = static_cast<std::uint64_t>(std::max<std::int64_t>(0, duration.count()));
  ++buckets_[bucket_of(nanoseconds)];
  ++count_;
}

void latency_histogram::add(const latency_histogram& other) {
  for (std::size_t i = 0; i < buckets_.size(); ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
}

std::chrono::nanoseconds latency_histogram::quantile(double part) const {
  auto remaining = static_cast<std::uint64_t>(static_cast<double>(count_) * part);
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    if (remaining < buckets_[i])
      return std::chrono::nanoseconds(static_cast<std::int64_t>(lower_bound_of(i)));
    remaining -= buckets_[i];
  }
  return {};
}

void interruption::wait(bench_clock::time_point deadline, const std::atomic<bool>& finished) const {
  while (!finished && bench_clock::now() < deadline) {
    const auto remaining =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - bench_clock::now());
    if (signals_.wait(std::clamp<long>(remaining.count(), 1, 20)))
      throw error(errc::unavailable, "interrupted; start it again for a complete result");
  }
}

bench_row measure(const bench_workload& workload, const bench_settings& settings,
                  const interruption& signals) {
  std::vector<thread_result> results(settings.threads);
  std::atomic<bool> stopping = false;
  std::atomic<bool> finished = false;
  std::atomic<std::size_t> running = settings.threads;
  first_failure failure;
  {
    std::vector<std::jthread> threads;
    // Also stops the threads if waiting throws.
    struct stop_at_end {
      std::atomic<bool>& flag;
      ~stop_at_end() { flag = true; }
    };
    for (std::size_t i = 0; i < settings.threads; ++i) {
      threads.emplace_back([&, i] {
        try {
          repeat_operation(workload, i, stopping, results[i]);
        } catch (...) {
          failure.record();
          stopping = true;
        }
        if (--running == 0) finished = true;
      });
    }
    const stop_at_end stop{stopping};
    signals.wait(bench_clock::now() + settings.duration, finished);
  }
  failure.rethrow();
  bench_row row{.name = workload.name, .unit = workload.unit};
  for (const thread_result& result : results) {
    row.count += result.count;
    if (result.seconds > 0) row.rate += static_cast<double>(result.count) / result.seconds;
    row.latencies.add(result.latencies);
  }
  return row;
}

}  // namespace holdfast::cli
