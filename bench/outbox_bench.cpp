#include "outbox_bench.hpp"

#include <holdfast/database.hpp>
#include <holdfast/error.hpp>
#include <holdfast/outbox.hpp>
#include <holdfast/redis.hpp>
#include <holdfast/worker.hpp>

#include "outbox_floor.hpp"

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

constexpr std::size_t batch = 100;

double seconds_since(steady::time_point began) { return std::chrono::duration<double>(steady::now() - began).count(); }

double at_part(std::vector<double> all, double part) {
  std::sort(all.begin(), all.end());
  return all.at(std::min(all.size() - 1, static_cast<std::size_t>(static_cast<double>(all.size()) * part)));
}
double median(std::vector<double> all) { return at_part(std::move(all), 0.5); }

row judged(std::string name, double ours, double floor, std::string unit, double bar, bar_is side) {
  row made{.name = std::move(name),
           .ours = ours,
           .floor = floor,
           .unit = std::move(unit),
           .ratio = floor > 0 ? ours / floor : 0,
           .bar = bar,
           .side = side};
  made.holds = side == bar_is::at_least ? made.ratio >= bar : made.ratio <= bar;
  return made;
}

std::vector<event> some_events(std::size_t count, const std::string& key = {}) {
  static const std::string payload = R"({"seat":12,"text":")" + std::string(180, 'x') + R"("})";
  std::vector<event> made(count);
  for (auto& each : made) {
    each.type = "ticket.created";
    each.key = key;
    each.payload = payload;
  }
  return made;
}

/// Everything that a row needs; its keys are gone when it is.
class bench_place {
 public:
  explicit bench_place(const outbox_bench& what)
      : tag_("{holdfast-bench-" + std::to_string(::getpid())),
        prefix_(tag_ + ":outbox}"),
        client_(what.url),
        address_(client_.is_cluster() ? std::string() : client_.nodes().front().address),
        box_(holdfast::open(what.url).outbox({.prefix = prefix_, .lane_alarm = 2'000'000})),
        raw_(by_hand(batch)) {}
  bench_place(const bench_place&) = delete;
  bench_place& operator=(const bench_place&) = delete;
  ~bench_place() {
    try {
      raw_.remove(tag_);
    } catch (...) {
      // The server is gone, and so is our way to its keys.
    }
  }

  [[nodiscard]] const outbox& box() const { return box_; }
  raw_outbox& raw() { return raw_; }
  /// The scripts as they are sent for so many events at once, on a connection of their own.
  [[nodiscard]] raw_outbox by_hand(std::size_t events) const {
    if (address_.empty()) throw error(errc::invalid_argument, "hiredis speaks to one server; give redis:// or redis+unix://");
    claimed got;
    const auto seen = watch(address_, [&] {
      check(box_.publish_all(some_events(events)));
      got = box_.claim({.most = events});
      std::vector<settlement> acks;
      for (const auto& each : got.events) acks.push_back({.id = each.event.id});
      (void)box_.settle(0, got.fence, std::move(acks));
    });
    // Scripts travel whole the first time, and a first use may ask this and that: run it twice, take the last three.
    std::vector<raw_redis::words> scripts;
    for (const auto& each : seen) {
      if (each.size() > 3 && each[0] == "EVALSHA") scripts.push_back(each);
    }
    if (scripts.size() < 3) return by_hand(events);
    const auto last = scripts.end();
    return {address_, *(last - 3), *(last - 2), *(last - 1)};
  }
  [[nodiscard]] std::string marker() const { return prefix_ + ":wake"; }
  void publish(std::size_t events, const std::string& key = {}) {
    for (std::size_t i = 0; i < events; i += batch) check(box_.publish_all(some_events(std::min(batch, events - i), key)));
  }
  /// What is left of a row.
  void empty() { raw_.remove(prefix_); }
  static void check(const std::vector<receipt>& receipts) {
    for (const auto& each : receipts) {
      if (each.problem) throw error(*each.problem);
    }
  }

 private:
  std::string tag_;
  std::string prefix_;
  redis::client client_;
  std::string address_;
  outbox box_;
  raw_outbox raw_;
};

/// Events each second when this is done for so many, a batch a time.
template <class Work>
double rate(std::size_t events, const Work& work) {
  const auto began = steady::now();
  for (std::size_t i = 0; i < events; i += batch) work();
  return static_cast<double>(events) / seconds_since(began);
}

