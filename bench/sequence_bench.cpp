#include "sequence_bench.hpp"

#include <holdfast/sequence.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace holdfast::bench {

namespace {

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;
using work = std::function<void(std::uint64_t)>;

/// The seed's generator: a lock, a block of 20, and a counter in memory behind it.
class seed_generator {
 public:
  std::int64_t next() {
    const std::scoped_lock lock(mutex_);
    if (next_ > last_) {
      const std::scoped_lock allocating(store_);
      next_ = allocated_ + 1;
      last_ = allocated_ += 20;
    }
    return next_++;
  }

 private:
  std::mutex mutex_{};
  std::mutex store_{};
  std::int64_t allocated_ = 0;
  std::int64_t next_ = 1;
  std::int64_t last_ = 0;
};

struct alignas(64) bare_counter {
  std::atomic<std::int64_t> next{1};
};

/// Ids of one thread in one turn, so that even on a busy machine a round is about ids, and not about starting a thread.
constexpr std::uint64_t in_a_turn = 400'000;

/// An id is used, in a register, as a caller has it; whatever is in memory stays there: no counter may live in a register between two calls. Only
/// where the object is may be in one, as `this` is in any call: so every loop below, and every floor, has a reference to it.
inline void use(std::int64_t id) noexcept { asm volatile("" : : "r"(id) : "memory"); }

/// The work on two threads, both beginning at the same moment: twice the ids.
work on_two_threads(work half) {
  return [half = std::move(half)](std::uint64_t times) {
    std::atomic<int> ready{0};
    const auto begin = [&] {
      ready.fetch_add(1);
      while (ready.load() < 2) {
      }
    };
    std::jthread other([&] {
      begin();
      half(times);
    });
    begin();
    half(times);
  };
}

work draws(std::shared_ptr<sequence> ids) {
  return [ids = std::move(ids)](std::uint64_t times) {
    sequence& mine = *ids;
    for (std::uint64_t i = 0; i < times * in_a_turn; ++i) use(mine.next());
  };
}

work counts() {
  return [counter = std::make_shared<bare_counter>()](std::uint64_t times) {
    bare_counter& mine = *counter;
    for (std::uint64_t i = 0; i < times * in_a_turn; ++i) use(mine.next.fetch_add(1, std::memory_order_relaxed));
  };
}

/// A store that takes its time, and counts how often it is asked.
class slow_store final : public block_store {
 public:
  explicit slow_store(std::chrono::microseconds latency) : latency_(latency) {}
  std::vector<block_grant> allocate(std::span<const block_request> requests) override {
    calls_.fetch_add(1);
    std::this_thread::sleep_for(latency_);
    return below_->allocate(requests);
  }
  std::optional<counter_state> peek(std::string_view name) override { return below_->peek(name); }
  counter_state ensure_at_least(std::string_view name, std::int64_t ordinal) override { return below_->ensure_at_least(name, ordinal); }
  bool reset(std::string_view name, std::int64_t ordinal, counter_state expected) override {
    return below_->reset(name, ordinal, expected);
  }
  bool give_back(std::string_view name, std::int64_t last_used, counter_state granted) override {
    return below_->give_back(name, last_used, granted);
  }
  std::vector<named_counter> list(std::size_t limit, std::string_view after) override { return below_->list(limit, after); }
  std::vector<std::string> unsafe_settings() override { return {}; }
  std::shared_ptr<block_store> for_child() const override { return below_->for_child(); }
  [[nodiscard]] std::uint64_t calls() const { return calls_.load(); }

