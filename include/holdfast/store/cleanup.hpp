#pragma once

/// \file
/// Removes expired entries now and then: on a schedule, in small batches, on one machine at a time.

#include <holdfast/clock.hpp>
#include <holdfast/database.hpp>
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

/// How a run ended.
enum class cleanup_result : std::uint8_t {
  cleaned,         ///< nothing that expired is left
  limited,         ///< the limit was reached; the next run goes on
  held_elsewhere,  ///< another one holds the lease: it cleans
  running,         ///< this one is cleaning already
  lost,            ///< the lease was lost while cleaning: too slow, another one took over
  stopped,         ///< closed
  failed           ///< the database refused; see `problem`
};
/// The stable spelling: `cleaned`, `held_elsewhere` and so on.
[[nodiscard]] HOLDFAST_API std::string_view to_string(cleanup_result result) noexcept;

struct cleanup_report {
  cleanup_result result = cleanup_result::cleaned;
  std::size_t removed = 0;
  timestamp started{};
  std::chrono::microseconds duration{};
  std::string holder{};     ///< who holds or held the lease; empty without a lease
  std::uint64_t fence = 0;  ///< of the lease that this run held; 0 when it held none
  std::string problem{};    ///< why it failed, in one line
};

struct cleanup_options {
  std::string cron = "0 0 * * * *";                            ///< when: second minute hour day-of-month month day-of-week, UTC; hourly
  std::chrono::milliseconds jitter = std::chrono::minutes(1);  ///< each run is later by up to this, so that machines do not ask all at once
  std::size_t batch = 1000;                                    ///< entries that are removed before others get their turn
  std::size_t limit = 1'000'000;                               ///< entries that one run removes; the next run goes on
  std::chrono::milliseconds lease = std::chrono::minutes(1);   ///< a machine that died is followed by another after this; 0 means no lease
  std::string prefix{};                                        ///< of the lease's table {prefix}HOLDFAST_LEASE: the store's own
  std::string owner{};  ///< what others see as the holder of the lease; host and process unless given
  /// Told of every run when it has ended, on the thread that ran it; what it throws is dropped.
  std::function<void(const cleanup_report&)> on_run{};
};

/// How a cleanup is.
struct cleanup_state {
  std::optional<cleanup_report> last{};  ///< the run that ended last, on this machine
  std::optional<timestamp> next{};       ///< when the next one is due; nothing when closed, or when the executor refused the timer
  bool running = false;
  std::uint64_t runs = 0;      ///< ended, whatever came of them
  std::uint64_t removed = 0;   ///< entries, by all runs
  std::uint64_t skipped = 0;   ///< runs that left the work to another machine
  std::uint64_t failures = 0;  ///< runs that failed or lost their lease
};

/// Cleans a store on a schedule, until it is closed or destroyed. It has no thread of its own: it runs on the database's executor, batch by
/// batch, so that others get their turn. Of all the machines that clean one store, the holder of a lease does it: a row of the table
/// {prefix}HOLDFAST_LEASE, by the server's clock, with a fence that grows with every holder. `store_schema` has the table. A `memory:` store
/// needs no lease. Removing expired entries is harmless twice: the lease saves work, and nothing depends on it.
///
/// Numbers: holdfast_cleanup_runs_total{result}, holdfast_cleanup_removed_total, holdfast_cleanup_seconds, and
/// holdfast_cleanup_last_success_timestamp_seconds. The log is told of each run that removed something, and of each that failed.
///
/// Thread-safety: every function may be called from any thread. After fork the child must not use it.
class HOLDFAST_API cleanup {
 public:
  /// Starts at once. Throws errc::invalid_argument: cron expression, batch, limit; and a lease on a database whose dialect is unknown.
  cleanup(const database& on, std::shared_ptr<store> what, cleanup_options how = {});
  cleanup(cleanup&&) noexcept;
  cleanup& operator=(cleanup&&) noexcept;
  /// Does not wait: a batch that is being removed is finished by the executor, and then gives the lease back.
  ~cleanup();

  /// One run now, on this thread, whatever the schedule says. Never throws because of the database: see the report.
  cleanup_report run_now();

  [[nodiscard]] cleanup_state state() const;

  /// Stops the schedule, ends a run after its batch, and gives the lease back. False when that was not done at the deadline; it ends by
  /// itself, and is told to `on_run` then. Safe to repeat. The deadline is a moment of std::chrono::steady_clock, whatever clock the database
  /// was given.
  bool close(std::chrono::steady_clock::time_point deadline);

 private:
  class impl;
  std::shared_ptr<impl> impl_;
};

}  // namespace HOLDFAST_NAMESPACE
