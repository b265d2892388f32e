#pragma once

/// \file
/// The counters behind `client::count`, which are also reported to a metrics sink.

#include <holdfast/metrics.hpp>
#include <holdfast/redis.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

namespace HOLDFAST_NAMESPACE::detail::redis {

/// Thread-safety: every function may be called from any thread, except moving.
class counter {
 public:
  counter() = default;
  explicit counter(std::shared_ptr<metrics::counter> metric) : metric_(std::move(metric)) {}
  counter(counter&& other) noexcept
      : value_(other.value_.load()), metric_(std::move(other.metric_)) {}
  counter& operator=(counter&&) = delete;

  void operator+=(std::uint64_t increment) noexcept {
    if (increment == 0) return;
    value_.fetch_add(increment, std::memory_order_relaxed);
    if (metric_) metric_->add(increment);
  }
  void operator++() noexcept { *this += 1; }
  [[nodiscard]] std::uint64_t read() const noexcept {
    return value_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint64_t> value_{0};
  std::shared_ptr<metrics::counter> metric_{};  // may be null
};

/// A number that goes up and down.
/// Thread-safety: every function may be called from any thread.
class gauge {
 public:
  gauge() = default;
  explicit gauge(std::shared_ptr<metrics::gauge> metric) : metric_(std::move(metric)) {}

  void operator+=(std::int64_t difference) noexcept {
    value_.fetch_add(difference, std::memory_order_relaxed);
    if (metric_) metric_->add(static_cast<double>(difference));
  }
  [[nodiscard]] std::uint64_t read() const noexcept {
    return static_cast<std::uint64_t>(value_.load(std::memory_order_relaxed));
  }

 private:
  std::atomic<std::int64_t> value_{0};
  std::shared_ptr<metrics::gauge> metric_{};  // may be null
};

/// The live values of `numbers`. Exceptions of the sink do not reach the client.
struct HOLDFAST_API counters {
  /// The sink may be null.
  explicit counters(std::shared_ptr<metrics_sink> target);

  std::shared_ptr<metrics_sink> sink;
  counter calls, commands, moved, asked, retried, resent, in_doubt, whole_scripts, refreshes,
      connected, lost;
  gauge in_flight, open;
  std::array<counter, std::tuple_size_v<decltype(numbers::errors)>> errors;
  std::array<std::atomic<std::uint64_t>, std::tuple_size_v<decltype(numbers::latency)>> latency{};
  std::shared_ptr<metrics::histogram> seconds;

  void add_latency(std::chrono::steady_clock::duration elapsed) noexcept;
  [[nodiscard]] numbers read() const noexcept;
};

}  // namespace HOLDFAST_NAMESPACE::detail::redis
