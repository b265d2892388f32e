#include "bench/store/store.hpp"

#include <holdfast/database.hpp>

#include "bench/store/raw_client.hpp"
#include "bench/store/threads.hpp"
#include "bench/store/traffic.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <thread>

namespace holdfast::bench {

namespace {

using namespace std::chrono_literals;

/// Works for stores and raw clients.
template <class Target>
workload put_batches(std::shared_ptr<Target> target, std::uint64_t rows, timestamp start) {
  return [target, batches = std::make_shared<traffic>(rows, start)](std::uint64_t iterations) {
    for (std::uint64_t i = 0; i < iterations; ++i) target->put(batches->next_batch());
  };
}

template <class Target>
workload find_entries(std::shared_ptr<Target> target, std::uint64_t rows, timestamp start) {
  return [target, keys = std::make_shared<traffic>(rows, start)](std::uint64_t iterations) {
    for (std::uint64_t i = 0; i < iterations; ++i)
      do_not_optimize(target->find(entry_name, keys->next_key()));
  };
}

/// The longest time that a put of one entry takes while a tenth of the rows is removed, in steps.
row measure_expire_stall(store& target, timestamp start) {
  constexpr auto longest_stall = 50ms;
  constexpr std::size_t rows_per_step = 1'000;
  std::atomic<bool> finished = false;
  std::exception_ptr expire_failure;
  std::uint64_t removed = 0;
  std::thread cleaner([&] {
    try {
      for (std::size_t last_step = rows_per_step; last_step == rows_per_step; removed += last_step)
        last_step = target.expire(start + 2 * early_lifetime, rows_per_step);
    } catch (...) {
      expire_failure = std::current_exception();
    }
    finished = true;
  });
  traffic batches(large_table_rows, start + 1s);
  auto longest = std::chrono::steady_clock::duration::zero();
  std::exception_ptr put_failure;
  while (!finished) {
    const auto batch = batches.next_batch();
    const auto put_start = std::chrono::steady_clock::now();
    try {
      target.put(batch.first(1));
    } catch (...) {
      put_failure = std::current_exception();
      break;
    }
    longest = std::max(longest, std::chrono::steady_clock::now() - put_start);
    // A service that writes now and then.
    std::this_thread::sleep_for(1ms);
  }
  cleaner.join();
  if (put_failure) std::rethrow_exception(put_failure);
  if (expire_failure) std::rethrow_exception(expire_failure);
  if (removed < large_table_rows / early_expiry_interval)
    throw error(errc::internal, "only " + std::to_string(removed) + " rows expired");
  return make_row("store.expire_stall", std::chrono::duration<double, std::nano>(longest).count(),
                  std::chrono::duration<double, std::nano>(longest_stall).count(), "ns", 1);
}

/// Measures from each processor in turn, and takes the best figure of each side. A short request
/// costs three times as much if the process of the server runs on another, sleeping processor; and
/// the two sides talk to different processes of the server.
row measure_on_each_processor(const comparison& compared, measure_options options) {
  constexpr std::size_t max_processors = 8;
  // More than once: the process of the server may follow the client to another processor.
  constexpr std::size_t visits = 3;
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return measure(compared, options);
  std::vector<std::size_t> processors;
  for (std::size_t cpu = 0; cpu < CPU_SETSIZE && processors.size() < max_processors; ++cpu) {
    if (CPU_ISSET(cpu, &allowed)) processors.push_back(cpu);
  }
  options.rounds = std::max<std::size_t>(1, options.rounds / (processors.size() * visits));
  std::vector<row> rows;
  for (std::size_t visit = 0; visit < visits * processors.size(); ++visit) {
    cpu_set_t chosen;
    CPU_ZERO(&chosen);
    CPU_SET(processors[visit % processors.size()], &chosen);
    (void)::sched_setaffinity(0, sizeof chosen, &chosen);
    rows.push_back(measure(compared, options));
  }
  (void)::sched_setaffinity(0, sizeof allowed, &allowed);
  return make_row(compared.name, std::ranges::min(rows, {}, &row::ours).ours,
                  std::ranges::min(rows, {}, &row::floor).floor, compared.unit, compared.bar,
                  compared.bar_bound);
}

/// Comparisons with single-row statements need few rounds: a round has a hundred commits, and the
/// ratio is far from its bar.
measure_options with_few_rounds(measure_options options) {
  options.rounds = std::min<std::size_t>(options.rounds, 21);
  return options;
}

/// Drops the tables of a store when it is destroyed, through our own driver.
class dropped_tables {
 public:
  dropped_tables(std::string url, std::string prefix)
      : url_(std::move(url)), prefix_(std::move(prefix)) {}
  dropped_tables(const dropped_tables&) = delete;
  dropped_tables& operator=(const dropped_tables&) = delete;
  ~dropped_tables() {
    try {
      const auto drop = [this](sql::connection& connection) {
        connection.run("DROP TABLE " + prefix_ + "FAILOVER_STORE");
        connection.run("DROP TABLE " + prefix_ + "HOLDFAST_LEASE");
        connection.run("DELETE FROM HOLDFAST_SCHEMA WHERE SET_NAME = '" + prefix_ +
                       "FAILOVER_STORE'");
        return connection.dialect();
      };
      (void)open(url_, {.resolve_dialect = drop}).dialect();
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
      // The first failure is reported already.
    }
  }

