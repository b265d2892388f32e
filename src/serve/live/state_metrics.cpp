#include "serve/live/state_metrics.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <limits>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

/// Reports come from a database, and must not become labels unseen.
constexpr std::array<std::string_view, 4> instance_kinds{"engine", "worker", "cleanup", "other"};
constexpr std::array<std::string_view, 3> instance_states{"healthy", "unhealthy", "silent"};

std::string_view kind_of(const instance_sample& sample) {
  const auto* const it = std::ranges::find(instance_kinds, sample.kind);
  return it != instance_kinds.end() ? *it : instance_kinds.back();
}

std::string_view state_of(const instance_sample& sample) {
  if (sample.silent) return "silent";
  return sample.healthy ? "healthy" : "unhealthy";
}

std::uint64_t position_of(const sequence_sample& sample) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(sample.counter.last, 0));
}

double flag(bool value) { return value ? 1 : 0; }

}  // namespace

state_metrics::state_metrics(std::shared_ptr<metrics_sink> sink)
    : sink_(std::move(sink)),
      open_incidents_(
          sink_->gauge("holdfast_serve_incidents_open", {}, "Incidents that have not ended")) {
  for (const auto kind : instance_kinds) {
    for (const auto state : instance_states)
      instances_[{kind, state}] =
          sink_->gauge("holdfast_serve_instances",
                       {{.name = "kind", .value = kind}, {.name = "state", .value = state}},
                       "Processes that report to a database, by kind and state");
  }
}

void state_metrics::update(const snapshot& current, std::size_t open_incidents) {
  open_incidents_->set(static_cast<double>(open_incidents));
  for (const auto& store : current.stores) update_store(store);
  for (const auto& outbox : current.outboxes) update_outbox(outbox);
  update_sequences(current);
  update_instances(current);
}

void state_metrics::update_store(const store_sample& sample) {
  auto it = stores_.find(sample.name);
  if (it == stores_.end()) {
    const std::array<metrics::label, 1> labels{{{.name = "store", .value = sample.name}}};
    it = stores_
             .emplace(
                 sample.name,
                 store_series{.available = sink_->gauge("holdfast_serve_store_available", labels,
                                                        "1 if the database of the store answers"),
                              .unsaved = sink_->gauge("holdfast_serve_store_unsaved", labels,
                                                      "Answers that wait to be written")})
             .first;
  }
  const auto& health = sample.health;
  it->second.available->set(
      flag(health.problem.empty() && health.value && health.value->available));
  if (health.value) it->second.unsaved->set(static_cast<double>(health.value->unsaved));
}

void state_metrics::add_outbox_numbers(outbox_series& series, std::string_view name,
                                       const outbox_stats& first) const {
  const std::array<metrics::label, 1> labels{{{.name = "outbox", .value = name}}};
  const auto gauge_of = [&](const char* metric, const char* help) {
    return sink_->gauge(metric, labels, help);
  };
  series.pending = gauge_of("holdfast_serve_outbox_pending", "Events that are not parked");
  series.parked = gauge_of("holdfast_serve_outbox_parked", "Parked events");
  series.tickets = gauge_of("holdfast_serve_outbox_tickets", "Tickets that have not expired");
  series.overdue = gauge_of("holdfast_serve_outbox_overdue_seconds",
                            "How long the oldest due event or ticket has been due");
  series.paused = gauge_of("holdfast_serve_outbox_paused", "1 if deliveries are paused");
  series.published = std::make_unique<followed_counter>(
      sink_->counter("holdfast_serve_outbox_published_total", labels,
                     "Events that all processes published while this server ran"),
      first.published);
  series.acked = std::make_unique<followed_counter>(
      sink_->counter("holdfast_serve_outbox_acked_total", labels,
                     "Events that all processes delivered while this server ran"),
      first.acked);
}

void state_metrics::update_outbox(const outbox_sample& sample) {
  auto it = outboxes_.find(sample.name);
  if (it == outboxes_.end()) {
    auto available =
        sink_->gauge("holdfast_serve_outbox_available", {{.name = "outbox", .value = sample.name}},
                     "1 if the database of the outbox answers");
    it = outboxes_.emplace(sample.name, outbox_series{.available = std::move(available)}).first;
  }
  auto& series = it->second;
  series.available->set(flag(sample.stats.problem.empty() && sample.stats.value));
  if (!sample.stats.value) return;
  const auto& stats = *sample.stats.value;
  if (!series.published) add_outbox_numbers(series, sample.name, stats);
  series.pending->set(static_cast<double>(stats.pending + stats.following));
  series.parked->set(static_cast<double>(stats.parked));
  series.tickets->set(static_cast<double>(stats.tickets));
  series.overdue->set(std::chrono::duration<double>(stats.overdue).count());
  series.paused->set(flag(stats.paused));
  series.published->follow(stats.published);
  series.acked->follow(stats.acked);
}

state_metrics::sequence_series state_metrics::sequence_gauges(const sequence_sample& sample) const {
  const std::array<metrics::label, 1> labels{{{.name = "sequence", .value = sample.name}}};
  return {.remaining = sink_->gauge("holdfast_serve_sequence_left_ratio", labels,
                                    "Part of the ids that is left; NaN if there is no end"),
          .granted = followed_counter(
              sink_->counter("holdfast_serve_sequence_ids_granted_total", labels,
                             "Ids that all processes leased while this server ran"),
              position_of(sample))};
}

void state_metrics::update_sequences(const snapshot& current) {
  constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
  for (const auto& sample : current.sequences) {
    auto it = sequences_.find(sample.name);
    if (it == sequences_.end()) it = sequences_.emplace(sample.name, sequence_gauges(sample)).first;
    it->second.remaining->set(sample.remaining.value_or(unknown));
    it->second.granted.follow(position_of(sample));
  }
  if (sequences_.size() == current.sequences.size()) return;
  // A sequence that was removed must not warn of its end for as long as the server runs.
  std::erase_if(sequences_, [&](const auto& entry) {
    const bool is_gone = std::ranges::find(current.sequences, entry.first,
                                           &sequence_sample::name) == current.sequences.end();
    if (is_gone) entry.second.remaining->set(unknown);
    return is_gone;
  });
}

void state_metrics::update_instances(const snapshot& current) {
  std::map<std::pair<std::string_view, std::string_view>, std::size_t> counts;
  for (const auto& sample : current.instances) ++counts[{kind_of(sample), state_of(sample)}];
  for (const auto& [key, series] : instances_) series->set(static_cast<double>(counts[key]));
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
