#pragma once

/// \file
/// Makes a process visible to `holdfast serve`, through the database that the process already uses.
///
///     holdfast::engine engine(db.store());
///     holdfast::reporter reporter{engine, db};
///
/// Every interval one row of {prefix}HOLDFAST_INSTANCE is written: the name of the instance, the
/// time of the database, and the status of the engine, worker or cleanup as JSON. In the same turn
/// the commands for this instance are read from {prefix}HOLDFAST_COMMAND. On Redis a hash with an
/// expiry takes the place of the row. An instance is silent when it has not reported for three
/// intervals by the clock of the database.

#include <holdfast/clock.hpp>
#include <holdfast/database.hpp>
#include <holdfast/sql.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE {

class cleanup;
class engine;
class worker;

/// An order of an operator to instances, such as the drill of a point.
struct instance_command {
  /// Chosen by the sender, unique: 1 to 64 letters, digits, `-`, `_` and `.`.
  std::string id{};
  /// The instance that executes it; `*` means all.
  std::string instance{};
  /// `drill`: 1 to 32 characters as in `id`.
  std::string kind{};
  /// JSON, at most 4096 bytes.
  std::string body{};
};

struct reporter_options {
  /// Time between two reports, at least 100 ms. Lower it in tests.
  std::chrono::milliseconds every = std::chrono::seconds(10);
  /// Prefix of the tables, as in store_options; on Redis, of the keys.
  std::string prefix{};
  /// Name of this instance, at most 128 printable bytes. Empty: `host:pid`, and `host:pid.2` for
  /// the second reporter of a process. Set it where several containers have one host name.
  std::string instance{};
  /// Create the tables if they do not exist.
  bool create_schema = false;
  /// Called on the thread of the reporter, once for each command. Exceptions are counted and
  /// logged. Empty: commands are not read.
  std::function<void(const instance_command&)> on_command{};
};

struct reporter_numbers {
  std::uint64_t reports = 0;   ///< written
  std::uint64_t failures = 0;  ///< reports that failed, and commands whose function threw
  std::uint64_t commands = 0;  ///< commands that were executed
  std::string problem{};       ///< why the last report failed; empty if it succeeded
};

/// Reports regularly until it is destroyed, and then removes its row. A process that was killed
/// leaves its row, which others remove after a day.
///
/// A failure never reaches the application: it is counted, and logged at most once a minute with
/// the log of the database. Tables that do not exist are logged once, as an info. While the
/// database does not answer, nothing piles up: the next report replaces the one that failed.
///
/// Threads: one, `hf-reporter`. The destructor waits for it for a second; a report that still waits
/// for the database then ends by itself. Thread-safety: every function may be called from any
/// thread. After fork the child does not report.
class HOLDFAST_API reporter {
 public:
  /// The engine, worker or cleanup must outlive the reporter and must not be moved meanwhile.
  /// Does not connect. Throws errc::invalid_argument for an invalid option, and for a database in
  /// memory, which no other process sees.
  reporter(const engine& source, const database& db, reporter_options options = {});
  reporter(const worker& source, const database& db, reporter_options options = {});
  reporter(const cleanup& source, const database& db, reporter_options options = {});
  reporter(reporter&&) noexcept;
  reporter& operator=(reporter&&) = delete;
  ~reporter();

  /// The name under which it reports.
  [[nodiscard]] const std::string& instance() const noexcept;
  [[nodiscard]] reporter_numbers count() const;

 private:
  struct state;
  std::shared_ptr<state> state_;
};

/// What an instance reported last.
struct instance_report {
  std::string instance{};
  /// `engine`, `worker` or `cleanup`.
  std::string kind{};
  /// When its reporter was created, and when it reported last, by the clock of the database.
  timestamp started{};
  timestamp seen{};
  /// `seen` until now, by the clock of the database.
  std::chrono::microseconds age{};
  /// Time between its reports.
  std::chrono::milliseconds every{};
  /// JSON, at most 64 KiB; docs/serve-live.md describes it.
  std::string state{};

  [[nodiscard]] bool silent() const noexcept { return age > 3 * every; }
};

/// Returns at most `limit` reports of the last day, the newest first. Throws errors of the
/// database: errc::missing_object if the table does not exist.
[[nodiscard]] HOLDFAST_API std::vector<instance_report> read_instances(const database& db,
                                                                       std::string_view prefix = {},
                                                                       std::size_t limit = 1'000);

/// Leaves a command that instances execute with their next report. Each executes it once, unless
/// it restarts while the command is valid. A command with the same id is replaced. Throws
/// errc::invalid_argument, and errors of the database.
HOLDFAST_API void send_instance_command(const database& db, const instance_command& command,
                                        std::chrono::milliseconds valid_for,
                                        std::string_view prefix = {});

/// The statements that create the tables of reports and commands if they do not exist.
[[nodiscard]] HOLDFAST_API std::vector<std::string> instance_schema(sql::dialect_id dialect,
                                                                    std::string_view prefix = {});

}  // namespace HOLDFAST_NAMESPACE
