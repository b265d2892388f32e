#include "redis/counters.hpp"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::redis {

namespace {

/// Returns null without a sink.
std::shared_ptr<metrics::counter> counter_metric(
    const std::shared_ptr<metrics_sink>& sink, std::string_view name, std::string_view help,
    std::initializer_list<metrics::label> labels = {}) {
  return sink ? sink->counter(name, labels, help) : nullptr;
}

std::shared_ptr<metrics::gauge> gauge_metric(const std::shared_ptr<metrics_sink>& sink,
                                             std::string_view name, std::string_view help) {
  return sink ? sink->gauge(name, {}, help) : nullptr;
}

template <std::size_t... I>
std::array<counter, sizeof...(I)> error_counters(const std::shared_ptr<metrics_sink>& sink,
                                                 std::index_sequence<I...> /*codes*/) {
  return {counter(counter_metric(sink, "holdfast_redis_errors_total", "Commands that failed",
                                 {{"code", to_string(static_cast<errc>(I))}}))...};
}

constexpr std::string_view redirects = "holdfast_redis_redirects_total";
constexpr std::string_view redirects_help = "Redirects of a Cluster that were followed";

}  // namespace

counters::counters(std::shared_ptr<metrics_sink> target)
    : sink(target ? isolate(std::move(target)) : nullptr),
      calls(counter_metric(sink, "holdfast_redis_calls_total", "Calls and pipelines")),
      commands(
          counter_metric(sink, "holdfast_redis_commands_total", "Commands in calls and pipelines")),
      moved(counter_metric(sink, redirects, redirects_help, {{"kind", "moved"}})),
      asked(counter_metric(sink, redirects, redirects_help, {{"kind", "ask"}})),
      retried(counter_metric(sink, "holdfast_redis_retries_total",
                             "Retries of commands that the server had not run")),
      resent(counter_metric(sink, "holdfast_redis_resent_total",
                            "Idempotent commands sent again after a lost reply")),
      in_doubt(counter_metric(sink, "holdfast_redis_in_doubt_total",
                              "Commands reported as in doubt after a lost reply")),
      whole_scripts(counter_metric(sink, "holdfast_redis_whole_scripts_total",
                                   "Scripts sent with their text")),
      refreshes(
          counter_metric(sink, "holdfast_redis_refreshes_total", "Refreshes of the slot map")),
      connected(counter_metric(sink, "holdfast_redis_connections_total", "Connections opened")),
      lost(counter_metric(sink, "holdfast_redis_connections_lost_total", "Connections that broke")),
      in_flight(gauge_metric(sink, "holdfast_redis_in_flight", "Calls that are running now")),
      open(gauge_metric(sink, "holdfast_redis_connections", "Connections open now")),
      errors(error_counters(
          sink, std::make_index_sequence<std::tuple_size_v<decltype(numbers::errors)>>())),
      seconds(sink ? sink->histogram("holdfast_redis_call_seconds", {},
                                     "Duration of calls and pipelines")
                   : nullptr) {}

void counters::add_latency(std::chrono::steady_clock::duration elapsed) noexcept {
  const auto us = static_cast<std::uint64_t>(std::max<std::int64_t>(
      0, std::chrono::duration_cast<std::chrono::microseconds>(elapsed).count()));
  const auto bucket = std::min(static_cast<std::size_t>(std::bit_width(us)), latency.size() - 1);
  latency[bucket].fetch_add(1, std::memory_order_relaxed);
  if (seconds) seconds->observe(std::chrono::duration<double>(elapsed).count());
}

numbers counters::read() const noexcept {
  numbers result{.calls = calls.read(),
                 .commands = commands.read(),
                 .in_flight = in_flight.read(),
                 .moved = moved.read(),
                 .asked = asked.read(),
                 .retried = retried.read(),
                 .resent = resent.read(),
                 .in_doubt = in_doubt.read(),
                 .whole_scripts = whole_scripts.read(),
                 .refreshes = refreshes.read(),
                 .connected = connected.read(),
                 .lost = lost.read(),
                 .open = open.read()};
  std::transform(errors.begin(), errors.end(), result.errors.begin(),
                 [](const counter& by_code) { return by_code.read(); });
  std::transform(latency.begin(), latency.end(), result.latency.begin(),
                 [](const auto& bucket) { return bucket.load(std::memory_order_relaxed); });
  return result;
}

}  // namespace HOLDFAST_NAMESPACE::detail::redis

namespace HOLDFAST_NAMESPACE::redis {

std::uint64_t numbers::errors_of(errc code) const noexcept {
  return errors[static_cast<std::size_t>(code)];
}

std::chrono::microseconds numbers::latency_at(double quantile) const noexcept {
  std::uint64_t total = 0;
  for (const auto count : latency) total += count;
  double remaining = quantile * static_cast<double>(total);
  std::size_t bucket = 0;
  for (; bucket + 1 < latency.size(); ++bucket) {
    remaining -= static_cast<double>(latency[bucket]);
    if (remaining <= 0) break;
  }
  return std::chrono::microseconds(std::int64_t{1} << bucket);
}

}  // namespace HOLDFAST_NAMESPACE::redis
