#include <holdfast/failover/engine.hpp>

#include "failover/engine_core.hpp"
#include "failover/point_core.hpp"
#include "failover/report.hpp"

namespace HOLDFAST_NAMESPACE {

engine::engine(std::shared_ptr<holdfast::store> store, engine_options options)
    : core_(std::make_shared<detail::failover::engine_core>(std::move(store), std::move(options))) {
  detail::failover::schedule_report(*core_);
}

engine::engine(engine&&) noexcept = default;

engine& engine::operator=(engine&& other) noexcept {
  engine closed_at_return(std::move(*this));
  core_ = std::move(other.core_);
  return *this;
}

engine::~engine() {
  if (!core_) return;
  if (!core_->closed.load(std::memory_order_acquire)) close_and_log();
  const std::unique_lock lock(core_->gate->mutex);
  core_->gate->open = false;
}

void engine::close_and_log() noexcept {
  try {
    const auto report = close(core_->clock->steady() + core_->options.linger);
    if (report.clean()) return;
    std::uint64_t running = 0;
    for (const auto& point : report.still_running) running += point.calls;
    const auto texts = std::array{std::to_string(running), std::to_string(report.unsaved),
                                  std::to_string(report.lost)};
    core_->log.write(
        log_level::warning,
        "an engine was destroyed with unfinished work; close() it first, with a longer deadline",
        {{.name = "running", .value = texts[0]},
         {.name = "unsaved", .value = texts[1]},
         {.name = "lost", .value = texts[2]}});
  } catch (...) {  // NOLINT(bugprone-empty-catch)
    // The log is the only way to report this.
  }
}

std::vector<point_status> engine::points() const {
  std::vector<point_status> all;
  for (const auto& point : core_->all_points()) all.push_back(point->status());
  return all;
}

engine_health engine::health() const noexcept { return detail::failover::health_of(*core_); }
void engine::report() const { detail::failover::write_report(*core_); }

bool engine::flush(std::chrono::steady_clock::time_point deadline) {
  return core_->flush(deadline);
}

close_report engine::close(std::chrono::steady_clock::time_point deadline) {
  return core_->close(deadline);
}

std::shared_ptr<holdfast::store> engine::store() const { return core_->front_store; }

}  // namespace HOLDFAST_NAMESPACE
