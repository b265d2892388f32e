#include "serve/api/point_json.hpp"

#include <array>
#include <string>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

void write_numbers(json_writer& out, const point_numbers& n) {
  const std::array<std::pair<const char*, std::uint64_t>, 25> members{{
      {"started", n.started},
      {"live", n.live},
      {"stale", n.stale},
      {"fresh", n.fresh},
      {"substituted", n.substituted},
      {"failed", n.failed},
      {"passed", n.passed},
      {"invalidated", n.invalidated},
      {"abandoned", n.abandoned},
      {"stored", n.stored},
      {"absent", n.absent},
      {"storeFailed", n.store_failed},
      {"tooLarge", n.too_large},
      {"notFound", n.not_found},
      {"expired", n.expired},
      {"notAllowed", n.not_allowed},
      {"undecodable", n.undecodable},
      {"older", n.older},
      {"readFailed", n.read_failed},
      {"readLate", n.read_late},
      {"late", n.late},
      {"retries", n.retries},
      {"breakerRefused", n.breaker_refused},
      {"limitRefused", n.limit_refused},
      {"unkeyed", n.unkeyed},
  }};
  out.begin_object();
  for (const auto& [name, value] : members) out.member(name, value);
  out.end_object();
}

void write_optional_duration(json_writer& out, const char* name,
                             const std::optional<std::chrono::microseconds>& duration) {
  if (duration) out.member(name, point_duration(*duration));
}

void write_time(json_writer& out, const char* name, const std::optional<timestamp>& time) {
  out.key(name);
  if (time) out.time(*time);
  else out.null();
}

void write_part(json_writer& out, const char* name, const std::optional<double>& part) {
  out.key(name);
  if (part) out.number(*part);
  else out.null();
}

void write_breaker(json_writer& out, const breaker_options& breaker) {
  out.begin_object()
      .member("window", breaker.window)
      .member("minimum", breaker.minimum)
      .member("failureRate", breaker.failure_rate)
      .member("openFor", point_duration(breaker.open_for))
      .member("probes", breaker.probes);
  write_optional_duration(out, "slow", breaker.slow);
  out.member("slowRate", breaker.slow_rate).end_object();
}

void write_retry(json_writer& out, const retry_options& retry) {
  out.begin_object()
      .member("attempts", retry.attempts)
      .member("backoff", point_duration(retry.backoff))
      .member("maxBackoff", point_duration(retry.max_backoff))
      .member("budget", retry.budget)
      .end_object();
}

/// The time at which something expires, and how long that takes.
void write_expiry(json_writer& out, const char* name, const std::optional<timestamp>& time,
                  timestamp now) {
  out.key(name);
  if (!time) {
    out.null();
    return;
  }
  out.begin_object().member("at", *time).member("in", point_duration(*time - now)).end_object();
}

void write_steps(json_writer& out, const char* name,
                 const std::vector<point_outlook::step>& steps) {
  out.key(name).begin_array();
  for (const auto& step : steps)
    out.begin_object().member("until", step.until).member("part", step.part).end_object();
  out.end_array();
}

void write_summary(json_writer& out, const char* name, const duration_summary& summary) {
  out.key(name)
      .begin_object()
      .member("count", summary.count)
      .member("median", point_duration(summary.median))
      .member("p95", point_duration(summary.p95))
      .member("longest", point_duration(summary.longest))
      .end_object();
}

}  // namespace

std::string point_duration(std::chrono::microseconds duration) {
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(duration).count();
  return milliseconds % 1000 == 0 ? std::to_string(milliseconds / 1000) + "s"
                                  : std::to_string(milliseconds) + "ms";
}

void write_point(json_writer& out, const point_status& status) {
  out.begin_object()
      .member("name", status.name)
      .member("domain", status.effective_name)
      .member("expiry", status.expiry)
      .member("payloadClass", status.payload_class)
      .member("enabled", status.enabled)
      .member("breaker", to_string(status.breaker))
      .member("running", status.running)
      .key("numbers");
  write_numbers(out, status.numbers);
  out.end_object();
}

