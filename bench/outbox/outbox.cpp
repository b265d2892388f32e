#include "bench/outbox/outbox.hpp"

#include <holdfast/database.hpp>
#include <holdfast/error.hpp>
#include <holdfast/outbox.hpp>
#include <holdfast/redis.hpp>
#include <holdfast/worker.hpp>

#include "bench/outbox/raw_outbox.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <utility>

namespace holdfast::bench {

namespace {

using steady = std::chrono::steady_clock;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::size_t batch_size = 100;

double seconds_since(steady::time_point start) {
  return std::chrono::duration<double>(steady::now() - start).count();
}
double microseconds_since(steady::time_point start) { return seconds_since(start) * 1e6; }

std::vector<event> make_events(std::size_t count, const std::string& key = {}) {
  static const std::string payload = R"({"seat":12,"text":")" + std::string(180, 'x') + R"("})";
  std::vector<event> events(count);
  for (auto& created : events) {
    created.type = "ticket.created";
    created.key = key;
    created.payload = payload;
  }
  return events;
}

void check_receipts(const std::vector<receipt>& receipts) {
  for (const auto& result : receipts) {
    if (result.problem) throw error(*result.problem);
  }
}

/// The outbox that is measured, and its floor on the same server. Removes all keys when it is
/// destroyed.
class bench_outbox {
 public:
  explicit bench_outbox(const outbox_bench_options& options)
      : tag_("{holdfast-bench-" + std::to_string(::getpid())),
        prefix_(tag_ + ":outbox}"),
        client_(options.url),
        address_(client_.is_cluster() ? std::string() : client_.nodes().front().address),
        outbox_(holdfast::open(options.url).outbox({.prefix = prefix_, .lane_alarm = 2'000'000})),
        raw_(record_raw_outbox(batch_size)) {}
  bench_outbox(const bench_outbox&) = delete;
  bench_outbox& operator=(const bench_outbox&) = delete;
  ~bench_outbox() {
    try {
      raw_.remove_keys(tag_);
    } catch (...) {
      // The server is not reachable any more, so the keys cannot be removed.
    }
  }

  [[nodiscard]] const holdfast::outbox& ours() const { return outbox_; }
  raw_outbox& raw() { return raw_; }

  /// Records the scripts for batches of `events` events. The result has its own connection.
  [[nodiscard]] raw_outbox record_raw_outbox(std::size_t events) const {
    if (address_.empty())
      throw error(errc::invalid_argument,
                  "hiredis connects to one server; give redis:// or redis+unix://");
    const auto commands = record_commands(address_, [&] {
      check_receipts(outbox_.publish_all(make_events(events)));
      const claimed batch = outbox_.claim({.most = events});
      std::vector<settlement> acks;
      for (const auto& item : batch.events) acks.push_back({.id = item.event.id});
      (void)outbox_.settle(0, batch.fence, std::move(acks));
    });
    // The first time, scripts are sent with their text. Run it again until they are not, and take
    // the last three.
    std::vector<raw_redis::arguments> scripts;
    for (const auto& command : commands) {
      if (command.size() > 3 && command[0] == "EVALSHA") scripts.push_back(command);
    }
    if (scripts.size() < 3) return record_raw_outbox(events);
    const auto end = scripts.end();
    return {address_, *(end - 3), *(end - 2), *(end - 1)};
  }

  /// The list on which an idle worker waits.
  [[nodiscard]] std::string wake_list() const { return prefix_ + ":wake"; }

  void publish(std::size_t events, const std::string& key = {}) {
    for (std::size_t i = 0; i < events; i += batch_size)
      check_receipts(outbox_.publish_all(make_events(std::min(batch_size, events - i), key)));
  }
  /// Removes all events.
  void clear() { raw_.remove_keys(prefix_); }

