// The JSON of the state, and its numbers for the history.

#include <holdfast/version.hpp>

#include "serve/api/json_writer.hpp"
#include "serve/live/state.hpp"

#include <algorithm>
#include <cmath>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

/// Four digits are enough for a page, and let equal states have equal texts.
double rounded(double value) { return std::round(value * 10'000) / 10'000; }

std::string seconds_text(std::chrono::microseconds duration) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(duration);
  return std::to_string(std::max<std::int64_t>(seconds.count(), 0)) + "s";
}

/// `problem` and `asOf`: how much an answer is worth.
template <class Value>
void add_answer_state(json_writer& out, const answered<Value>& answer) {
  if (!answer.problem.empty()) out.member("problem", answer.problem);
  // Only if it is old: the time of every answer would make each state a new one.
  if (answer.value && !answer.problem.empty()) out.member("asOf", answer.moment);
}

void add_points(json_writer& out, const std::vector<point_sample>& points) {
  out.key("points").begin_array();
  for (const auto& point : points) {
    out.begin_object()
        .member("name", point.name)
        .member("rate", rounded(point.rate))
        .member("staleRatio", rounded(point.stale_ratio))
        .member("unservedRatio", rounded(point.unserved_ratio))
        .member("unserved", point.unserved)
        .member("breaker", to_string(point.breaker))
        .member("running", point.running)
        .member("instances", point.instances)
        .member("own", point.own);
    if (point.oldest_served) out.member("oldestServed", seconds_text(*point.oldest_served));
    if (point.coverage) out.member("coverage", rounded(*point.coverage));
    if (point.first_expiry && point.half_expiry)
      out.key("expires")
          .begin_object()
          .member("first", *point.first_expiry)
          .member("half", *point.half_expiry)
          .end_object();
    out.end_object();
  }
  out.end_array();
}

void add_stores(json_writer& out, const std::vector<store_sample>& stores) {
  out.key("stores").begin_array();
  for (const auto& store : stores) {
    const auto& health = store.health;
    out.begin_object().member("name", store.name);
    out.member("available", health.value && health.value->available && health.problem.empty());
    if (health.value) {
      out.member("unsaved", health.value->unsaved).member("failed", health.value->failed);
      if (health.problem.empty() && !health.value->problem.empty())
        out.member("problem", health.value->problem);
    }
    add_answer_state(out, health);
    if (store.findings) {
      out.key("findings").begin_object();
      for (const auto& [level, count] : *store.findings) out.member(to_string(level), count);
      out.end_object();
    }
    out.end_object();
  }
  out.end_array();
}

void add_sequences(json_writer& out, const snapshot& current) {
  out.key("sequences").begin_array();
  for (const auto& sequence : current.sequences) {
    out.begin_object()
        .member("name", sequence.name)
        .key("last")
        .wide(sequence.counter.last)
        .key("epoch")
        .wide(sequence.counter.epoch)
        .member("rate", rounded(sequence.rate));
    if (sequence.remaining) out.member("left", rounded(*sequence.remaining));
    out.end_object();
  }
  out.end_array();
  if (!current.counters.problem.empty() && current.counters.problem != "not asked yet")
    out.member("sequencesProblem", current.counters.problem);
}

void add_lanes(json_writer& out, const std::vector<lane_sample>& lanes) {
  out.key("lanes").begin_array();
  for (const auto& lane : lanes) {
    out.begin_object()
        .member("lane", lane.lane)
        .member("pending", lane.pending)
        .member("parked", lane.parked);
    if (!lane.holder.empty()) out.member("holder", lane.holder);
    out.end_object();
  }
  out.end_array();
}

void add_outboxes(json_writer& out, const std::vector<outbox_sample>& outboxes) {
  out.key("outboxes").begin_array();
  for (const auto& outbox : outboxes) {
    out.begin_object().member("name", outbox.name);
    if (const auto& stats = outbox.stats.value) {
      out.member("pending", stats->pending)
          .member("parked", stats->parked)
          .member("tickets", stats->tickets)
          .member("atLeast", stats->at_least)
          .member("overdue", seconds_text(stats->overdue))
          .member("paused", stats->paused)
          .member("failing", outbox.failing)
          .member("publishedRate", rounded(outbox.published_rate))
          .member("ackedRate", rounded(outbox.acked_rate));
      add_lanes(out, stats->lanes);
    }
    add_answer_state(out, outbox.stats);
    out.end_object();
  }
  out.end_array();
}