 private:
  std::string url_;
  std::string prefix_;
};

/// For databases without a client library here (ODBC, H2): a put of a hundred entries compared with
/// a hundred puts of one entry.
std::vector<row> measure_batches(const store_bench_options& options) {
  const database target = open(options.url);
  const std::string prefix = scratch_tables::prefix();
  const dropped_tables cleanup(options.url, prefix);
  const auto ours =
      target.store({.prefix = prefix, .create_schema = true, .start = start_mode::require});
  const timestamp start = system_clock()->now();
  fill(*ours, small_table_rows, start);
  const auto put_singly = [ours, batches = std::make_shared<traffic>(small_table_rows, start + 1s)](
                              std::uint64_t iterations) {
    for (std::uint64_t i = 0; i < iterations; ++i) {
      for (const entry& single : batches->next_batch()) ours->put(single);
    }
  };
  return {measure({.name = "store.put100_vs_single",
                   .bar = 1.0 / 3,
                   .ours = put_batches(ours, small_table_rows, start + 2s),
                   .floor = put_singly},
                  with_few_rounds(options.measuring))};
}

constexpr double put_bar = 1 / 0.85;
constexpr double find_bar = 1.25;
constexpr double find_bar_of_sqlite = 1.15;

/// A database, and how its rows are measured.
struct store_target {
  const store_bench_options& options;
  database connections;
  raw_client_settings settings;
  sql::dialect_id dialect;

  /// Without a network, what the store adds is a larger part.
  [[nodiscard]] double find_bar_of_dialect() const {
    return dialect == sql::dialect_id::sqlite ? find_bar_of_sqlite : find_bar;
  }

