#include "redis/counters.hpp"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

namespace HOLDFAST_NAMESPACE::redis {

namespace {

/// Nobody listens: then there is nothing to be told.
std::shared_ptr<metrics::counter> counter_of(const std::shared_ptr<metrics_sink>& sink, std::string_view name, std::string_view help,
                                             std::initializer_list<metrics::label> labels = {}) {
  return sink ? sink->counter(name, labels, help) : nullptr;
}

std::shared_ptr<metrics::gauge> gauge_of(const std::shared_ptr<metrics_sink>& sink, std::string_view name, std::string_view help) {
  return sink ? sink->gauge(name, {}, help) : nullptr;
}

template <std::size_t... I>
std::array<tally, sizeof...(I)> error_tallies(const std::shared_ptr<metrics_sink>& sink, std::index_sequence<I...> /*codes*/) {
  return {tally(counter_of(sink, "holdfast_redis_errors_total", "Commands that failed", {{"code", to_string(static_cast<errc>(I))}}))...};
}

constexpr std::string_view redirects = "holdfast_redis_redirects_total";
constexpr std::string_view redirects_help = "Redirects of a Cluster that were followed";

}  // namespace

counters::counters(std::shared_ptr<metrics_sink> given)
    : sink(given ? isolate(std::move(given)) : nullptr),
      calls(counter_of(sink, "holdfast_redis_calls_total", "Calls and pipelines")),
      commands(counter_of(sink, "holdfast_redis_commands_total", "Commands in them")),
      moved(counter_of(sink, redirects, redirects_help, {{"kind", "moved"}})),
      asked(counter_of(sink, redirects, redirects_help, {{"kind", "ask"}})),
      retried(counter_of(sink, "holdfast_redis_retries_total", "Commands tried again that had not been run")),
      resent(counter_of(sink, "holdfast_redis_resent_total", "Idempotent commands sent again after their reply was lost")),
      in_doubt(counter_of(sink, "holdfast_redis_in_doubt_total", "Commands whose reply was lost, reported as such")),
      whole_scripts(counter_of(sink, "holdfast_redis_whole_scripts_total", "Scripts sent with their text")),
      refreshes(counter_of(sink, "holdfast_redis_refreshes_total", "Refreshes of the slot map")),
      connected(counter_of(sink, "holdfast_redis_connections_total", "Connections made")),
      lost(counter_of(sink, "holdfast_redis_connections_lost_total", "Connections that broke")),
      in_flight(gauge_of(sink, "holdfast_redis_in_flight", "Calls that run now")),
      open(gauge_of(sink, "holdfast_redis_connections", "Connections now")),
      errors(error_tallies(sink, std::make_index_sequence<std::tuple_size_v<decltype(numbers::errors)>>())),
      seconds(sink ? sink->histogram("holdfast_redis_call_seconds", {}, "How long calls and pipelines took") : nullptr) {}

void counters::add_latency(std::chrono::steady_clock::duration took) noexcept {
  const auto us =
      static_cast<std::uint64_t>(std::max<std::int64_t>(0, std::chrono::duration_cast<std::chrono::microseconds>(took).count()));
  const auto bucket = std::min(static_cast<std::size_t>(std::bit_width(us)), latency.size() - 1);
  latency[bucket].fetch_add(1, std::memory_order_relaxed);
  if (seconds) seconds->observe(std::chrono::duration<double>(took).count());
}

numbers counters::read() const noexcept {
  numbers n{.calls = calls.read(),
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
  std::transform(errors.begin(), errors.end(), n.errors.begin(), [](const tally& each) { return each.read(); });
  std::transform(latency.begin(), latency.end(), n.latency.begin(), [](const auto& each) { return each.load(std::memory_order_relaxed); });
  return n;
}

}  // namespace HOLDFAST_NAMESPACE::redis