/// A worker that does nothing but count.
worker counting(const outbox& on, std::atomic<std::uint64_t>& seen, worker_options how) {
  return worker(
      on,
      [&seen](const delivery&) {
        seen.fetch_add(1, std::memory_order_relaxed);
        return outcome::done();
      },
      std::move(how));
}

void add_throughput(bench_place& place, const outbox_bench& what, std::vector<row>& rows) {
  std::vector<double> publish;
  std::vector<double> raw_publish;
  std::vector<double> raw_claim;
  std::vector<double> raw_settle;
  std::vector<double> both;
  std::vector<double> processor;
  std::vector<double> raw_processor;
  auto& raw = place.raw();
  for (std::size_t i = 0; i < what.rounds; ++i) {
    publish.push_back(rate(what.events, [&] { place.publish(batch); }));
    place.empty();
    const double before = raw.server_seconds();
    raw_publish.push_back(rate(what.events, [&] { raw.publish(); }));
    double claiming = 0;
    double settling = 0;
    for (std::size_t left = what.events; left > 0;) {
      auto began = steady::now();
      const auto got = raw.claim();
      claiming += seconds_since(began);
      if (got == 0) break;
      left -= std::min(left, got);
      began = steady::now();
      raw.settle();
      settling += seconds_since(began);
    }
    raw_claim.push_back(static_cast<double>(what.events) / claiming);
    raw_settle.push_back(static_cast<double>(what.events) / settling);
    const double between = raw.server_seconds();
    raw_processor.push_back((between - before) * 1e6 / static_cast<double>(what.events));
    place.empty();

    std::atomic<std::uint64_t> seen = 0;
    auto with = counting(place.box(), seen, {.concurrency = 1, .compete = true});
    const auto began = steady::now();
    {
      std::jthread work([&](const std::stop_token& stop) { with.run(stop); });
      place.publish(what.events);
      while (with.count().done < what.events) std::this_thread::sleep_for(microseconds(200));
      both.push_back(static_cast<double>(what.events) / seconds_since(began));
    }
    processor.push_back((raw.server_seconds() - between) * 1e6 / static_cast<double>(what.events));
    place.empty();
  }
  rows.push_back(judged("outbox.publish_batch", median(publish), median(raw_publish), "events/s", 0.8, bar_is::at_least));
  const double slowest = std::min({median(raw_publish), median(raw_claim), median(raw_settle)});
  rows.push_back(judged("outbox.end_to_end", median(both), slowest, "events/s", 0.7, bar_is::at_least));
  // Redis does one thing at a time: what its parts take one after the other is what the whole can take at best.
  const double in_a_row = 1 / (1 / median(raw_publish) + 1 / median(raw_claim) + 1 / median(raw_settle));
  rows.push_back(judged("outbox.end_to_end_of_sum", median(both), in_a_row, "events/s", 0.7, bar_is::at_least));
  rows.push_back(judged("outbox.server_cpu", median(processor), median(raw_processor), "us/event", 1.5, bar_is::at_most));
}

void add_hot_key(bench_place& place, const outbox_bench& what, std::vector<row>& rows) {
  const auto drain = [&](std::size_t events, std::size_t run) {
    place.publish(events, "hot");
    std::atomic<std::uint64_t> seen = 0;
    auto with = counting(place.box(), seen, {.concurrency = 1, .compete = true, .run = run});
    const auto began = steady::now();
    with.run_until_empty();
    const double made = static_cast<double>(seen) / seconds_since(began);
    place.empty();
    return made;
  };
  std::vector<double> runs;
  std::vector<double> heads;
  for (std::size_t i = 0; i < what.rounds; ++i) {
    runs.push_back(drain(what.events, 50));
    heads.push_back(drain(std::max<std::size_t>(what.events / 20, batch), 1));
  }
  rows.push_back(judged("outbox.hot_key_runs", median(runs), median(heads), "events/s", 10, bar_is::at_least));
}

