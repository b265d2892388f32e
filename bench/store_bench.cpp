#include "store_bench.hpp"

#include <holdfast/database.hpp>

#include "store_floor.hpp"
#include "store_traffic.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <thread>

namespace holdfast::bench {

namespace {

using namespace std::chrono_literals;

constexpr auto longest_stall = 50ms;
constexpr std::size_t expire_step = 1'000;

using work = std::function<void(std::uint64_t)>;

work puts(const std::shared_ptr<store>& into, std::uint64_t rows, timestamp start) {
  return [into, made = std::make_shared<traffic>(rows, start)](std::uint64_t times) {
    for (std::uint64_t i = 0; i < times; ++i) into->put(made->next_batch());
  };
}

work finds(const std::shared_ptr<store>& in, std::uint64_t rows, timestamp start) {
  return [in, made = std::make_shared<traffic>(rows, start)](std::uint64_t times) {
    for (std::uint64_t i = 0; i < times; ++i) keep(in->find(name, made->next_key()));
  };
}

work raw_puts(store_floor& into, std::uint64_t rows, timestamp start) {
  return [&into, made = std::make_shared<traffic>(rows, start)](std::uint64_t times) {
    for (std::uint64_t i = 0; i < times; ++i) into.put(made->next_batch());
  };
}

work raw_finds(store_floor& in, std::uint64_t rows, timestamp start) {
  return [&in, made = std::make_shared<traffic>(rows, start)](std::uint64_t times) {
    for (std::uint64_t i = 0; i < times; ++i) keep(in.find(name, made->next_key()));
  };
}

/// The longest that one entry had to wait to be written while a tenth of the rows was removed, step by step.
row expire_stall(store& in, timestamp start) {
  std::atomic<bool> over = false;
  std::exception_ptr failure;
  std::uint64_t removed = 0;
  std::thread cleaner([&] {
    try {
      for (std::size_t last = expire_step; last == expire_step; removed += last) last = in.expire(start + 2 * kept_early, expire_step);
    } catch (...) {
      failure = std::current_exception();
    }
    over = true;
  });
  traffic made(many, start + 1s);
  auto longest = std::chrono::steady_clock::duration::zero();
  std::exception_ptr refused;
  while (!over) {
    const auto batch = made.next_batch();
    const auto begin = std::chrono::steady_clock::now();
    try {
      in.put(batch.first(1));
    } catch (...) {
      refused = std::current_exception();
      break;
    }
    longest = std::max(longest, std::chrono::steady_clock::now() - begin);
    // Not a storm: a service that writes now and then.
    std::this_thread::sleep_for(1ms);
  }
  cleaner.join();
  if (refused) std::rethrow_exception(refused);
  if (failure) std::rethrow_exception(failure);
  if (removed < many / tenth) throw error(errc::internal, "only " + std::to_string(removed) + " rows expired");

  row made_row{.name = "store.expire_stall", .unit = "ns", .bar = 1};
  made_row.ours = std::chrono::duration<double, std::nano>(longest).count();
  made_row.floor = std::chrono::duration<double, std::nano>(longest_stall).count();
  made_row.ratio = made_row.ours / made_row.floor;
  made_row.holds = made_row.ratio <= made_row.bar;
  return made_row;
}

contest versus(std::string row_name, double bar, work ours, work floor) {
  contest made;
  made.name = std::move(row_name);
  made.bar = bar;
  made.ours = std::move(ours);
  made.floor = std::move(floor);
  return made;
}

/// A short question to a server costs three times as much when the process that answers happens to live on another, sleeping processor, and
/// the two sides talk to different processes. So they are measured from each processor in turn, and each counts where it did best.
row measure_from_everywhere(const contest& what, settings how) {
  constexpr std::size_t most = 8;
  // More than once: the process that answers may move after the one that asks.
  constexpr std::size_t visits = 3;
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return measure(what, how);
  std::vector<row> rows;
  const auto places = std::min(most, static_cast<std::size_t>(CPU_COUNT(&allowed)));
  how.rounds = std::max<std::size_t>(1, how.rounds / (places * visits));
  std::vector<std::size_t> cpus;
  for (std::size_t cpu = 0; cpu < CPU_SETSIZE && cpus.size() < places; ++cpu) {
    if (CPU_ISSET(cpu, &allowed)) cpus.push_back(cpu);
  }
  for (std::size_t visit = 0; visit < visits * cpus.size(); ++visit) {
    const std::size_t cpu = cpus[visit % cpus.size()];
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET(cpu, &here);
    (void)::sched_setaffinity(0, sizeof here, &here);
    rows.push_back(measure(what, how));
  }
  (void)::sched_setaffinity(0, sizeof allowed, &allowed);
  row best = rows.front();
  best.ours = std::ranges::min(rows, {}, &row::ours).ours;
  best.floor = std::ranges::min(rows, {}, &row::floor).floor;
  best.ratio = best.ours / best.floor;
  best.holds = best.ratio <= best.bar;
  return best;
}

/// Where there is no client library to be measured beside (ODBC, H2): a batch of a hundred beside a hundred statements of one row, both ours.
std::vector<row> measure_batches(const store_bench& what) {
  const database on = open(what.url);
  const std::string prefix = "BENCH_" + std::to_string(::getpid()) + "_";
  // Dropped at the end, whatever happens.
  struct dropped {
    const std::string& url;
    const std::string& prefix;
    ~dropped() {
      try {
        const auto drop = [this](sql::connection& at) {
          at.run("DROP TABLE " + prefix + "FAILOVER_STORE");
          at.run("DROP TABLE " + prefix + "HOLDFAST_LEASE");
          return at.dialect();
        };
        (void)open(url, {.resolve_dialect = drop}).dialect();
      } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): what failed before is told
      }
    }
  } at_end{what.url, prefix};
  const auto ours = on.store({.prefix = prefix, .create_schema = true});
  const timestamp start = system_clock()->now();
  fill(*ours, few, start, {});
  const auto singles = std::make_shared<traffic>(few, start + 1s);
  settings fewer = what.how;
  fewer.rounds = std::min<std::size_t>(fewer.rounds, 21);
  return {measure(versus("store.put100_vs_single", 1.0 / 3, puts(ours, few, start + 2s),
                         [ours, singles](std::uint64_t times) {
                           for (std::uint64_t i = 0; i < times; ++i) {
                             const auto batch = singles->next_batch();
                             for (const entry& each : batch) ours->put(each);
                           }
                         }),
                  fewer)};
}

}  // namespace

