#include "failover/insight/drill_run.hpp"

#include <holdfast/error.hpp>

#include "failover/insight/recent_calls.hpp"

#include <algorithm>
#include <array>

namespace HOLDFAST_NAMESPACE {

std::string_view to_string(drill_end reason) noexcept {
  constexpr std::array<std::string_view, 4> names{"running", "time", "request", "store"};
  const auto index = static_cast<std::size_t>(reason);
  return index < names.size() ? names[index] : "unknown";
}

namespace detail::failover {

void duration_sample::add(std::chrono::microseconds duration) {
  ++count_;
  longest_ = std::max(longest_, duration);
  if (sample_.size() < largest_sample) return sample_.push_back(duration);
  if (const auto place = random_number() % count_; place < largest_sample)
    sample_[place] = duration;
}

duration_summary duration_sample::summary() const {
  if (sample_.empty()) return {};
  auto sorted = sample_;
  std::ranges::sort(sorted);
  return {.count = count_,
          .median = sorted[sorted.size() / 2],
          .p95 = sorted[sorted.size() * 95 / 100],
          .longest = longest_};
}

drill_run::drill_run(drill_options options, timestamp now, steady_time steady_now,
                     std::uint64_t calls)
    : options_(options),
      started_(now),
      deadline_(steady_now + options.length),
      calls_at_start_(calls),
      ended_(now + options.length) {}

bool drill_run::runs(steady_time now) {
  const std::scoped_lock lock(mutex_);
  if (end_ == drill_end::running && now >= deadline_) end_ = drill_end::time;
  return end_ == drill_end::running;
}

void drill_run::end(drill_end reason, timestamp now) {
  const std::scoped_lock lock(mutex_);
  if (end_ != drill_end::running) return;
  end_ = reason;
  ended_ = now;
}

void drill_run::record_selected() {
  const std::scoped_lock lock(mutex_);
  ++selected_;
}

void drill_run::record_served(std::chrono::microseconds age, std::chrono::microseconds latency) {
  const std::scoped_lock lock(mutex_);
  ++served_;
  ages_.add(age);
  latency_.add(latency);
}

void drill_run::record_not_covered() {
  const std::scoped_lock lock(mutex_);
  ++not_covered_;
}

drill_report drill_run::report(steady_time now, std::uint64_t calls) {
  const bool running = runs(now);
  const std::scoped_lock lock(mutex_);
  // The end may be noticed late; later calls of the point do not belong to the drill.
  if (!running && !calls_at_end_) calls_at_end_ = calls;
  return {.point = {},
          .options = options_,
          .started = started_,
          .ends = ended_,
          .end = end_,
          .calls = calls_at_end_.value_or(calls) - calls_at_start_,
          .selected = selected_,
          .served = served_,
          .not_covered = not_covered_,
          .ages = ages_.summary(),
          .latency = latency_.summary()};
}

std::shared_ptr<drill_run> point_drill::select(std::chrono::steady_clock::time_point now) {
  if (random_number() >= threshold_.load(std::memory_order_relaxed)) return nullptr;
  auto run = last();
  if (!run) return nullptr;
  if (run->runs(now)) return run;
  stop(*run);
  return nullptr;
}

void point_drill::start(std::shared_ptr<drill_run> run, std::chrono::steady_clock::time_point now) {
  const std::scoped_lock lock(mutex_);
  if (run_ && run_->runs(now))
    throw error(errc::duplicate, "a drill of this point is running; end it first",
                {.path = "drill"});
  const auto threshold = static_cast<std::uint64_t>(run->options().part * 4294967296.0);
  run_ = std::move(run);
  threshold_.store(std::max<std::uint64_t>(threshold, 1), std::memory_order_relaxed);
}

std::shared_ptr<drill_run> point_drill::last() const {
  const std::scoped_lock lock(mutex_);
  return run_;
}

void point_drill::stop(const drill_run& run) {
  const std::scoped_lock lock(mutex_);
  if (run_.get() == &run) threshold_.store(0, std::memory_order_relaxed);
}

}  // namespace detail::failover

}  // namespace HOLDFAST_NAMESPACE
