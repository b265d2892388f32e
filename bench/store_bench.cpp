#include "store_bench.hpp"

#include <holdfast/database.hpp>

#include "store_floor.hpp"

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

constexpr std::string_view name = "bench.country";
constexpr std::uint64_t few = 1'000;
constexpr std::uint64_t many = 1'000'000;
/// Of each ten rows the first expires early, so that a tenth can be removed later. Everything else is measured on the other nine.
constexpr std::uint64_t tenth = 10;
constexpr auto kept = 24h;
constexpr auto kept_early = 1h;
constexpr auto longest_stall = 50ms;
constexpr std::size_t expire_step = 1'000;

std::unique_ptr<store_floor> connect_floor(const store_place& place) {
#if HOLDFAST_HAS_SQLITE
  if (place.scheme == "sqlite") return sqlite_floor(place);
#endif
#if HOLDFAST_HAS_POSTGRES
  if (place.scheme == "postgresql" || place.scheme == "postgres") return postgres_floor(place);
#endif
#if HOLDFAST_HAS_MYSQL
  if (place.scheme == "mysql" || place.scheme == "mariadb") return mysql_floor(place);
#endif
  throw error(errc::invalid_argument,
              "'" + place.scheme + ":' has no client library to be measured beside; give sqlite:, postgresql:// or mysql://");
}

/// Tables that are gone when this is, whatever happened.
class tables {
 public:
  tables(store_place place, store_floor& with) : place_(std::move(place)), with_(with) {}
  tables(const tables&) = delete;
  tables& operator=(const tables&) = delete;
  ~tables() {
    for (const std::string& each : names_) {
      if (!dropped(each, with_)) dropped_anew(each);
    }
  }

  /// To be dropped at the end.
  const std::string& add(const std::string& prefix) { return names_.emplace_back(prefix + "FAILOVER_STORE"); }

 private:
  static bool dropped(const std::string& table, store_floor& with) noexcept {
    try {
      with.run("DROP TABLE IF EXISTS " + table);
      return true;
    } catch (...) {
      return false;
    }
  }
  /// The connection may have been what failed.
  void dropped_anew(const std::string& table) const noexcept {
    try {
      (void)dropped(table, *connect_floor(place_));
    } catch (...) {
      // The database is gone, and so is our way to its tables.
    }
  }

  store_place place_;
  store_floor& with_;
  std::vector<std::string> names_{};
};

/// The key of a row: as long as a UUID, in the order of the rows.
std::string key_of(std::uint64_t row) {
  std::string key = "00000000-0000-4000-8000-000000000000";
  for (std::size_t at = 8; at-- > 0; row /= 10) key[at] = static_cast<char>('0' + row % 10);
  return key;
}

/// Entries for a table of so many rows, made up in turn. Rows are visited all over the table, and each is visited once before any is
/// visited twice. The same work for both sides.
class traffic {
 public:
  traffic(std::uint64_t rows, timestamp start) : rows_(rows), start_(start), entries_(batch_rows) {
    for (entry& each : entries_) {
      each.name = name;
      each.payload = payload();
      each.payload_class = "bench.Country";
    }
  }

  /// The payload is never what it was: SQLite does not write a row that stays the same.
  std::span<const entry> next_batch() {
    const timestamp as_of = start_ + std::chrono::microseconds(++version_);
    for (entry& each : entries_) {
      each.key = next_key();
      each.as_of = as_of;
      each.expire_on = as_of + kept;
      auto number = version_;
      for (std::size_t at = digits_end; at-- > digits_end - 10; number /= 10) (*each.payload)[at] = static_cast<char>('0' + number % 10);
    }
    return entries_;
  }

  std::string next_key() {
    // Prime, and so without a common divisor with the number of rows: no row comes twice before all have come.
    constexpr std::uint64_t stride = 7'919;
    constexpr std::uint64_t late = tenth - 1;
    const std::uint64_t visited = (++cursor_ * stride) % (rows_ / tenth * late);
    return key_of(visited / late * tenth + 1 + visited % late);
  }

  static std::string payload() {
    std::string text = R"({"version":"0000000000","text":")";
    text.resize(1022, 'x');
    return text + "\"}";
  }

 private:
  static constexpr std::size_t digits_end = 22;

  std::uint64_t rows_;
  timestamp start_;
  std::uint64_t version_ = 0;
  std::uint64_t cursor_ = 0;
  std::vector<entry> entries_;
};

void fill(store& into, std::uint64_t rows, timestamp start, const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  constexpr std::uint64_t at_once = 500;
  std::vector<entry> part;
  for (std::uint64_t row = 0; row < rows; ++row) {
    part.push_back({.name = std::string(name),
                    .key = key_of(row),
                    .as_of = start,
                    .expire_on = start + (row % tenth == 0 ? std::chrono::microseconds(kept_early) : std::chrono::microseconds(kept)),
                    .payload = traffic::payload(),
                    .payload_class = "bench.Country"});
    if (part.size() < at_once && row + 1 < rows) continue;
    into.put(part);
    part.clear();
    if (progress && (row + 1) % 10'000 == 0) progress(row + 1, rows);
  }
}

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

}  // namespace

std::vector<row> measure_store(const store_bench& what) {
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

  const auto raw_traffic = std::make_shared<traffic>(few, start);
  std::vector<row> rows;
  rows.push_back(measure(versus("store.put100", 1 / 0.85, puts(ours, few, start),
                                [&](std::uint64_t times) {
                                  for (std::uint64_t i = 0; i < times; ++i) floor->put(raw_traffic->next_batch());
                                }),
                         what.how));
  if (dialect != sql::dialect_id::sqlite) {
    settings fewer = what.how;
    // A hundred commits a round, and a bar far away.
    fewer.rounds = std::min<std::size_t>(fewer.rounds, 21);
    rows.push_back(measure(versus("store.put100_vs_single", 0.1, puts(ours, few, start + 1s),
                                  [&](std::uint64_t times) {
                                    for (std::uint64_t i = 0; i < times; ++i) floor->put_singly(raw_traffic->next_batch());
                                  }),
                           fewer));
  }
  const contest find =
      versus("store.find", 1.25, finds(ours, few, start), [&, keys = std::make_shared<traffic>(few, start)](std::uint64_t times) {
        for (std::uint64_t i = 0; i < times; ++i) keep(floor->find(name, keys->next_key()));
      });
  rows.push_back(dialect == sql::dialect_id::sqlite ? measure(find, what.how) : measure_from_everywhere(find, what.how));
  if (!what.large) return rows;

  const std::string large_prefix = prefix + "LARGE_";
  made.add(large_prefix);
  const auto large = on.store({.prefix = large_prefix, .create_schema = true});
  fill(*large, many, start, what.progress);
  rows.push_back(measure(versus("store.find_million", 2, finds(large, many, start), finds(ours, few, start)), what.how));
  rows.push_back(measure(versus("store.put_million", 2, puts(large, many, start), puts(ours, few, start + 2s)), what.how));
  rows.push_back(expire_stall(*large, start + 3s));
  return rows;
}

}  // namespace holdfast::bench