void add_instances(json_writer& out, const std::vector<instance_sample>& instances) {
  out.key("instances").begin_array();
  for (const auto& instance : instances) {
    out.begin_object()
        .member("id", instance.id)
        .member("kind", instance.kind)
        .member("silent", instance.silent)
        .member("healthy", instance.healthy && !instance.silent);
    // An age that grows every second would make each state a new one.
    if (instance.silent) out.member("seen", seconds_text(instance.age));
    if (!instance.problem.empty()) out.member("problem", instance.problem);
    out.end_object();
  }
  out.end_array();
}

}  // namespace

std::string status_members(const snapshot& current, std::string_view label,
                           const std::vector<incident_condition>& conditions,
                           const std::vector<std::string>& open_incidents, std::string_view jobs) {
  std::vector<std::string> sentences;
  sentences.reserve(conditions.size());
  for (const auto& condition : conditions) sentences.push_back(condition.text);
  for (const auto& instance : current.instances) {
    if (instance.silent)
      sentences.push_back(instance.id + " has not reported for " + seconds_text(instance.age));
    else if (!instance.healthy) sentences.push_back(instance.id + ": " + instance.problem);
  }
  json_writer out;
  out.begin_object()
      .member("label", label)
      .member("version", HOLDFAST_VERSION_STRING)
      .member("healthy", sentences.empty())
      .key("says")
      .begin_array();
  for (const auto& sentence : sentences) out.text(sentence);
  out.end_array();
  add_points(out, current.points);
  add_stores(out, current.stores);
  add_sequences(out, current);
  add_outboxes(out, current.outboxes);
  add_instances(out, current.instances);
  out.key("incidents").begin_array();
  for (const auto& id : open_incidents) out.text(id);
  out.end_array().key("jobs").raw(jobs).end_object();
  return out.take().substr(1);
}

std::vector<series_value> history_values(const snapshot& current) {
  struct call_rates {
    double live = 0, stale = 0, unserved = 0;
  };
  std::vector<series_value> values;
  const auto add = [&](const char* name, const std::string& subject, double value) {
    values.push_back({{name, subject}, value});
  };
  call_rates sum;
  for (const auto& point : current.points) {
    add("point.rate", point.name, point.rate);
    values.push_back({{"point.staleRatio", point.name}, point.stale_ratio, false});
    values.push_back({{"point.unservedRatio", point.name}, point.unserved_ratio, false});
    sum.stale += point.rate * point.stale_ratio;
    sum.unserved += point.rate * point.unserved_ratio;
    sum.live += point.rate * std::max(0.0, 1 - point.stale_ratio - point.unserved_ratio);
  }
  if (!current.points.empty()) {
    add("calls.live", "all", sum.live);
    add("calls.stale", "all", sum.stale);
    add("calls.unserved", "all", sum.unserved);
  }
  for (const auto& outbox : current.outboxes) {
    if (!outbox.stats.value || !outbox.stats.problem.empty()) continue;
    const auto& stats = *outbox.stats.value;
    add("outbox.pending", outbox.name, static_cast<double>(stats.pending));
    add("outbox.parked", outbox.name, static_cast<double>(stats.parked));
    add("outbox.overdueSeconds", outbox.name, std::chrono::duration<double>(stats.overdue).count());
    add("outbox.publishedRate", outbox.name, outbox.published_rate);
    add("outbox.ackedRate", outbox.name, outbox.acked_rate);
  }
  for (const auto& sequence : current.sequences) add("sequence.rate", sequence.name, sequence.rate);
  for (const auto& store : current.stores) {
    const bool available =
        store.health.value && store.health.value->available && store.health.problem.empty();
    add("store.available", store.name, available ? 1 : 0);
    if (store.health.value)
      add("store.unsaved", store.name, static_cast<double>(store.health.value->unsaved));
  }
  return values;
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
