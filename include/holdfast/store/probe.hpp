#pragma once

/// \file
/// Examines a store's table and server. Each finding says what is wrong and which statements repair
/// it. On the command line: `holdfast store doctor`.

#include <holdfast/sql.hpp>
#include <holdfast/store.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE {

class database;

/// The severity of a finding, in ascending order.
enum class severity : std::uint8_t {
  /// For information.
  note,
  /// The store works, but slowly, or a power failure may lose acknowledged writes.
  warning,
  /// Operations fail now: no table, no privilege, a read-only server, a wrong clock. This can be
  /// repaired while the store runs.
  failing,
  /// The table would lose, confuse or refuse entries. A store refuses to start on it.
  wrong
};
[[nodiscard]] HOLDFAST_API std::string_view to_string(severity s) noexcept;

/// A problem that the probe found.
struct probe_finding {
  /// A stable name, for example `expire_index` or `collation`.
  std::string code;
  holdfast::severity severity = holdfast::severity::warning;
  /// What is wrong, in one line.
  std::string problem;
  /// The statements that repair it, in order. Empty if SQL cannot repair it.
  std::vector<std::string> sql{};
  /// What to do if SQL cannot repair it.
  std::string advice{};
};

/// The result of a probe.
struct probe_report {
  sql::dialect_id dialect = sql::dialect_id::unknown;
  /// The product and version of the server.
  std::string server{};
  /// The tables that were examined, one for each realm.
  std::vector<std::string> tables{};
  /// How far the server's clock is ahead of ours. Empty if the database has no clock of its own.
  std::optional<std::chrono::microseconds> skew{};
  /// The possible error of `skew`: half of the round-trip time.
  std::chrono::microseconds skew_within{};
  /// The worst first.
  std::vector<probe_finding> findings{};

  /// Returns whether nothing is `failing` or `wrong`. There may be warnings.
  [[nodiscard]] bool usable() const noexcept {
    return findings.empty() || findings.front().severity < severity::failing;
  }
};

/// Examines the table with its columns, keys and indexes, the server settings that decide whether
/// an acknowledged write survives a power failure, the clocks, and whether the store's statements
/// run (in a transaction that is rolled back). Changes nothing.
///
/// Throws holdfast::error if the database cannot be reached, and errc::invalid_argument for options
/// that no store accepts.
/// Thread-safety: may be called from any thread, also while a store is in use.
[[nodiscard]] HOLDFAST_API probe_report probe(const database& db,
                                              const store_options& options = {});

}  // namespace HOLDFAST_NAMESPACE
