#include <holdfast/failover/engine.hpp>

#include "failover/engine_core.hpp"
#include "failover/point_core.hpp"

#include <mutex>
#include <utility>

namespace HOLDFAST_NAMESPACE {

engine::engine(std::shared_ptr<holdfast::store> on, engine_options options)
    : core_(std::make_shared<detail::engine_core>(std::move(on), std::move(options))) {
  core_->report_later();
}

engine::engine(engine&&) noexcept = default;

engine& engine::operator=(engine&& other) noexcept {
  engine ends(std::move(*this));
  core_ = std::move(other.core_);
  return *this;
}

engine::~engine() {
  if (!core_) return;
  if (!core_->closed.load(std::memory_order_acquire)) end();
  const std::unique_lock lock(core_->gate->mutex);
  core_->gate->open = false;
}

void engine::end() noexcept {
  try {
    const auto report = close(core_->clock->steady() + core_->options.linger);
    if (report.clean()) return;
    std::uint64_t running = 0;
    for (const auto& each : report.still_running) running += each.calls;
    const auto texts = std::array{std::to_string(running), std::to_string(report.unsaved), std::to_string(report.lost)};
    core_->log.write(log_level::warning, "an engine ended before its work did; close() it first, with a longer deadline",
                     {{.name = "running", .value = texts[0]}, {.name = "unsaved", .value = texts[1]}, {.name = "lost", .value = texts[2]}});
  } catch (...) {  // NOLINT(bugprone-empty-catch)
    // Nobody is there to be told.
  }
}

std::vector<point_status> engine::points() const {
  std::vector<point_status> all;
  for (const auto& each : core_->all_points()) all.push_back(each->status());
  return all;
}

engine_health engine::health() const noexcept { return core_->health(); }
void engine::report() const { core_->report(); }

bool engine::flush(std::chrono::steady_clock::time_point deadline) { return core_->flush(deadline); }

close_report engine::close(std::chrono::steady_clock::time_point deadline) { return core_->close(deadline); }

std::shared_ptr<holdfast::store> engine::store() const { return core_->front; }

}  // namespace HOLDFAST_NAMESPACE
