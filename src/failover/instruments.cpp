#include "failover/instruments.hpp"

#include <utility>

namespace HOLDFAST_NAMESPACE::detail::failover {

namespace {

constexpr std::array<double, 14> age_buckets{0.001, 0.01, 0.1,   1,     10,    60,     300,
                                             900,   3600, 14400, 43200, 86400, 604800, 2592000};
constexpr std::size_t max_exception_types = 30;

/// A metric family, and the label that distinguishes its series.
struct family {
  const char* name;
  const char* label;
  const char* help;
};
constexpr family calls{"holdfast_failover_calls_total", "result",
                       "protected calls, by how they ended"};
constexpr family stores{"holdfast_failover_stores_total", "result",
                        "live answers, by what was done to keep them"};
constexpr family misses{"holdfast_failover_unserved_total", "reason",
                        "stored answers that were not served, by reason"};
constexpr family refusals{"holdfast_failover_upstream_refused_total", "reason",
                          "calls kept from the upstream, by reason"};
constexpr family lates{"holdfast_failover_late_total", "answer",
                       "calls that missed their deadline, and those that answered later"};
constexpr family retries{"holdfast_failover_retries_total", "made",
                         "attempts after the first, and those not made for want of budget"};
constexpr family coalesced{"holdfast_failover_coalesced_total", "kind",
                           "callers that shared another's call"};
constexpr family refreshes{"holdfast_failover_refreshes_total", "result", "background refreshes"};
constexpr family unkeyed{"holdfast_failover_unkeyed_total", "kind",
                         "calls that got no key, and were not protected"};
constexpr family hooks{"holdfast_failover_hook_failures_total", "kind", "hooks that threw"};
constexpr family partials{"holdfast_failover_partial_total", "kind",
                          "answers of which a slice was missing"};
constexpr family unlisted_lists{"holdfast_failover_unlisted_total", "kind",
                                "lists that were to be recovered and had no manifest"};
constexpr family asymmetries{"holdfast_failover_asymmetric_total", "kind",
                             "live answers with a slice that their splitter would not look for"};

constexpr family drills{"holdfast_failover_drill_total", "result",
                        "calls that a drill selected, by whether an answer was kept"};
constexpr family checks{"holdfast_failover_coverage_checks_total", "result",
                        "calls that were checked, by whether a kept answer could serve them"};

struct series {
  counter index;
  const family& metric;
  const char* label_value;
};
constexpr std::array all_series{
    series{counter::live, calls, "live"},
    series{counter::stale, calls, "stale"},
    series{counter::fresh, calls, "fresh"},
    series{counter::substituted, calls, "substituted"},
    series{counter::failed, calls, "failed"},
    series{counter::passed, calls, "passed"},
    series{counter::invalidated, calls, "invalidated"},
    series{counter::abandoned, calls, "abandoned"},
    series{counter::stored, stores, "stored"},
    series{counter::absent, stores, "absent"},
    series{counter::ignored, stores, "ignored"},
    series{counter::too_large, stores, "too_large"},
    series{counter::store_failed, stores, "failed"},
    series{counter::not_found, misses, "not_found"},
    series{counter::expired, misses, "expired"},
    series{counter::not_allowed, misses, "class_not_allowed"},
    series{counter::undecodable, misses, "undecodable"},
    series{counter::older, misses, "older_than_served"},
    series{counter::read_failed, misses, "read_failed"},
    series{counter::read_late, misses, "read_late"},
    series{counter::breaker_refused, refusals, "breaker"},
    series{counter::limit_refused, refusals, "limit"},
    series{counter::full_refused, refusals, "full"},
    series{counter::late, lates, "waited_for"},
    series{counter::late_stored, lates, "stored"},
    series{counter::retries, retries, "yes"},
    series{counter::no_budget, retries, "no"},
    series{counter::coalesced, coalesced, "call"},
    series{counter::refreshed, refreshes, "done"},
    series{counter::refresh_failed, refreshes, "failed"},
    series{counter::unkeyed, unkeyed, "call"},
    series{counter::hook_failed, hooks, "hook"},
    series{counter::partial, partials, "answer"},
    series{counter::unlisted, unlisted_lists, "answer"},
    series{counter::asymmetric, asymmetries, "answer"},
    series{counter::drill_served, drills, "served"},
    series{counter::drill_uncovered, drills, "not_covered"},
    series{counter::covered, checks, "covered"},
    series{counter::uncovered, checks, "not_covered"},
};

}  // namespace

instruments::instruments(std::shared_ptr<metrics_sink> sink, std::string_view name,
                         std::string_view domain, double expiry_seconds)
    : sink_(std::move(sink)), name_(name), domain_(domain) {
  const auto labelled = [&](const char* label, const char* value) {
    return std::array<metrics::label, 3>{{{"name", name_}, {"domain", domain_}, {label, value}}};
  };
  for (const auto& [index, metric, value] : all_series)
    counters_[static_cast<std::size_t>(index)] =
        sink_->counter(metric.name, labelled(metric.label, value), metric.help);
  const auto impact = [&](const char* value) {
    return sink_->counter("holdfast_failover_user_impact_total", labelled("impact", value),
                          "did the caller get an answer");
  };
  impact_ = {impact("blocked"), impact("unblocked")};
  const auto upstream_seconds = [&](const char* result) {
    return sink_->histogram("holdfast_failover_upstream_seconds", labelled("result", result),
                            "how long the protected call took");
  };
  upstream_seconds_ = {upstream_seconds("failure"), upstream_seconds("success")};
  const auto operation_seconds = [&](const char* action) {
    return sink_->histogram("holdfast_failover_operation_seconds", labelled("action", action),
                            "how long keeping or recovering an answer took");
  };
  store_seconds_ = operation_seconds("store");
  recover_seconds_ = operation_seconds("recover");
  const std::array<metrics::label, 2> labels{{{"name", name_}, {"domain", domain_}}};
  payload_bytes_ = sink_->histogram("holdfast_failover_payload_bytes", labels,
                                    "size of the answers that were stored", metrics::bytes_buckets);
  age_seconds_ = sink_->histogram("holdfast_failover_served_age_seconds", labels,
                                  "age of the stored answers that were served", age_buckets);
  breaker_ =
      sink_->gauge("holdfast_failover_breaker_state", labels, "0 closed, 1 half open, 2 open");
  running_ = sink_->gauge("holdfast_failover_running", labels, "calls that have not ended");
  health_ =
      sink_->gauge("holdfast_failover_api_health", labels,
                   "answered calls of all calls, since the last report; 1 when there were none");
  stale_ratio_ = sink_->gauge("holdfast_failover_stale_ratio", labels,
                              "calls answered from the store of all calls, since the last report");
  health_->set(1);
  sink_
      ->gauge("holdfast_failover_expiry_seconds", labels,
              "configured expiry; 0 when a policy decides")
      ->set(expiry_seconds);
}

void instruments::add(counter index) {
  if (const auto& series = counters_[static_cast<std::size_t>(index)]) series->add();
  switch (index) {
    case counter::live:
    case counter::stale:
    case counter::fresh:
    case counter::substituted:
      impact_[1]->add();
      break;
    case counter::failed:
      impact_[0]->add();
      break;
    default:
      break;
  }
}

void instruments::upstream(std::chrono::steady_clock::duration duration, bool succeeded) {
  upstream_seconds_[succeeded ? 1 : 0]->observe(seconds(duration));
}

void instruments::exception(const std::string& type) {
  std::string_view label = type;
  {
    const std::scoped_lock lock(mutex_);
    if (!exception_types_.contains(type)) {
      if (exception_types_.size() >= max_exception_types) label = "other";
      else exception_types_.insert(type);
    }
  }
  sink_
      ->counter("holdfast_failover_exceptions_total",
                {{"name", name_}, {"domain", domain_}, {"exception_type", label}},
                "what upstreams threw, by type")
      ->add();
}

void instruments::gauges(breaker_state breaker, const point_numbers& numbers,
                         std::uint64_t running) {
  breaker_->set(static_cast<double>(breaker));
  running_->set(static_cast<double>(running));
  std::unique_lock lock(mutex_);
  const point_numbers last = std::exchange(last_numbers_, numbers);
  lock.unlock();
  const auto since = [&](std::uint64_t point_numbers::* number) {
    return static_cast<double>(numbers.*number - last.*number);
  };
  const double stale = since(&point_numbers::stale);
  const double served = since(&point_numbers::live) + since(&point_numbers::fresh) +
                        since(&point_numbers::substituted) + stale;
  const double all = served + since(&point_numbers::failed);
  health_->set(all == 0 ? 1 : served / all);
  stale_ratio_->set(all == 0 ? 0 : stale / all);
}

void instruments::outlook(const outlook_seconds& seconds) {
  const auto set = [&](const char* part, double value) {
    sink_
        ->gauge("holdfast_point_outlook_seconds",
                {{"name", name_}, {"domain", domain_}, {"part", part}},
                "time until this part of the answers that cover recent calls has expired")
        ->set(value);
  };
  set("first", seconds.first);
  set("half", seconds.half);
  set("most", seconds.most);
}

void instruments::coverage(double part) {
  sink_
      ->gauge("holdfast_point_coverage", {{"name", name_}, {"domain", domain_}},
              "part of the checked calls of the last hour that kept answers could have served")
      ->set(part);
}

void instruments::entries(std::uint64_t count) {
  sink_
      ->gauge("holdfast_failover_live_entries", {{"name", name_}, {"domain", domain_}},
              "entries in the store, expired ones included")
      ->set(static_cast<double>(count));
}

}  // namespace HOLDFAST_NAMESPACE::detail::failover
