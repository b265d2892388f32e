#include "sequence/core.hpp"

#include <string>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail {

namespace {

std::string joined(const std::vector<std::string>& lines) {
  std::string all;
  for (const auto& each : lines) all.append(all.empty() ? "" : "; ").append(each);
  return all;
}

}  // namespace

void settings_check::run() {
  const std::scoped_lock lock(mutex_);
  if (done_) return;
  const auto problems = store_->unsafe_settings();
  if (!problems.empty()) {
    const std::string why = "the store of the sequences can forget numbers that it granted, and grant them again: " + joined(problems);
    if (!allow_unsafe_) throw error(errc::unsupported_type, why + "; or allow it (.allow_unsafe, --allow-unsafe)");
    log_->write(log_level::warning, why);
  }
  done_ = true;
}

source_core::source_core(std::shared_ptr<block_store> on, const sequence_environment& around)
    : store(std::move(on)),
      clock(around.clock ? around.clock : system_clock()),
      log(std::make_shared<const logger>(around.log, log_limiter::options{.clock = clock})),
      settings(std::make_shared<settings_check>(store, log, around.allow_unsafe)),
      refills({.store = store, .log = log, .before_first = [check = settings] { check->run(); }}) {}

sequence_instruments::sequence_instruments(metrics_sink& into, std::string_view name)
    : ids(into.counter("holdfast_sequence_ids_total", {{"sequence", name}}, "Ids handed out, counted when blocks come")),
      refills(into.counter("holdfast_sequence_refills_total", {{"sequence", name}}, "Blocks granted")),
      failures(into.counter("holdfast_sequence_refill_failures_total", {{"sequence", name}}, "Refills that failed")),
      stalls(into.counter("holdfast_sequence_stalls_total", {{"sequence", name}}, "Calls that waited for a block")),
      redraws(into.counter("holdfast_sequence_redraws_total", {{"sequence", name}}, "Draws that fell between two blocks")),
      refill_seconds(into.histogram("holdfast_sequence_refill_seconds", {{"sequence", name}}, "How long refills took")),
      at_risk(into.gauge("holdfast_sequence_ids_at_risk", {{"sequence", name}}, "Ids leased and not used: lost if the process dies")),
      left(into.gauge("holdfast_sequence_ids_left", {{"sequence", name}}, "Ids until the sequence ends")) {}

}  // namespace HOLDFAST_NAMESPACE::detail
