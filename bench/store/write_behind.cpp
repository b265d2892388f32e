#include "bench/store/write_behind.hpp"

#include <holdfast/database.hpp>
#include <holdfast/store/write_behind.hpp>

#include "bench/store/raw_client.hpp"
#include "bench/store/traffic.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

namespace holdfast::bench {

namespace {

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

/// More than the queue holds, so that no key is queued twice: every entry is written.
constexpr std::uint64_t table_rows = 20'000;

/// Runs its tasks only when `run_all` is called, so that a measured put does not include them.
class manual_executor final : public executor {
 public:
  bool post(task work) override {
    tasks_.push_back(std::move(work));
    return true;
  }
  bool post_after(steady::duration, task work) override { return post(std::move(work)); }
  void run_all() {
    while (!tasks_.empty()) {
      const auto next = std::move(tasks_.back());
      tasks_.pop_back();
      next();
    }
  }

 private:
  std::vector<task> tasks_{};
};

/// Accepts every entry and keeps none.
class null_store final : public store {
 public:
  void put(std::span<const entry>) override {}
  std::optional<entry> find(place, std::string_view) override { return std::nullopt; }
  entry_page find_all(place, std::size_t, std::string_view) override { return {}; }
  bool erase(place, std::string_view, timestamp) override { return false; }
  std::size_t expire(timestamp, std::size_t) override { return 0; }
  std::uint64_t count(place) override { return 0; }
  store_health health() noexcept override { return {.available = true}; }
};

/// An entry without its key, which is the key of the map.
struct mapped_entry {
  std::string name;
  timestamp as_of;
  timestamp expire_on;
  std::optional<std::string> payload;
  std::string payload_class;
  std::string realm;
};

std::vector<entry> make_entries(std::size_t count) {
  const auto now = system_clock()->now();
  std::vector<entry> entries;
  for (std::size_t i = 0; i < count; ++i) {
    entries.push_back({.name = std::string(entry_name),
                       .key = key_at(i),
                       .as_of = now,
                       .expire_on = now + lifetime,
                       .payload = make_payload(),
                       .payload_class = std::string(entry_class)});
  }
  return entries;
}

/// Only the puts are timed: writing the entries and clearing the map are not work of the caller.
row measure_put(std::size_t rounds) {
  const std::vector<entry> entries = make_entries(400);
  const auto tasks = std::make_shared<manual_executor>();
  // Without refresh_after = 0, unchanged answers would be held back until the next round.
  const auto ours =
      make_write_behind(std::make_shared<null_store>(), {.refresh_after = 0ms, .executor = tasks});
  std::unordered_map<std::string, mapped_entry> floor;
  const auto nanoseconds_per_entry = [&](auto put) {
    const auto start = steady::now();
    for (const entry& added : entries) put(added);
    return std::chrono::duration<double, std::nano>(steady::now() - start).count() /
           static_cast<double>(entries.size());
  };
  std::vector<double> our_times;
  std::vector<double> floor_times;
  const auto run_ours = [&] {
    our_times.push_back(nanoseconds_per_entry([&](const entry& added) { ours->put({&added, 1}); }));
    tasks->run_all();
  };
  const auto run_floor = [&] {
    floor_times.push_back(nanoseconds_per_entry([&](const entry& added) {
      floor.try_emplace(added.key, mapped_entry{added.name, added.as_of, added.expire_on,
                                                added.payload, added.payload_class, added.realm});
    }));
    floor.clear();
  };
  for (std::size_t round = 0; round < std::max<std::size_t>(rounds, 3); ++round) {
    if (round % 2 == 0) {
      run_ours();
      run_floor();
    } else {
      run_floor();
      run_ours();
    }
  }
  return make_row("store.behind_put", median(our_times), median(floor_times), "ns", 1.5);
}

row measure_sustained(const store_bench_options& options) {
  const raw_client_settings settings = read_settings(options.url);
  const database connections = open(options.url);
  const std::unique_ptr<raw_client> raw = connect_raw_client(settings);
  const std::string prefix = scratch_tables::prefix() + "BEHIND_";
  const std::string raw_prefix = prefix + "RAW_";
  scratch_tables tables(settings, *raw);
  const std::string our_table = tables.add(prefix);
  const std::string raw_table = tables.add(raw_prefix);
  const auto below =
      connections.store({.prefix = prefix, .create_schema = true, .start = start_mode::require});
  for (const std::string& text : store_schema(connections.dialect(), {.prefix = raw_prefix}))
    raw->run(text);
  const timestamp start = system_clock()->now();
  fill(*below, table_rows, start);
  fill(*connections.store({.prefix = raw_prefix}), table_rows, start);
  raw->prepare(raw_table, our_table);

  const auto ours = make_write_behind(below, {.block_for = 60s});
  traffic our_batches(table_rows, start);
  traffic raw_batches(table_rows, start);
  const auto put_and_flush = [&](std::uint64_t iterations) {
    for (std::uint64_t i = 0; i < iterations; ++i) ours->put(our_batches.next_batch());
    if (!ours->flush(steady::now() + 60s).complete())
      throw error(errc::unavailable, "write-behind did not write all entries within a minute");
  };
  const auto put_raw = [&](std::uint64_t iterations) {
    for (std::uint64_t i = 0; i < iterations; ++i) raw->put(raw_batches.next_batch());
  };
  // Long rounds: the sustained rate counts, not how a round begins and ends.
  row result = measure(
      {.name = "store.behind_sustained", .bar = 1 / 0.8, .ours = put_and_flush, .floor = put_raw},
      {.rounds = std::min<std::size_t>(options.measuring.rounds, 61), .round_seconds = 0.1});
  if (ours->numbers().coalesced != 0)
    throw error(errc::internal, "keys were queued twice, so not every entry was written");
  return result;
}

}  // namespace

std::vector<row> measure_write_behind(const store_bench_options& options) {
  std::vector<row> rows;
  rows.push_back(measure_sustained(options));
  rows.push_back(best_of_three([&] { return measure_put(5 * options.measuring.rounds); }));
  return rows;
}

}  // namespace holdfast::bench