void write_rules(json_writer& out, const point_options& options) {
  out.begin_object()
      .member("domain", options.domain)
      .member("enabled", options.enabled)
      .member("expiry", options.expiry.text())
      .member("expiryJitter", options.expiry_jitter)
      .member("serveOlder", options.serve_older)
      .member("late", options.late == late_call::keep ? "keep" : "cancel")
      .member("singleFlight", options.single_flight)
      .member("concurrencyLimit", options.concurrency_limit)
      .member("maxPayload", options.max_payload)
      .member("payloadClass", options.payload_class)
      .member("writeBehind", options.write_behind.value_or(true))
      .member("keyStyle", options.key_style == holdfast::key::style::exact ? "exact" : "escaped")
      .member("exceptionPolicy",
              to_string(options.exception_policy.value_or(exception_policy::rethrow)));
  if (!options.key_generator.empty()) out.member("keyGenerator", options.key_generator);
  write_optional_duration(out, "softExpiry", options.soft_expiry);
  write_optional_duration(out, "deadline", options.deadline);
  write_optional_duration(out, "softTimeout", options.soft_timeout);
  out.key("vary").begin_array();
  for (const auto& dimension : options.vary) out.text(dimension);
  out.end_array();
  if (options.retry) {
    out.key("retry");
    write_retry(out, *options.retry);
  }
  if (options.breaker) {
    out.key("breaker");
    write_breaker(out, *options.breaker);
  }
  out.end_object();
}

void write_outlook(json_writer& out, const point_outlook& outlook) {
  out.begin_object()
      .member("point", outlook.point)
      .member("at", outlook.time)
      .member("says", explain(outlook))
      .member("calls", outlook.calls)
      .member("sampledKeys", outlook.sampled_keys);
  write_part(out, "covered", outlook.covered);
  write_expiry(out, "first", outlook.first, outlook.time);
  write_expiry(out, "half", outlook.half, outlook.time);
  write_expiry(out, "most", outlook.most, outlook.time);
  write_steps(out, "callsCovered", outlook.calls_covered);
  write_steps(out, "entriesLeft", outlook.entries_left);
  out.member("entries", outlook.entries)
      .member("entriesAtLeast", outlook.entries_at_least)
      .end_object();
}

void write_coverage(json_writer& out, const point_coverage& coverage) {
  out.begin_object().member("point", coverage.point);
  write_part(out, "part", coverage.part());
  out.member("checked", coverage.checked)
      .member("covered", coverage.covered)
      .member("notFound", coverage.not_found)
      .member("expired", coverage.expired)
      .member("notServable", coverage.not_servable)
      .member("unread", coverage.unread)
      .member("undecided", coverage.undecided)
      .end_object();
}

void write_drill(json_writer& out, const drill_report& drill) {
  out.begin_object()
      .member("point", drill.point)
      .member("part", drill.options.part)
      .member("length", point_duration(drill.options.length))
      .member("whatIf", drill.options.what_if)
      .member("started", drill.started)
      .member("ends", drill.ends)
      .member("end", to_string(drill.end))
      .member("calls", drill.calls)
      .member("selected", drill.selected)
      .member("served", drill.served)
      .member("notCovered", drill.not_covered);
  write_summary(out, "ages", drill.ages);
  write_summary(out, "latency", drill.latency);
  out.end_object();
}

void write_decision(json_writer& out, const decision& reported) {
  out.begin_object()
      .member("ref", reported.ref)
      .member("says", explain(reported))
      .member("at", reported.time)
      .member("point", reported.point)
      .member("key", reported.key)
      .member("rule", to_string(reported.rule))
      .member("origin", to_string(reported.origin))
      .member("cause", to_string(reported.cause))
      .member("exceptionType", reported.exception_type)
      .member("miss", to_string(reported.miss));
  write_time(out, "asOf", reported.as_of);
  write_time(out, "expires", reported.expires);
  out.key("breaker");
  if (reported.breaker) out.text(to_string(*reported.breaker));
  else out.null();
  out.member("duration", point_duration(reported.duration))
      .member("waited", point_duration(reported.waited))
      .member("attempts", reported.attempts)
      .end_object();
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
