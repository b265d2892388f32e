#include "bench/locked_sequence.hpp"

#include <holdfast/database.hpp>
#include <holdfast/error.hpp>
#include <holdfast/sequence.hpp>

#include "bench/store/raw_client.hpp"

#include <unistd.h>

#include <chrono>
#include <utility>

namespace holdfast::bench {

namespace {

using steady = std::chrono::steady_clock;

constexpr std::int64_t block_size = 20;

/// Calls `action` for so long, and returns how often in a second.
template <class Action>
double rate_of(double seconds, Action action) {
  const auto start = steady::now();
  std::uint64_t count = 0;
  std::chrono::duration<double> elapsed{};
  do {
    action();
    ++count;
    elapsed = steady::now() - start;
  } while (elapsed.count() < seconds);
  return static_cast<double>(count) / elapsed.count();
}

/// Three counters in one table: one that is drawn from, one that the floor raises, and one that is
/// locked.
class counters {
 public:
  explicit counters(const std::string& url)
      : prefix_("bench_" + std::to_string(::getpid()) + "_"),
        raw_(connect_raw_client(read_settings(url))),
        locker_(connect_raw_client(read_settings(url))),
        database_(open(url)) {
    (void)drawn_.next();
    (void)waiting_.next();
    raw_->run("INSERT INTO " + table() +
              " (NAME, LAST_SEQ, LIMIT_SEQ) VALUES ('raw', 0, 9223372036854775807)");
  }
  counters(const counters&) = delete;
  counters& operator=(const counters&) = delete;
  ~counters() {
    try {
      if (locked_) unlock();
      raw_->run("DROP TABLE " + table());
    } catch (...) {
      // The first failure is reported.
    }
  }

  void draw_block() {
    for (std::int64_t i = 0; i < block_size; ++i) (void)drawn_.next();
  }
  /// What a client without a library does.
  void update_by_name() {
    raw_->run("UPDATE " + table() + " SET LAST_SEQ = LAST_SEQ + " + std::to_string(block_size) +
              " WHERE NAME = 'raw'");
  }
  /// A block of the locked counter is requested, and waits.
  void lock() {
    locker_->run("BEGIN");
    locked_ = true;
    locker_->run("UPDATE " + table() + " SET EPOCH = EPOCH + 1 WHERE NAME = 'waiting'");
    while (waiting_.try_next()) {
    }
  }
  void unlock() {
    locked_ = false;
    locker_->run("ROLLBACK");
  }
  /// Every round begins with a small table. MySQL has nothing to remove.
  void remove_old_versions(bool postgres) {
    if (postgres) raw_->run("VACUUM " + table());
  }

 private:
  [[nodiscard]] std::string table() const { return prefix_ + "SEQUENCES"; }

  const std::string prefix_;
  const std::unique_ptr<raw_client> raw_;
  const std::unique_ptr<raw_client> locker_;
  database database_;
  const sequence_options options_{.blocks = fixed_blocks{block_size},
                                  .wait = std::chrono::hours(1),
                                  .store = {.prefix = prefix_, .create_schema = true}};
  sequence drawn_ = database_.sequence("drawn", options_);
  sequence waiting_ = database_.sequence("waiting", options_);
  bool locked_ = false;
};

}  // namespace

std::vector<row> measure_locked_sequence(const locked_sequence_options& options) {
  const bool postgres = options.url.starts_with("postgres");
  if (!postgres && !options.url.starts_with("mysql:") && !options.url.starts_with("mariadb:"))
    throw error(errc::invalid_argument,
                "a row can be locked on PostgreSQL, MySQL and MariaDB; give one of these");
  counters measured(options.url);
  std::vector<double> ours_alone;
  std::vector<double> ours_locked;
  std::vector<double> raw_alone;
  std::vector<double> raw_locked;
  const auto measure_both = [&](std::vector<double>& ours, std::vector<double>& raw) {
    const auto draw = [&] {
      ours.push_back(rate_of(options.round_seconds, [&] { measured.draw_block(); }));
    };
    const auto update = [&] {
      raw.push_back(rate_of(options.round_seconds, [&] { measured.update_by_name(); }));
    };
    if (ours.size() % 2 == 0) {
      draw();
      update();
    } else {
      update();
      draw();
    }
  };
  for (std::size_t round = 0; round < options.rounds; ++round) {
    measured.remove_old_versions(postgres);
    measure_both(ours_alone, raw_alone);
    measured.remove_old_versions(postgres);
    measured.lock();
    measure_both(ours_locked, raw_locked);
    measured.unlock();
  }
  const double ours = median(std::move(ours_locked));
  const double raw = median(std::move(raw_locked));
  return {make_row("isolation.one_is_locked", ours, median(std::move(ours_alone)), "blocks/s", 0.9,
                   bound::at_least),
          make_row("isolation.locked_vs_update", ours, raw, "blocks/s", 0.5, bound::at_least),
          // For comparison: what the same transaction costs a client that searches by name.
          make_row("isolation.update_alone", raw, median(std::move(raw_alone)), "updates/s", 0,
                   bound::at_least)};
}

}  // namespace holdfast::bench
