#pragma once

#include <holdfast/metrics.hpp>
#include <holdfast/redis.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

namespace HOLDFAST_NAMESPACE::redis {

/// A number that `client::count` shows and a metrics sink is told.
/// Thread-safety: every function may be called from any thread.
class tally {
 public:
  tally() = default;
  explicit tally(std::shared_ptr<metrics::counter> behind) : behind_(std::move(behind)) {}
  tally(tally&& other) noexcept : held_(other.held_.load()), behind_(std::move(other.behind_)) {}  // before anybody counts
  tally& operator=(tally&&) = delete;

  void operator+=(std::uint64_t more) noexcept {
    if (more == 0) return;
    held_.fetch_add(more, std::memory_order_relaxed);
    if (behind_) behind_->add(more);
  }
  void operator++() noexcept { *this += 1; }
  [[nodiscard]] std::uint64_t read() const noexcept { return held_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> held_{0};
  std::shared_ptr<metrics::counter> behind_{};
};

/// A number that goes up and down.
class level {
 public:
  level() = default;
  explicit level(std::shared_ptr<metrics::gauge> behind) : behind_(std::move(behind)) {}

  void operator+=(std::int64_t more) noexcept {
    held_.fetch_add(more, std::memory_order_relaxed);
    if (behind_) behind_->add(static_cast<double>(more));
  }
  [[nodiscard]] std::uint64_t read() const noexcept { return static_cast<std::uint64_t>(held_.load(std::memory_order_relaxed)); }

 private:
  std::atomic<std::int64_t> held_{0};
  std::shared_ptr<metrics::gauge> behind_{};
};

/// What `numbers` shows. The sink is isolated: its faults do not come here.
struct HOLDFAST_API counters {
  explicit counters(std::shared_ptr<metrics_sink> sink);

  std::shared_ptr<metrics_sink> sink;
  tally calls, commands, moved, asked, retried, resent, in_doubt, whole_scripts, refreshes, connected, lost;
  level in_flight, open;
  std::array<tally, std::tuple_size_v<decltype(numbers::errors)>> errors;
  std::array<std::atomic<std::uint64_t>, std::tuple_size_v<decltype(numbers::latency)>> latency{};
  std::shared_ptr<metrics::histogram> seconds;

  void add_latency(std::chrono::steady_clock::duration took) noexcept;
  [[nodiscard]] numbers read() const noexcept;
};

}  // namespace HOLDFAST_NAMESPACE::redis