 private:
  std::string tag_;
  std::string prefix_;
  redis::client client_;
  std::string address_;
  holdfast::outbox outbox_;
  raw_outbox raw_;
};

/// Calls `work` for each batch of `events` and returns events per second.
template <class Work>
double rate_of_batches(std::size_t events, const Work& work) {
  const auto start = steady::now();
  for (std::size_t i = 0; i < events; i += batch_size) work();
  return static_cast<double>(events) / seconds_since(start);
}

/// A worker whose handler only counts.
worker make_counting_worker(const outbox& source, std::atomic<std::uint64_t>& delivered,
                            worker_options options) {
  return worker(
      source,
      [&delivered](const delivery&) {
        delivered.fetch_add(1, std::memory_order_relaxed);
        return outcome::done();
      },
      std::move(options));
}

/// Figures of all rounds, in events per second or microseconds of the server per event.
struct throughput_figures {
  std::vector<double> publish, end_to_end, server_time;
  std::vector<double> raw_publish, raw_claim, raw_settle, raw_server_time;
};

/// Sends the three scripts of all events by hiredis, one kind after the other.
void measure_raw_round(raw_outbox& raw, std::size_t events, throughput_figures& figures) {
  const double server_start = raw.server_seconds();
  figures.raw_publish.push_back(rate_of_batches(events, [&] { raw.publish(); }));
  double claim_seconds = 0;
  double settle_seconds = 0;
  for (std::size_t remaining = events; remaining > 0;) {
    auto start = steady::now();
    const auto claimed_count = raw.claim();
    claim_seconds += seconds_since(start);
    if (claimed_count == 0) break;
    remaining -= std::min(remaining, claimed_count);
    start = steady::now();
    raw.settle();
    settle_seconds += seconds_since(start);
  }
  const auto count = static_cast<double>(events);
  figures.raw_claim.push_back(count / claim_seconds);
  figures.raw_settle.push_back(count / settle_seconds);
  figures.raw_server_time.push_back((raw.server_seconds() - server_start) * 1e6 / count);
}

/// Publishes while a worker delivers, until everything is acknowledged.
void measure_end_to_end_round(bench_outbox& target, std::size_t events,
                              throughput_figures& figures) {
  const double server_start = target.raw().server_seconds();
  const auto count = static_cast<double>(events);
  std::atomic<std::uint64_t> delivered = 0;
  auto counter =
      make_counting_worker(target.ours(), delivered, {.concurrency = 1, .compete = true});
  const auto start = steady::now();
  {
    std::jthread running([&](const std::stop_token& stop) { counter.run(stop); });
    target.publish(events);
    while (counter.count().done < events) std::this_thread::sleep_for(microseconds(200));
    figures.end_to_end.push_back(count / seconds_since(start));
  }
  figures.server_time.push_back((target.raw().server_seconds() - server_start) * 1e6 / count);
}

void add_throughput(bench_outbox& target, const outbox_bench_options& options,
                    std::vector<row>& rows) {
  throughput_figures figures;
  for (std::size_t round = 0; round < options.rounds; ++round) {
    figures.publish.push_back(rate_of_batches(options.events, [&] { target.publish(batch_size); }));
    target.clear();
    measure_raw_round(target.raw(), options.events, figures);
    target.clear();
    measure_end_to_end_round(target, options.events, figures);
    target.clear();
  }
  const double raw_publish = median(figures.raw_publish);
  const double raw_claim = median(figures.raw_claim);
  const double raw_settle = median(figures.raw_settle);
  const double end_to_end = median(figures.end_to_end);
  rows.push_back(make_row("outbox.publish_batch", median(figures.publish), raw_publish, "events/s",
                          0.8, bound::at_least));
  rows.push_back(make_row("outbox.end_to_end", end_to_end,
                          std::min({raw_publish, raw_claim, raw_settle}), "events/s", 0.7,
                          bound::at_least));
  // Redis runs one script at a time. The whole cannot be faster than its parts in sequence.
  const double parts_in_sequence = 1 / (1 / raw_publish + 1 / raw_claim + 1 / raw_settle);
  rows.push_back(make_row("outbox.end_to_end_of_sum", end_to_end, parts_in_sequence, "events/s",
                          0.7, bound::at_least));
  rows.push_back(make_row("outbox.server_cpu", median(figures.server_time),
                          median(figures.raw_server_time), "us/event", 1.5));
}

/// Events of one key, delivered in runs of 50 and one at a time.
void add_hot_key(bench_outbox& target, const outbox_bench_options& options,
                 std::vector<row>& rows) {
  const auto rate_of_drain = [&](std::size_t events, std::size_t run) {
    target.publish(events, "hot");
    std::atomic<std::uint64_t> delivered = 0;
    auto counter = make_counting_worker(target.ours(), delivered,
                                        {.concurrency = 1, .compete = true, .run = run});
    const auto start = steady::now();
    counter.run_until_empty();
    const double rate = static_cast<double>(delivered) / seconds_since(start);
    target.clear();
    return rate;
  };
  std::vector<double> in_runs;
  std::vector<double> one_at_a_time;
  for (std::size_t round = 0; round < options.rounds; ++round) {
    in_runs.push_back(rate_of_drain(options.events, 50));
    one_at_a_time.push_back(rate_of_drain(std::max(options.events / 20, batch_size), 1));
  }
  rows.push_back(make_row("outbox.hot_key_runs", median(in_runs), median(one_at_a_time), "events/s",
                          10, bound::at_least));
}

/// Publishing and PINGs keep the same pace, so that both include the time that an idle machine
/// needs to wake up.
constexpr auto pace = milliseconds(1);

/// The time of the last publish, read by the thread that delivers.
using shared_time = std::atomic<steady::time_point>;

struct wake_up_times {
  std::vector<double> pings;
  std::vector<double> deliveries;
};

/// Publishes to an idle worker, and sends a PING between two events.
wake_up_times measure_wake_ups(bench_outbox& target, std::size_t count) {
  wake_up_times times;
  std::mutex mutex;
  shared_time published_at{};
  worker waiting(target.ours(),
                 [&](const delivery&) {
                   const double duration = microseconds_since(published_at);
                   const std::scoped_lock lock(mutex);
                   times.deliveries.push_back(duration);
                   return outcome::done();
                 },
                 {.concurrency = 1, .compete = true});
  {
    std::jthread running([&](const std::stop_token& stop) { waiting.run(stop); });
    auto next = steady::now() + milliseconds(50);
    for (std::size_t i = 0; i < count; ++i) {
      std::this_thread::sleep_until(next += pace);
      const auto start = steady::now();
      target.raw().ping();
      times.pings.push_back(microseconds_since(start));
      std::this_thread::sleep_until(next += pace);
      published_at = steady::now();
      target.publish(1);
      if (steady::now() > next) next = steady::now();  // the machine cannot keep the pace
    }
  }
  if (times.deliveries.empty()) throw error(errc::internal, "the worker received no event");
  return times;
}

/// The same by hand: one thread publishes, another waits for the wake list, claims and settles.
std::vector<double> measure_raw_wake_ups(bench_outbox& target, std::size_t count) {
  std::vector<double> deliveries;
  shared_time published_at{};
  {
    auto publisher = target.record_raw_outbox(1);
    auto consumer = target.record_raw_outbox(1);
    const std::jthread consuming([&](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        if (!consumer.wait(target.wake_list()) || consumer.claim() == 0) continue;
        deliveries.push_back(microseconds_since(published_at));
        consumer.settle();
      }
    });
    auto next = steady::now() + milliseconds(50);
    for (std::size_t i = 0; i < count; ++i) {
      std::this_thread::sleep_until(next += 2 * pace);
      published_at = steady::now();
      publisher.publish();
    }
  }
  if (deliveries.empty()) throw error(errc::internal, "hiredis received no event");
  return deliveries;
}

void add_wake_up(bench_outbox& target, const outbox_bench_options& options,
                 std::vector<row>& rows) {
  const std::size_t count = 100 * options.rounds;
  const wake_up_times times = measure_wake_ups(target, count);
  const double wake_up = median(times.deliveries);
  rows.push_back(make_row("outbox.wake_up_p50", wake_up, median(times.pings), "us", 3));
  rows.push_back(make_row("outbox.wake_up_vs_by_hand", wake_up,
                          median(measure_raw_wake_ups(target, count)), "us", 1.5));
}

struct single_event_times {
  std::vector<double> publish, claim;
};

single_event_times measure_single_events(bench_outbox& target) {
  constexpr std::size_t samples = 2'000;
  single_event_times times;
  for (std::size_t i = 0; i < samples; ++i) {
    auto start = steady::now();
    target.publish(1);
    times.publish.push_back(microseconds_since(start));
    start = steady::now();
    const auto batch = target.ours().claim({.most = 1});
    times.claim.push_back(microseconds_since(start));
    for (const auto& item : batch.events) target.ours().ack(batch.fence, item);
  }
  return times;
}

/// Single events on an empty outbox, and on one with a million events.
void add_large(bench_outbox& target, const outbox_bench_options& options, std::vector<row>& rows) {
  constexpr std::size_t million = 1'000'000;
  const auto empty_times = measure_single_events(target);
  target.clear();
  const double bytes_before = target.raw().server_bytes();
  for (std::size_t i = 0; i < million; i += 1000) {
    check_receipts(target.ours().publish_all(make_events(1000)));
    if (options.progress && i % 10'000 == 0) options.progress(i, million);
  }
  if (options.progress) options.progress(million, million);
  const double bytes_per_event =
      (target.raw().server_bytes() - bytes_before) / static_cast<double>(million);
  const double entry_bytes =
      static_cast<double>(target.ours().admin().stats().bytes) / static_cast<double>(million);
  const auto large_times = measure_single_events(target);
  rows.push_back(make_row("outbox.million_publish_p99", quantile(large_times.publish, 0.99),
                          quantile(empty_times.publish, 0.99), "us", 2));
  rows.push_back(make_row("outbox.million_claim_p99", quantile(large_times.claim, 0.99),
                          quantile(empty_times.claim, 0.99), "us", 2));
  rows.push_back(make_row("outbox.memory", bytes_per_event, entry_bytes, "bytes/event", 3));
}

}  // namespace

std::vector<row> measure_outbox(const outbox_bench_options& options) {
  if (!options.url.starts_with("redis") || options.url.starts_with("rediss"))
    throw error(errc::invalid_argument,
                "hiredis connects to one Redis without TLS; give redis:// or redis+unix://");
  bench_outbox target(options);
  target.clear();
  std::vector<row> rows;
  add_throughput(target, options, rows);
  add_hot_key(target, options, rows);
  add_wake_up(target, options, rows);
  if (options.large) add_large(target, options, rows);
  return rows;
}

}  // namespace holdfast::bench
