#pragma once

/// \file
/// Removes expired entries on a schedule, in small batches, on one machine at a time.

#include <holdfast/clock.hpp>
#include <holdfast/store.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE {

class database;

/// The result of a run.
enum class cleanup_result : std::uint8_t {
  cleaned,         ///< no expired entries remain
  limited,         ///< the limit was reached; the next run continues
  held_elsewhere,  ///< another process holds the lease and cleans
  running,         ///< this cleanup is already running
  lost,            ///< the run was too slow, and another process took over the lease
  stopped,         ///< the cleanup was closed
  failed           ///< the database failed; see `problem`
};
/// Returns the stable name: `cleaned`, `held_elsewhere` and so on.
[[nodiscard]] HOLDFAST_API std::string_view to_string(cleanup_result result) noexcept;

struct cleanup_report {
  cleanup_result result = cleanup_result::cleaned;
  std::size_t removed = 0;
  timestamp started{};
  std::chrono::microseconds duration{};
  /// The current or last holder of the lease. Empty without a lease.
  std::string holder{};
  /// The fence of the lease that this run held. 0 if it did not hold one.
  std::uint64_t fence = 0;
  /// Why the run failed, in one line.
  std::string problem{};
};

struct cleanup_options {
  /// The schedule, in UTC: second, minute, hour, day of month, month, day of week. Hourly by
  /// default.
  std::string cron = "0 0 * * * *";
  /// Each run is delayed by a random time up to this, so that machines do not start together.
  std::chrono::milliseconds jitter = std::chrono::minutes(1);
  /// The number of entries removed in one task of the executor.
  std::size_t batch = 1000;
  /// The number of entries removed in one run. The next run continues.
  std::size_t limit = 1'000'000;
  /// Another machine takes over this long after the holder of the lease died. 0: no lease.
  std::chrono::milliseconds lease = std::chrono::minutes(1);
  /// Prefix of the lease table {prefix}HOLDFAST_LEASE. Use the prefix of the store.
  std::string prefix{};
  /// The name that other machines see as the holder of the lease. Default: host and process id.
  std::string owner{};
  /// Called after each run, on the thread that ran it. Exceptions are ignored.
  std::function<void(const cleanup_report&)> on_run{};
};

/// The state of a cleanup.
struct cleanup_state {
  /// The last run on this machine.
  std::optional<cleanup_report> last{};
  /// The time of the next run. Empty if closed, or if the executor refused the timer.
  std::optional<timestamp> next{};
  bool running = false;
  std::uint64_t runs = 0;      ///< completed runs, with any result
  std::uint64_t removed = 0;   ///< entries removed by all runs
  std::uint64_t skipped = 0;   ///< runs skipped because another machine cleans
  std::uint64_t failures = 0;  ///< runs that failed or lost their lease
};

/// Removes expired entries from a store on a schedule, until it is closed or destroyed. It has no
/// thread of its own: each batch is one task on the database's executor.
///
/// If several machines clean one store, only the holder of a lease does the work. The lease is a
/// row of the table {prefix}HOLDFAST_LEASE (store_schema creates it). It uses the server's clock,
/// and its fence grows with every holder. The lease only saves work; removing expired entries twice
/// is harmless. A `memory:` store needs no lease.
///
/// Metrics: holdfast_cleanup_runs_total{result}, holdfast_cleanup_removed_total,
/// holdfast_cleanup_seconds, holdfast_cleanup_last_success_timestamp_seconds. Runs that removed
/// entries and runs that failed are logged.
///
/// Thread-safety: every function may be called from any thread. After fork the child must not use
/// it.
class HOLDFAST_API cleanup {
 public:
  /// Starts the schedule. Does not connect. Throws errc::invalid_argument for an invalid cron
  /// expression, batch, limit or prefix. With a lease on a database of unknown dialect, every run
  /// fails.
  cleanup(const database& db, std::shared_ptr<store> cleaned_store, cleanup_options options = {});
  cleanup(cleanup&&) noexcept;
  cleanup& operator=(cleanup&&) noexcept;
  /// Does not wait. The executor finishes the batch in progress and then releases the lease.
  ~cleanup();

  /// Runs now, on this thread. Reports a failure of the database instead of throwing.
  cleanup_report run_now();

  [[nodiscard]] cleanup_state state() const;

  /// Stops the schedule, ends a run after its current batch, and releases the lease. Returns false
  /// if that was not done at the deadline; the run then ends on its own and is reported to
  /// `on_run`. Safe to repeat. The deadline is a time of std::chrono::steady_clock, even if the
  /// database has another clock.
  bool close(std::chrono::steady_clock::time_point deadline);

 private:
  class impl;
  std::shared_ptr<impl> impl_;
};

}  // namespace HOLDFAST_NAMESPACE