std::vector<row> measure_store(const store_bench& what) {
  if (what.url.starts_with("odbc:") || what.url.starts_with("h2:")) return measure_batches(what);
  const store_place place = read_place(what.url);
  const database on = open(what.url);
  const sql::dialect_id dialect = on.dialect();
  const std::unique_ptr<store_floor> floor = connect_floor(place);

  const std::string prefix = "BENCH_" + std::to_string(::getpid()) + "_";
  const std::string raw_prefix = prefix + "RAW_";
  tables made(place, *floor);
  const std::string our_table = made.add(prefix);
  const std::string raw_table = made.add(raw_prefix);
  const auto ours = on.store({.prefix = prefix, .create_schema = true});
  for (const std::string& text : store_schema(dialect, {.prefix = raw_prefix})) floor->run(text);
  const timestamp start = system_clock()->now();
  fill(*ours, few, start, {});
  fill(*on.store({.prefix = raw_prefix}), few, start, {});
  floor->prepare(raw_table, our_table);

  constexpr double put_bar = 1 / 0.85;
  constexpr double find_bar = 1.25;
  std::vector<row> rows;
  rows.push_back(measure(versus("store.put100", put_bar, puts(ours, few, start), raw_puts(*floor, few, start)), what.how));
  if (dialect != sql::dialect_id::sqlite) {
    settings fewer = what.how;
    // A hundred commits a round, and a bar far away.
    fewer.rounds = std::min<std::size_t>(fewer.rounds, 21);
    const auto raw_traffic = std::make_shared<traffic>(few, start);
    rows.push_back(measure(versus("store.put100_vs_single", 0.1, puts(ours, few, start + 1s),
                                  [&](std::uint64_t times) {
                                    for (std::uint64_t i = 0; i < times; ++i) floor->put_singly(raw_traffic->next_batch());
                                  }),
                           fewer));
  }
  const auto measure_find = [&](const contest& find) {
    return dialect == sql::dialect_id::sqlite ? measure(find, what.how) : measure_from_everywhere(find, what.how);
  };
  rows.push_back(measure_find(versus("store.find", find_bar, finds(ours, few, start), raw_finds(*floor, few, start))));
  if (!what.large) return rows;

  const std::string large_prefix = prefix + "LARGE_";
  const std::string large_table = made.add(large_prefix);
  const auto large = on.store({.prefix = large_prefix, .create_schema = true});
  fill(*large, many, start, what.progress);
  rows.push_back(measure(versus("store.find_million", 2, finds(large, many, start), finds(ours, few, start)), what.how));
  // What of that is the database's own: the client library, with the same rows.
  const std::unique_ptr<store_floor> beside = connect_floor(place);
  beside->prepare(large_table, large_table);
  const contest find_beside = versus("store.find_million_vs_raw", find_bar, finds(large, many, start), raw_finds(*beside, many, start));
  rows.push_back(measure_find(find_beside));
  rows.push_back(measure(versus("store.put_million", 2, puts(large, many, start), puts(ours, few, start + 2s)), what.how));
  // Apart in time, so that none of them finds a row as it wants to write it.
  rows.push_back(
      measure(versus("store.put_million_vs_raw", put_bar, puts(large, many, start + 5s), raw_puts(*beside, many, start + 4s)), what.how));
  rows.push_back(expire_stall(*large, start + 6s));
  return rows;
}

}  // namespace holdfast::bench
