#pragma once

/// \file
/// Looks at a store's table and at its server, and says what is wrong and what to type. The command line calls it `holdfast store doctor`.

#include <holdfast/database.hpp>
#include <holdfast/sql.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE {

/// How bad a finding is; each is worse than the one before.
enum class severity : std::uint8_t {
  note,     ///< it works; good to know
  warning,  ///< it works, but slowly, or a power failure may lose what was acknowledged
  failing,  ///< something fails now and can be cured while everything runs: no table, no privilege, read-only, a wrong clock
  wrong     ///< the table itself is not one: entries would be lost, mixed up or refused. A store refuses to start on it
};
[[nodiscard]] HOLDFAST_API std::string_view to_string(severity s) noexcept;

/// One thing that is not as it should be.
struct probe_finding {
  std::string code;  ///< a stable name: `expire_index`, `collation`
  holdfast::severity severity = holdfast::severity::warning;
  std::string problem;             ///< what is wrong, in one line
  std::vector<std::string> sql{};  ///< the statements that cure it, to be run in this order by one who may; none when SQL cannot
  std::string advice{};            ///< what to do where SQL cannot
};

/// What the probe saw.
struct probe_report {
  sql::dialect_id dialect = sql::dialect_id::unknown;
  std::string server{};                             ///< its version, as it says it
  std::vector<std::string> tables{};                ///< what was looked at: one table for each realm
  std::optional<std::chrono::microseconds> skew{};  ///< how far the server's clock is ahead of ours; nothing where there is one clock
  std::chrono::microseconds skew_within{};          ///< half of the round trip: how far `skew` may be off
  std::vector<probe_finding> findings{};            ///< the worst first

  /// Nothing that fails or is wrong; there may be warnings.
  [[nodiscard]] bool usable() const noexcept { return findings.empty() || findings.front().severity < severity::failing; }
};

/// Looks at everything: the table, its columns, keys and indexes; the settings that decide whether an acknowledged write survives a power
/// failure; the clocks; and whether the store's own statements may be run, in a transaction that is rolled back. Changes nothing.
/// Throws holdfast::error when the database cannot be reached, or errc::invalid_argument for options that no store would take.
/// Thread-safety: may be called from any thread, beside a store in use.
[[nodiscard]] HOLDFAST_API probe_report probe(const database& on, const store_options& options = {});

}  // namespace HOLDFAST_NAMESPACE
