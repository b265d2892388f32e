#include <holdfast/failover/engine.hpp>

#include "failover/engine_core.hpp"
#include "failover/insight/call_notes.hpp"
#include "failover/insight/drill.hpp"
#include "failover/insight/outlook.hpp"
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

point_status engine::status(std::string_view point) const {
  return core_->find_point(point)->status();
}

point_options engine::resolved(std::string_view point) const {
  return core_->find_point(point)->resolved();
}

point_outlook engine::outlook(std::string_view point) const {
  return detail::failover::outlook_of(*core_, *core_->find_point(point),
                                      core_->clock->steady() + std::chrono::seconds(2));
}

point_coverage engine::coverage(std::string_view point) const {
  return detail::failover::coverage_of(*core_->find_point(point));
}

drill_report engine::drill(std::string_view point, const drill_options& options) {
  const auto target = core_->find_point(point);
  detail::failover::check_drill(*target, options);
  const auto now = core_->clock->steady();
  const auto run = std::make_shared<detail::failover::drill_run>(
      options, core_->clock->now(), now, target->counts.sum(detail::failover::counter::started));
  target->drill.start(run, now);
  return detail::failover::report_of(*target, *run);
}

drill_report engine::end_drill(std::string_view point) {
  const auto target = core_->find_point(point);
  const auto run = target->drill.last();
  if (!run) throw error(errc::not_found, "there was no drill of this point", {.path = "point"});
  if (run->runs(core_->clock->steady())) run->end(drill_end::request, core_->clock->now());
  target->drill.stop(*run);
  return detail::failover::report_of(*target, *run);
}

std::vector<drill_report> engine::drills() const {
  std::vector<drill_report> reports;
  for (const auto& point : core_->all_points()) {
    if (const auto run = point->drill.last())
      reports.push_back(detail::failover::report_of(*point, *run));
  }
  return reports;
}

bool engine::flush(std::chrono::steady_clock::time_point deadline) {
  return core_->flush(deadline);
}

close_report engine::close(std::chrono::steady_clock::time_point deadline) {
  return core_->close(deadline);
}

std::shared_ptr<holdfast::store> engine::store() const { return core_->front_store; }

}  // namespace HOLDFAST_NAMESPACE