/// Both at the same pace: what an idle machine takes to wake up is in both.
void add_wake_up(bench_place& place, const outbox_bench& what, std::vector<row>& rows) {
  constexpr auto pace = milliseconds(1);
  const std::size_t count = 100 * what.rounds;
  std::vector<double> pings;
  std::vector<double> wakes;
  std::mutex mutex;
  std::atomic<steady::rep> published = 0;
  worker with(place.box(),
              [&](const delivery&) {
                const auto at = steady::now().time_since_epoch().count();
                const std::scoped_lock lock(mutex);
                wakes.push_back(std::chrono::duration<double, std::micro>(steady::duration(at - published)).count());
                return outcome::done();
              },
              {.concurrency = 1, .compete = true});
  std::jthread work([&](const std::stop_token& stop) { with.run(stop); });
  auto next = steady::now() + milliseconds(50);
  for (std::size_t i = 0; i < count; ++i) {
    std::this_thread::sleep_until(next += pace);
    const auto began = steady::now();
    place.raw().ping();
    pings.push_back(seconds_since(began) * 1e6);
    std::this_thread::sleep_until(next += pace);
    published = steady::now().time_since_epoch().count();
    place.publish(1);
    if (steady::now() > next) next = steady::now();  // a machine that cannot keep the pace
  }
  work.request_stop();
  work.join();
  if (wakes.empty()) throw error(errc::internal, "no event woke the worker");
  rows.push_back(judged("outbox.wake_up_p50", median(wakes), median(pings), "us", 3, bar_is::at_most));

  // The same scripts by hand: one publishes, one waits for the marker, claims and settles.
  std::vector<double> by_hand;
  {
    auto publisher = place.by_hand(1);
    auto taker = place.by_hand(1);
    const std::jthread takes([&](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        if (!taker.wait(place.marker()) || taker.claim() == 0) continue;
        const auto at = steady::now().time_since_epoch().count();
        by_hand.push_back(std::chrono::duration<double, std::micro>(steady::duration(at - published)).count());
        taker.settle();
      }
    });
    next = steady::now() + milliseconds(50);
    for (std::size_t i = 0; i < count; ++i) {
      std::this_thread::sleep_until(next += 2 * pace);
      published = steady::now().time_since_epoch().count();
      publisher.publish();
    }
  }
  if (by_hand.empty()) throw error(errc::internal, "no event came by hand");
  rows.push_back(judged("outbox.wake_up_vs_by_hand", median(wakes), median(by_hand), "us", 1.5, bar_is::at_most));
}

/// The same small work on an empty outbox, and on one with a million events.
void add_large(bench_place& place, const outbox_bench& what, std::vector<row>& rows) {
  constexpr std::size_t million = 1'000'000;
  constexpr std::size_t samples = 2'000;
  struct times {
    std::vector<double> publish, claim;
  };
  const auto sample = [&] {
    times made;
    for (std::size_t i = 0; i < samples; ++i) {
      auto began = steady::now();
      place.publish(1);
      made.publish.push_back(seconds_since(began) * 1e6);
      began = steady::now();
      const auto got = place.box().claim({.most = 1});
      made.claim.push_back(seconds_since(began) * 1e6);
      for (const auto& each : got.events) place.box().ack(got.fence, each);
    }
    return made;
  };
  const auto small = sample();
  place.empty();
  const double before = place.raw().server_bytes();
  for (std::size_t i = 0; i < million; i += 1000) {
    bench_place::check(place.box().publish_all(some_events(1000)));
    if (what.progress && i % 10'000 == 0) what.progress(i, million);
  }
  if (what.progress) what.progress(million, million);
  const double bytes = (place.raw().server_bytes() - before) / static_cast<double>(million);
  const auto entries = static_cast<double>(place.box().stats().bytes) / static_cast<double>(million);
  const auto large = sample();
  rows.push_back(
      judged("outbox.million_publish_p99", at_part(large.publish, 0.99), at_part(small.publish, 0.99), "us", 2, bar_is::at_most));
  rows.push_back(judged("outbox.million_claim_p99", at_part(large.claim, 0.99), at_part(small.claim, 0.99), "us", 2, bar_is::at_most));
  rows.push_back(judged("outbox.memory", bytes, entries, "bytes/event", 3, bar_is::at_most));
}

}  // namespace

std::vector<row> measure_outbox(const outbox_bench& what) {
  if (!what.url.starts_with("redis") || what.url.starts_with("rediss"))
    throw error(errc::invalid_argument, "the floor is hiredis, which speaks to one Redis without TLS; give redis:// or redis+unix://");
  bench_place place(what);
  place.empty();
  std::vector<row> rows;
  add_throughput(place, what, rows);
  add_hot_key(place, what, rows);
  add_wake_up(place, what, rows);
  if (what.large) add_large(place, what, rows);
  return rows;
}

}  // namespace holdfast::bench
