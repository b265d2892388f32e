#pragma once

/// \file
/// Examines everything that Holdfast has on a database, for `holdfast doctor`: the server, and each
/// set of tables or keys. A part is judged by the code that uses it.

#include <holdfast/database.hpp>
#include <holdfast/schema.hpp>
#include <holdfast/store/probe.hpp>
#include <holdfast/version.hpp>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::doctor {

/// The server, or one set: store, sequences, outbox, instances.
struct part_report {
  std::string part{};
  bool exists = true;
  /// What is worth to be shown, for example {"version", "1"} or {"clock", "3 ms ahead of ours"}.
  std::vector<std::pair<std::string, std::string>> facts{};
  /// The worst first.
  std::vector<probe_finding> findings{};

  [[nodiscard]] bool usable() const noexcept {
    return findings.empty() || findings.front().severity < severity::failing;
  }
};

struct examination_options {
  schema_options names{};
  payload_column payload = payload_column::text;
  /// Time zone of columns that store none, as in store_options.
  std::string zone{};
};

/// The worst first; findings of equal severity keep their order.
HOLDFAST_API void sort_by_severity(std::vector<probe_finding>& findings);

/// Examines all parts. A part that does not exist has no findings. Opens an outbox as a worker
/// does; apart from that it changes nothing. On Redis it does not examine the servers. Throws
/// errc::invalid_argument for a database in memory, and errors of the database.
[[nodiscard]] HOLDFAST_API std::vector<part_report> examine(const database& db,
                                                            const examination_options& options);

/// Returns the number of lanes of an outbox that exists; 1 on a database that has none. Throws
/// errors of the database.
[[nodiscard]] HOLDFAST_API std::size_t lane_count(const database& db, const schema_options& names);

/// Examines the outbox alone. It has a finding if it does not exist.
[[nodiscard]] HOLDFAST_API part_report examine_outbox(const database& db,
                                                      const examination_options& options);

}  // namespace HOLDFAST_NAMESPACE::detail::doctor
