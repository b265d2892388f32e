#include "failover/insight/drill.hpp"

#include "failover/insight/call_notes.hpp"
#include "failover/insight/drill_probe.hpp"
#include "failover/insight/drill_run.hpp"
#include "failover/insight/look.hpp"
#include "failover/read.hpp"
#include "failover/recover.hpp"

#include <algorithm>

namespace HOLDFAST_NAMESPACE::detail::failover {

namespace {

using std::chrono::microseconds;
using steady_time = std::chrono::steady_clock::time_point;

void stop_drill(const point_core& point, drill_run& run) {
  run.end(drill_end::store, point.engine.clock->now());
  point.drill.stop(run);
}

void record_drill_miss(const point_core& point, drill_run& run) {
  run.record_not_covered();
  point.count(counter::drill_uncovered);
}

void record_drill_hit(const point_core& point, drill_run& run, timestamp as_of,
                      steady_time started) {
  const auto age = point.engine.clock->now() - as_of;
  const auto latency = point.engine.clock->steady() - started;
  run.record_served(std::max<microseconds>(age, microseconds::zero()),
                    std::chrono::duration_cast<microseconds>(latency));
  point.count(counter::drill_served);
}

/// Serves the kept answer. Returns false if there is none that may be served. Ends the drill if the
/// store does not answer in time.
bool rehearse(const std::shared_ptr<point_core>& point, call_base& call, drill_run& run,
              steady_time started) {
  auto& engine = point->engine;
  const auto newest = engine.newest_served(point->row_id(call));
  auto deadline = engine.read_deadline(call);
  if (call.deadline != steady_time::max())
    deadline = std::min(deadline, started + (call.deadline - started) / 4);
  const auto read = read_row(point, call, deadline);
  if (read.status == read_status::failed || read.status == read_status::late)
    stop_drill(*point, run);
  if (!read.row) return false;
  const auto now = engine.clock->now();
  if (check_row(point, call, *read.row, now, newest) != counter::live) return false;
  serve(*point, call, *read.row, now, cause(cause_code::drill));
  if (point->type.has_recovered && !run_recovered_hook(*point, call, true, read.row)) return false;
  record_drill_hit(*point, run, read.row->as_of, started);
  return true;
}

/// With drill_options::what_if: checks in the background whether the kept answer could be served.
void check_beside_call(const std::shared_ptr<point_core>& point, const call_base& call,
                       const std::shared_ptr<drill_run>& run, steady_time started) {
  // The background read owns the engine, and the engine owns the point.
  const auto judge =
      [&observed = *point, run, started,
       newest = point->engine.newest_served(point->row_id(call))](const read_result& read) {
        if (read.status == read_status::failed) stop_drill(observed, *run);
        const auto* row = read.row ? &*read.row : nullptr;
        const auto now = observed.engine.clock->now();
        if (judge_row(observed, row, now, newest) == coverage_result::covered)
          record_drill_hit(observed, *run, row->as_of, started);
        else record_drill_miss(observed, *run);
      };
  // If the store answers, the call is not checked only because other checks are running.
  if (!look_at_row(*point, call, judge) && !point->engine.guard.answers()) stop_drill(*point, *run);
}

/// Gives the upstream the time that the drill used.
void move_deadlines(call_base& call, std::chrono::steady_clock::duration by) noexcept {
  if (call.deadline == steady_time::max()) return;
  call.deadline += by;
  call.upstream_deadline += by;
}

}  // namespace

bool serve_in_drill(const std::shared_ptr<point_core>& point, call_base& call) noexcept {
  if (drill_probe::note_active()) return false;
  auto& engine = point->engine;
  const auto provenance = call.provenance;
  try {
    const auto started = engine.clock->steady();
    const auto run = point->drill.select(started);
    if (!run) return false;
    run->record_selected();
    if (call.key.empty()) {
      record_drill_miss(*point, *run);
      return false;
    }
    if (run->options().what_if) {
      check_beside_call(point, call, run, started);
      return false;
    }
    if (rehearse(point, call, *run, started)) {
      point->count(counter::stale);
      if (point->insight) note_end(*point, call, decision_rule::drilled);
      return true;
    }
    record_drill_miss(*point, *run);
    move_deadlines(call, engine.clock->steady() - started);
  } catch (...) {
    point->warn("drill", "a drill could not serve a call; the upstream is called",
                std::current_exception());
  }
  call.make_empty();
  call.provenance = provenance;
  return false;
}

void check_drill(const point_core& point, const drill_options& options) {
  const auto require = [](bool valid, const char* problem, const char* path) {
    if (!valid) throw error(errc::invalid_argument, problem, {.path = path});
  };
  require(options.part > 0 && options.part <= 1,
          "the part of the calls must be more than 0 and at most 1", "part");
  require(options.length.count() > 0 && options.length <= longest_drill,
          "the length of a drill must be positive and at most 15 minutes", "length");
  require(point.options.enabled, "the point is disabled; its calls are not protected", "point");
  require(!point.type.scattered,
          "the answers of this point are stored in slices; drill the point of a single call",
          "point");
}

drill_report report_of(const point_core& point, drill_run& run) {
  auto report = run.report(point.engine.clock->steady(), point.counts.sum(counter::started));
  report.point = point.name;
  return report;
}

}  // namespace HOLDFAST_NAMESPACE::detail::failover