 private:
  const std::shared_ptr<block_store> below_ = make_memory_block_store();
  const std::chrono::microseconds latency_;
  std::atomic<std::uint64_t> calls_{0};
};

/// A contest of times, told as one of rates: so many times the speed of the floor.
row as_rate(const row& times, std::string name, double bar, std::uint64_t threads) {
  const double nanoseconds = 1e9 * static_cast<double>(in_a_turn * threads);
  row made{.name = std::move(name), .ours = nanoseconds / times.ours, .floor = nanoseconds / times.floor, .unit = "ids/s"};
  made.ratio = made.ours / made.floor;
  made.bar = bar;
  made.side = bar_is::at_least;
  made.holds = made.ratio >= bar;
  return made;
}

row race(const std::string& name, double bar, const settings& how, work ours, work floor, std::uint64_t threads = 1) {
  return as_rate(measure({.name = name, .bar = 1 / bar, .side = bar_is::at_most, .ours = std::move(ours), .floor = std::move(floor)}, how),
                 name, bar, threads);
}

struct paced {
  double worst_of_ten_thousand = 0;  // nanoseconds
  double calls_for_each_refill = 0;
};

/// A million ids a second, evenly, over a store that needs 2 ms for a block; the time of each call alone. Pacing and measuring use one clock.
paced at_a_million_a_second() {
  const auto store = std::make_shared<slow_store>(2ms);
  const sequence_source source(store);
  auto ids = source.sequence("paced", {.blocks = adaptive_blocks{}});
  constexpr auto warm_up = 3s;
  constexpr auto length = 3s;
  std::vector<std::int64_t> took;
  took.reserve(4'000'000);
  const auto begin = steady::now();
  auto due = begin;
  while (due - begin < warm_up + length) {
    auto now = steady::now();
    while (now < due) now = steady::now();
    // What the machine took from us between two calls is not the call's.
    if (now - due > 1ms) due = now;
    const auto before = steady::now();
    keep(ids.next());
    const auto after = steady::now();
    if (due - begin >= warm_up) took.push_back((after - before).count());
    due += 1us;
  }
  const auto at = took.begin() + static_cast<std::ptrdiff_t>(took.size() * 9999 / 10'000);
  std::ranges::nth_element(took, at);
  return {
      .worst_of_ten_thousand = static_cast<double>(*at),
      .calls_for_each_refill = static_cast<double>(store->calls()) / static_cast<double>(std::max<std::uint64_t>(1, ids.stats().refills))};
}

row figure(std::string name, double ours, double floor, std::string unit) {
  row made{.name = std::move(name), .ours = ours, .floor = floor, .unit = std::move(unit)};
  made.ratio = ours / floor;
  made.bar = 1;
  made.side = bar_is::at_most;
  made.holds = made.ratio <= made.bar;
  return made;
}

}  // namespace

std::vector<row> measure_sequences(const settings& how) {
  const sequence_source source(make_memory_block_store());
  const auto made = [&source](const std::string& name) {
    return std::make_shared<sequence>(source.sequence(name, {.blocks = adaptive_blocks{.largest = std::int64_t{1} << 26U}}));
  };
  std::vector<row> rows;
  rows.push_back(race("next_one_thread_vs_fetch_add", 0.7, how, draws(made("one")), counts()));
  rows.push_back(race("next_two_threads_vs_fetch_add", 0.7, how, on_two_threads(draws(made("two"))), on_two_threads(counts()), 2));
  const auto seed = std::make_shared<seed_generator>();
  rows.push_back(race("next_two_threads_vs_seed", 3, how, on_two_threads(draws(made("three"))), on_two_threads([seed](std::uint64_t times) {
                        seed_generator& mine = *seed;
                        for (std::uint64_t i = 0; i < times * in_a_turn; ++i) use(mine.next());
                      }),
                      2));
  const auto shared = made("handles");
  const auto handle = std::make_shared<sequence_handle>(shared->handle());
  rows.push_back(race(
      "handle_vs_fetch_add", 3, how,
      [handle](std::uint64_t times) {
        // The state is in memory, as it is between the calls of a server.
        sequence_handle& mine = *handle;
        for (std::uint64_t i = 0; i < times * in_a_turn; ++i) use(mine.next());
      },
      counts()));
  paced best = at_a_million_a_second();
  for (int again = 0; again < 2 && best.worst_of_ten_thousand > 1000; ++again) {
    const paced next = at_a_million_a_second();
    if (next.worst_of_ten_thousand < best.worst_of_ten_thousand) best = next;
  }
  rows.push_back(figure("next_p9999_at_a_million_a_second", best.worst_of_ten_thousand, 1000, "ns"));
  rows.push_back(figure("round_trips_for_each_refill", best.calls_for_each_refill, 1, "calls"));
  return rows;
}

}  // namespace holdfast::bench
