#include "failover/instruments.hpp"

#include <utility>

namespace HOLDFAST_NAMESPACE {

namespace {

constexpr std::array<double, 14> age_buckets{0.001, 0.01, 0.1, 1, 10, 60, 300, 900, 3600, 14400, 43200, 86400, 604800, 2592000};
constexpr std::size_t most_exception_types = 30;

/// A tally's series: its name, and the value of the label that tells it from others of that name.
struct series {
  tally which;
  const char* name;
  const char* label;
  const char* value;
  const char* help;
};
constexpr const char* calls = "holdfast_failover_calls_total";
constexpr const char* calls_help = "protected calls, by how they ended";
constexpr const char* stores = "holdfast_failover_stores_total";
constexpr const char* stores_help = "live answers, by what was done to keep them";
constexpr const char* misses = "holdfast_failover_unserved_total";
constexpr const char* misses_help = "stored answers that were not served, by reason";
constexpr const char* refusals = "holdfast_failover_upstream_refused_total";
constexpr const char* refusals_help = "calls kept from the upstream, by reason";
constexpr std::array all_series{
    series{tally::live, calls, "result", "live", calls_help},
    series{tally::stale, calls, "result", "stale", calls_help},
    series{tally::fresh, calls, "result", "fresh", calls_help},
    series{tally::substituted, calls, "result", "substituted", calls_help},
    series{tally::failed, calls, "result", "failed", calls_help},
    series{tally::passed, calls, "result", "passed", calls_help},
    series{tally::invalidated, calls, "result", "invalidated", calls_help},
    series{tally::abandoned, calls, "result", "abandoned", calls_help},
    series{tally::stored, stores, "result", "stored", stores_help},
    series{tally::absent, stores, "result", "absent", stores_help},
    series{tally::ignored, stores, "result", "ignored", stores_help},
    series{tally::too_large, stores, "result", "too_large", stores_help},
    series{tally::store_failed, stores, "result", "failed", stores_help},
    series{tally::not_found, misses, "reason", "not_found", misses_help},
    series{tally::expired, misses, "reason", "expired", misses_help},
    series{tally::not_allowed, misses, "reason", "class_not_allowed", misses_help},
    series{tally::undecodable, misses, "reason", "undecodable", misses_help},
    series{tally::older, misses, "reason", "older_than_served", misses_help},
    series{tally::read_failed, misses, "reason", "read_failed", misses_help},
    series{tally::read_late, misses, "reason", "read_late", misses_help},
    series{tally::breaker_refused, refusals, "reason", "breaker", refusals_help},
    series{tally::limit_refused, refusals, "reason", "limit", refusals_help},
    series{tally::full_refused, refusals, "reason", "full", refusals_help},
    series{tally::late, "holdfast_failover_late_total", "answer", "waited_for",
           "calls that missed their deadline, and those that answered later"},
    series{tally::late_stored, "holdfast_failover_late_total", "answer", "stored",
           "calls that missed their deadline, and those that answered later"},
    series{tally::retries, "holdfast_failover_retries_total", "made", "yes",
           "attempts after the first, and those not made for want of budget"},
    series{tally::no_budget, "holdfast_failover_retries_total", "made", "no",
           "attempts after the first, and those not made for want of budget"},
    series{tally::coalesced, "holdfast_failover_coalesced_total", "kind", "call", "callers that shared another's call"},
    series{tally::refreshed, "holdfast_failover_refreshes_total", "result", "done", "background refreshes"},
    series{tally::refresh_failed, "holdfast_failover_refreshes_total", "result", "failed", "background refreshes"},
    series{tally::unkeyed, "holdfast_failover_unkeyed_total", "kind", "call", "calls that got no key, and were not protected"},
    series{tally::hook_failed, "holdfast_failover_hook_failures_total", "kind", "hook", "hooks that threw"},
    series{tally::partial, "holdfast_failover_partial_total", "kind", "answer", "answers of which a slice was missing"},
    series{tally::unlisted, "holdfast_failover_unlisted_total", "kind", "answer", "lists that were to be recovered and had no manifest"},
    series{tally::asymmetric, "holdfast_failover_asymmetric_total", "kind", "answer",
           "live answers with a slice that their splitter would not look for"},
};

}  // namespace

instruments::instruments(std::shared_ptr<metrics_sink> sink, std::string_view name, std::string_view domain, double expiry_seconds)
    : sink_(std::move(sink)), name_(name), domain_(domain) {
  const auto labelled = [&](const char* label, const char* value) {
    return std::array<metrics::label, 3>{{{"name", name_}, {"domain", domain_}, {label, value}}};
  };
  for (const series& each : all_series)
    counters_[static_cast<std::size_t>(each.which)] = sink_->counter(each.name, labelled(each.label, each.value), each.help);
  const char* impact = "did the caller get an answer";
  impact_[0] = sink_->counter("holdfast_failover_user_impact_total", labelled("impact", "blocked"), impact);
  impact_[1] = sink_->counter("holdfast_failover_user_impact_total", labelled("impact", "unblocked"), impact);
  const char* upstream = "how long the protected call took";
  upstream_seconds_[0] = sink_->histogram("holdfast_failover_upstream_seconds", labelled("result", "failure"), upstream);
  upstream_seconds_[1] = sink_->histogram("holdfast_failover_upstream_seconds", labelled("result", "success"), upstream);
  const char* operation = "how long keeping or recovering an answer took";
  store_seconds_ = sink_->histogram("holdfast_failover_operation_seconds", labelled("action", "store"), operation);
  recover_seconds_ = sink_->histogram("holdfast_failover_operation_seconds", labelled("action", "recover"), operation);
  const std::array<metrics::label, 2> plain{{{"name", name_}, {"domain", domain_}}};
  payload_bytes_ =
      sink_->histogram("holdfast_failover_payload_bytes", plain, "size of the answers that were stored", metrics::bytes_buckets);
  age_seconds_ = sink_->histogram("holdfast_failover_served_age_seconds", plain, "age of the stored answers that were served", age_buckets);
  breaker_ = sink_->gauge("holdfast_failover_breaker_state", plain, "0 closed, 1 half open, 2 open");
  running_ = sink_->gauge("holdfast_failover_running", plain, "calls that have not ended");
  health_ =
      sink_->gauge("holdfast_failover_api_health", plain, "answered calls of all calls, since the last report; 1 when there were none");
  stale_ratio_ = sink_->gauge("holdfast_failover_stale_ratio", plain, "calls answered from the store of all calls, since the last report");
  health_->set(1);
  sink_->gauge("holdfast_failover_expiry_seconds", plain, "configured expiry; 0 when a policy decides")->set(expiry_seconds);
}

void instruments::add(tally which) {
  const auto& counter = counters_[static_cast<std::size_t>(which)];
  if (counter) counter->add();
  switch (which) {
    case tally::live:
    case tally::stale:
    case tally::fresh:
    case tally::substituted:
      impact_[1]->add();
      break;
    case tally::failed:
      impact_[0]->add();
      break;
    default:
      break;
  }
}

void instruments::upstream(std::chrono::steady_clock::duration took, bool succeeded) {
  upstream_seconds_[succeeded ? 1 : 0]->observe(seconds(took));
}

void instruments::exception(const std::string& type) {
  std::string_view shown = type;
  {
    const std::scoped_lock lock(mutex_);
    if (!exception_types_.contains(type)) {
      if (exception_types_.size() >= most_exception_types) shown = "other";
      else exception_types_.insert(type);
    }
  }
  sink_
      ->counter("holdfast_failover_exceptions_total", {{"name", name_}, {"domain", domain_}, {"exception_type", shown}},
                "what upstreams threw, by type")
      ->add();
}

void instruments::gauges(breaker_state breaker, const point_numbers& now, std::uint64_t running) {
  breaker_->set(static_cast<double>(breaker));
  running_->set(static_cast<double>(running));
  point_numbers before;
  {
    const std::scoped_lock lock(mutex_);
    before = std::exchange(before_, now);
  }
  const auto since = [&](std::uint64_t point_numbers::* which) { return static_cast<double>(now.*which - before.*which); };
  const double stale = since(&point_numbers::stale);
  const double served = since(&point_numbers::live) + since(&point_numbers::fresh) + since(&point_numbers::substituted) + stale;
  const double all = served + since(&point_numbers::failed);
  health_->set(all == 0 ? 1 : served / all);
  stale_ratio_->set(all == 0 ? 0 : stale / all);
}

void instruments::entries(std::uint64_t counted) {
  sink_->gauge("holdfast_failover_live_entries", {{"name", name_}, {"domain", domain_}}, "entries in the store, expired ones included")
      ->set(static_cast<double>(counted));
}

}  // namespace HOLDFAST_NAMESPACE
