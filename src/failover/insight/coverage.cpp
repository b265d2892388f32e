// Checks whether kept answers could serve live calls. A check runs in the background, so it may
// read the row after the answer of its own call was stored. Then its result is undecided.

#include "failover/insight/call_notes.hpp"
#include "failover/insight/look.hpp"

namespace HOLDFAST_NAMESPACE::detail::failover {

namespace {

void record_coverage(const point_core& point, coverage_result result) noexcept {
  point.insight->recent.record_coverage(point.engine.clock->now(), result);
  if (result == coverage_result::undecided) return;
  point.count(result == coverage_result::covered ? counter::covered : counter::uncovered);
}

}  // namespace

coverage_result judge_row(const point_core& point, const entry* row, timestamp now,
                          std::optional<timestamp> newest) noexcept {
  if (row == nullptr) return coverage_result::not_found;
  if (now > row->expire_on) return coverage_result::expired;
  if (newest && row->as_of < *newest && !point.options.serve_older)
    return coverage_result::not_servable;
  const bool servable =
      row->payload ? point.allowed.allows(row->payload_class) : point.type.may_be_empty;
  return servable ? coverage_result::covered : coverage_result::not_servable;
}

void check_coverage(const point_core& point, const call_base& call) {
  const auto judge = [&point, as_of = call.provenance.as_of,
                      newest =
                          point.engine.newest_served(point.row_id(call))](const read_result& read) {
    if (read.status == read_status::failed) return record_coverage(point, coverage_result::unread);
    if (read.row && read.row->as_of >= as_of)
      return record_coverage(point, coverage_result::undecided);
    record_coverage(point, judge_row(point, read.row ? &*read.row : nullptr,
                                     point.engine.clock->now(), newest));
  };
  // If the store does not answer, it cannot serve the call, whatever it has.
  if (!look_at_row(point, call, judge))
    record_coverage(
        point, point.engine.guard.answers() ? coverage_result::undecided : coverage_result::unread);
}

point_coverage coverage_of(const point_core& point) {
  const auto counts = point.insight ? point.insight->recent.coverage(point.engine.clock->now())
                                    : recent_calls::coverage_counts{};
  const auto count_of = [&](coverage_result result) {
    return counts[static_cast<std::size_t>(result)];
  };
  point_coverage result{.point = point.name,
                        .covered = count_of(coverage_result::covered),
                        .not_found = count_of(coverage_result::not_found),
                        .expired = count_of(coverage_result::expired),
                        .not_servable = count_of(coverage_result::not_servable),
                        .unread = count_of(coverage_result::unread),
                        .undecided = count_of(coverage_result::undecided)};
  result.checked =
      result.covered + result.not_found + result.expired + result.not_servable + result.unread;
  return result;
}

}  // namespace HOLDFAST_NAMESPACE::detail::failover
