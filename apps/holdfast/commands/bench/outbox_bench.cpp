// `holdfast bench outbox`: publishing, and delivery end to end.

#include <holdfast/outbox.hpp>
#include <holdfast/worker.hpp>

#include "commands/bench/bench_command.hpp"

#include <atomic>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::cli {

namespace {

using outbox_clock = std::chrono::steady_clock;

/// A row stops publishing when it has published this many bytes: the events stay on the server
/// until the end of the benchmark.
constexpr std::size_t max_published_bytes = std::size_t{256} << 20U;

constexpr const char* published_at_header = "published_at";

event make_bench_event(const bench_settings& settings) {
  event created;
  created.type = "bench.created";
  created.payload = make_bench_payload(settings.payload_bytes);
  return created;
}

void check_bench_receipts(const std::vector<receipt>& receipts) {
  for (const receipt& result : receipts) {
    if (result.problem) throw error(*result.problem);
  }
}

/// Measures `publish` or `publish_all` on an outbox that no worker reads.
void measure_publishing(bench_run& run, const outbox& target, std::size_t events_per_call,
                        bench_workload workload) {
  const auto& settings = run.settings();
  const event prepared = make_bench_event(settings);
  const std::size_t most = payloads_within(max_published_bytes, settings, 100'000'000);
  std::atomic<std::size_t> published = 0;
  workload.operation = [&](std::size_t) -> std::uint64_t {
    if (published.fetch_add(events_per_call) >= most) return 0;
    if (events_per_call == 1) (void)target.publish(prepared);
    else check_bench_receipts(target.publish_all(std::vector<event>(events_per_call, prepared)));
    return events_per_call;
  };
  run.measure(workload);
}

/// A worker that measures the time from publishing to the handler.
class timing_worker {
 public:
  timing_worker(const outbox& source, std::size_t concurrency)
      : worker_(source, [this](const delivery& received) { return handle(received); },
                {.concurrency = concurrency}),
        thread_([this](const std::stop_token& stop) { worker_.run(stop); }) {}
  timing_worker(const timing_worker&) = delete;
  timing_worker& operator=(const timing_worker&) = delete;

  [[nodiscard]] std::uint64_t delivered() const { return delivered_; }
  /// Waits until so many events are delivered. Returns false after `timeout`.
  [[nodiscard]] bool wait_for(std::uint64_t count, std::chrono::milliseconds timeout) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, timeout, [&] { return delivered_ >= count; });
  }
  /// Stops the worker and returns the measured times. Throws if no event was delivered.
  [[nodiscard]] latency_histogram stop() {
    thread_.request_stop();
    thread_.join();
    if (delivered_ == 0) {
      const auto health = worker_.health();
      throw error(errc::unavailable, health.problem.empty()
                                         ? "the worker received no event; try more --seconds"
                                         : health.problem);
    }
    return latencies_;
  }

 private:
  outcome handle(const delivery& received) {
    const auto now = outbox_clock::now().time_since_epoch();
    std::int64_t published_at = 0;
    const std::string& text = received.event().headers.at(published_at_header);
    std::from_chars(text.data(), text.data() + text.size(), published_at);
    {
      const std::scoped_lock lock(mutex_);
      latencies_.add(now - std::chrono::nanoseconds(published_at));
      ++delivered_;
    }
    changed_.notify_all();
    return outcome::done();
  }

  std::mutex mutex_{};
  std::condition_variable changed_{};
  latency_histogram latencies_{};
  std::atomic<std::uint64_t> delivered_ = 0;
  worker worker_;
  std::jthread thread_;
};

void set_publish_time(event& published) {
  const auto now = std::chrono::nanoseconds(outbox_clock::now().time_since_epoch());
  published.headers[published_at_header] = std::to_string(now.count());
}

/// Publishes batches while a worker delivers them. Publishers wait while the worker is too far
/// behind.
void measure_delivery(bench_run& run, const outbox& target) {
  const auto& settings = run.settings();
  const std::size_t batch = batch_size(settings);
  const std::size_t max_backlog =
      std::max(batch, payloads_within(std::size_t{64} << 20U, settings, 2'000));
  const event prepared = make_bench_event(settings);
  timing_worker receiver(target, settings.threads);
  std::atomic<std::uint64_t> published = 0;
  const auto publish_batch = [&](std::size_t) -> std::uint64_t {
    if (published - receiver.delivered() > max_backlog) {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      return 1;  // goes on; what the publishers count is not printed
    }
    std::vector<event> events(batch, prepared);
    for (event& next : events) set_publish_time(next);
    check_bench_receipts(target.publish_all(std::move(events)));
    published += batch;
    return batch;
  };
  const auto start = outbox_clock::now();
  (void)measure({.name = "deliver", .unit = "deliveries/s", .operation = publish_batch}, settings,
                run.signals());
  const std::uint64_t delivered = receiver.delivered();
  const double seconds = std::chrono::duration<double>(outbox_clock::now() - start).count();
  run.print({.name = "deliver",
             .unit = "deliveries/s",
             .count = delivered,
             .rate = static_cast<double>(delivered) / seconds,
             .latencies = receiver.stop()});
}

/// Publishes one event, waits until it is delivered to an idle worker, and so on.
void measure_single_delivery(bench_run& run, const outbox& target) {
  bench_settings settings = run.settings();
  settings.threads = 1;
  event prepared = make_bench_event(settings);
  timing_worker receiver(target, 1);
  std::uint64_t published = 0;
  const auto publish_and_wait = [&](std::size_t) -> std::uint64_t {
    set_publish_time(prepared);
    (void)target.publish(prepared);
    if (!receiver.wait_for(++published, std::chrono::seconds(30)))
      throw error(errc::unavailable, "an event was not delivered within 30 seconds");
    return 1;
  };
  bench_row row =
      measure({.name = "deliver_one", .unit = "deliveries/s", .operation = publish_and_wait},
              settings, run.signals());
  row.latencies = receiver.stop();
  run.print(row);
}

void measure_outbox_rows(bench_run& run, private_area& area) {
  const auto& settings = run.settings();
  const outbox_options options{.inline_limit = settings.payload_bytes};
  measure_publishing(run, area.open_outbox("publish", options), 1,
                     {.name = "publish", .unit = "publishes/s"});
  measure_publishing(run, area.open_outbox("publish_batch", options), batch_size(settings),
                     {.name = "publish_batch", .unit = "events/s"});
  measure_delivery(run, area.open_outbox("deliver", options));
  measure_single_delivery(run, area.open_outbox("deliver_one", options));
}

}  // namespace

void add_outbox_bench(command group) {
  add_bench_command(
      group,
      {.name = "outbox",
       .summary = "Events of an outbox: publishing, and delivery end to end",
       .about = "publish: one event in a call; publish_batch: up to 100. deliver: events are "
                "published and delivered to a worker at the same time; deliver_one: one event at a "
                "time, to an idle worker. Their p50 and p99 are the time from publishing to the "
                "handler. A row that has published 256 MB ends early.",
       .url_option = "--outbox",
       .url_summary = "Where it is: redis://host:6379, redis+cluster://host:7000, sqlite:app.db, "
                      "postgresql://host/name, mysql://host/name, memory:"},
      measure_outbox_rows);
}

}  // namespace holdfast::cli
