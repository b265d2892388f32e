#pragma once

/// \file
/// The counters of each lane. The table holds changes, and the value of a counter is their sum:
/// publishers only insert and never wait for each other. From time to time the changes of a lane
/// are replaced by their sum.

#include "outbox/sql/statement.hpp"

#include <atomic>

namespace HOLDFAST_NAMESPACE::detail::outbox {

/// Changes of the counters of a lane, or their values. The meanings are those of outbox_stats.
struct lane_counters {
  std::int64_t events = 0, bytes = 0, tickets = 0;
  std::int64_t published = 0, duplicates = 0, claims = 0, acked = 0, retried = 0, parkings = 0,
               stale = 0, fired = 0, orphans = 0;

  bool operator==(const lane_counters&) const = default;
};

struct counter_column {
  std::string_view name;
  std::int64_t lane_counters::* counter;
};
inline constexpr counter_column counter_columns[] = {
    {"EVENTS", &lane_counters::events},         {"BYTES", &lane_counters::bytes},
    {"TICKETS", &lane_counters::tickets},       {"PUBLISHED", &lane_counters::published},
    {"DUPLICATES", &lane_counters::duplicates}, {"CLAIMS", &lane_counters::claims},
    {"ACKED", &lane_counters::acked},           {"RETRIED", &lane_counters::retried},
    {"PARKINGS", &lane_counters::parkings},     {"STALE", &lane_counters::stale},
    {"FIRED", &lane_counters::fired},           {"ORPHANS", &lane_counters::orphans}};

/// Thread-safety: every function may be called from any thread.
class counter_table {
 public:
  explicit counter_table(const statement_builder& builder);

  /// Does nothing if no counter changes.
  void add(const lane_session& session, const lane_counters& changes) const;
  lane_counters sum(const lane_session& session) const;
  /// Replaces the changes of the lane by their sum.
  void compact(const lane_session& session) const;
  /// Replaces all rows of the lane by one, which leaves damaged numbers out.
  void rewrite(const lane_session& session) const;
  /// Returns true in every `interval`th operation of this process, which should compact.
  [[nodiscard]] bool needs_compaction(std::uint32_t interval) const {
    return ++operations_ % interval == 0;
  }
  void compact_sometimes(const lane_session& session, std::uint32_t interval) const {
    if (needs_compaction(interval)) compact(session);
  }

 private:
  named_statement insert_;
  named_statement sum_lane_;
  named_statement select_oldest_;
  named_statement sum_rows_;
  named_statement erase_rows_;
  mutable std::atomic<std::uint32_t> operations_{0};
};

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