  [[nodiscard]] row measure_find(const comparison& compared) const {
    return dialect == sql::dialect_id::sqlite
               ? measure(compared, options.measuring)
               : measure_on_each_processor(compared, options.measuring);
  }
};

void add_small_rows(const store_target& target, const std::shared_ptr<store>& ours,
                    const std::shared_ptr<raw_client>& raw, timestamp start,
                    std::vector<row>& rows) {
  rows.push_back(measure({.name = "store.put100",
                          .bar = put_bar,
                          .ours = put_batches(ours, small_table_rows, start),
                          .floor = put_batches(raw, small_table_rows, start)},
                         target.options.measuring));
  if (target.dialect != sql::dialect_id::sqlite) {
    const auto put_singly = [raw, batches = std::make_shared<traffic>(small_table_rows, start)](
                                std::uint64_t iterations) {
      for (std::uint64_t i = 0; i < iterations; ++i) raw->put_singly(batches->next_batch());
    };
    rows.push_back(measure({.name = "store.put100_vs_single",
                            .bar = 0.1,
                            .ours = put_batches(ours, small_table_rows, start + 1s),
                            .floor = put_singly},
                           with_few_rounds(target.options.measuring)));
  }
  rows.push_back(target.measure_find({.name = "store.find",
                                      .bar = target.find_bar_of_dialect(),
                                      .ours = find_entries(ours, small_table_rows, start),
                                      .floor = find_entries(raw, small_table_rows, start)}));
}

/// Rows of a table with a million entries. Their versions are seconds apart, so that every put
/// finds older entries.
void add_large_rows(const store_target& target, const std::shared_ptr<store>& small,
                    scratch_tables& tables, timestamp start, std::vector<row>& rows) {
  const std::string prefix = scratch_tables::prefix() + "LARGE_";
  const std::string table = tables.add(prefix);
  const auto large = target.connections.store(
      {.prefix = prefix, .create_schema = true, .start = start_mode::require});
  fill(*large, large_table_rows, start, target.options.progress);
  const std::shared_ptr<raw_client> raw = connect_raw_client(target.settings);
  raw->prepare(table, table);

  rows.push_back(measure({.name = "store.find_million",
                          .bar = 2,
                          .ours = find_entries(large, large_table_rows, start),
                          .floor = find_entries(small, small_table_rows, start)},
                         target.options.measuring));
  rows.push_back(target.measure_find({.name = "store.find_million_vs_raw",
                                      .bar = find_bar,
                                      .ours = find_entries(large, large_table_rows, start),
                                      .floor = find_entries(raw, large_table_rows, start)}));
  rows.push_back(measure({.name = "store.put_million",
                          .bar = 2,
                          .ours = put_batches(large, large_table_rows, start),
                          .floor = put_batches(small, small_table_rows, start + 2s)},
                         target.options.measuring));
  rows.push_back(measure({.name = "store.put_million_vs_raw",
                          .bar = put_bar,
                          .ours = put_batches(large, large_table_rows, start + 5s),
                          .floor = put_batches(raw, large_table_rows, start + 4s)},
                         target.options.measuring));
  rows.push_back(measure_expire_stall(*large, start + 6s));
}

}  // namespace

std::vector<row> measure_store(const store_bench_options& options) {
  if (options.url.starts_with("odbc:") || options.url.starts_with("h2:"))
    return measure_batches(options);
  const database connections = open(options.url);
  const store_target target{.options = options,
                            .connections = connections,
                            .settings = read_settings(options.url),
                            .dialect = connections.dialect()};
  const std::shared_ptr<raw_client> raw = connect_raw_client(target.settings);

  const std::string prefix = scratch_tables::prefix();
  const std::string raw_prefix = prefix + "RAW_";
  scratch_tables tables(target.settings, *raw);
  const std::string our_table = tables.add(prefix);
  const std::string raw_table = tables.add(raw_prefix);
  const auto ours =
      connections.store({.prefix = prefix, .create_schema = true, .start = start_mode::require});
  for (const std::string& text : store_schema(target.dialect, {.prefix = raw_prefix}))
    raw->run(text);
  const timestamp start = system_clock()->now();
  fill(*ours, small_table_rows, start);
  fill(*connections.store({.prefix = raw_prefix}), small_table_rows, start);
  raw->prepare(raw_table, our_table);

  std::vector<row> rows;
  add_small_rows(target, ours, raw, start, rows);
  if (target.dialect != sql::dialect_id::sqlite)
    rows.push_back(measure_thread_puts(
        {.ours = ours, .settings = target.settings, .raw_table = raw_table, .start = start + 3s},
        options.measuring));
  if (options.large) add_large_rows(target, ours, tables, start, rows);
  return rows;
}

}  // namespace holdfast::bench
