#pragma once

/// \file
/// The table of lanes: pause, lock, tokens of claims, and the clock of the database.

#include <holdfast/clock.hpp>
#include <holdfast/outbox/event.hpp>

#include "outbox/sql/statement.hpp"

#include <memory>
#include <mutex>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::outbox {

/// A lane, and the time at which it was read, which is the time of the whole operation.
struct lane_row {
  std::int64_t now_us = 0;
  std::int64_t now_ms = 0;
  bool paused = false;
  std::string lock_owner{};
  std::int64_t locked_until = 0;
  fence lock_fence = 0;
  fence last_token = 0;  ///< SQLite: of the latest claim in the lane
  /// A column had a value that the outbox does not write. 0 was read instead.
  bool has_bad_number = false;
  /// lane_access::settling: the effect of an event of the lane that exists was applied.
  bool has_effect_marks = false;

  [[nodiscard]] bool locked_by(std::string_view owner) const {
    return lock_owner == owner && locked_until > now_ms;
  }
};

enum class lane_access : std::uint8_t {
  shared,    ///< others may read the row, but not change it, until the transaction ends
  settling,  ///< the same, and says whether marks of effects may have to be changed
  exclusive  ///< for a transaction that writes the row
};

[[nodiscard]] named_statement count_lanes_statement(const statement_builder& builder);

/// Thread-safety: every function may be called from any thread.
class lane_table {
 public:
  lane_table(const statement_builder& builder, std::size_t lanes,
             std::shared_ptr<const clock> local_clock);

  /// Throws errc::invalid_argument if the lane does not exist.
  lane_row read(const lane_session& session, lane_access access = lane_access::shared) const;
  void write(const lane_session& session, const lane_row& row) const;

  /// Returns a token for a claim, larger than `last`, the largest one that its events had before.
  /// SQLite has one writer at a time and stores the last token of the lane. Elsewhere all claims
  /// would wait for that row; there the clock makes the tokens grow.
  fence new_token(const lane_session& session, lane_row& row, fence last) const;

  /// Returns whether events may have been published at a time after `now_ms`: in the first claim of
  /// this process, and in the first minute after it saw the clock of the database go back, once a
  /// second.
  [[nodiscard]] bool clock_was_ahead(std::size_t lane, std::int64_t now_ms) const;

  /// The time of the database. Does not lock the lane: a transaction of the caller may be long.
  std::int64_t now_ms(const lane_session& session) const;
  /// The time, if a statement has selected {now_ms}. SQLite runs in this process and takes the time
  /// from the clock of the caller instead.
  std::int64_t now_ms(std::int64_t selected) const;

 private:
  /// What this process saw of the clock of the database.
  struct clock_history {
    std::mutex mutex{};
    std::int64_t latest = 0;       ///< 0: nothing yet
    std::int64_t watch_until = 0;  ///< the clock went back less than a minute before
    std::int64_t next_watch = 0;
  };

  mutable std::vector<clock_history> clock_histories_;  ///< of each lane
  std::shared_ptr<const clock> local_clock_;            ///< only on SQLite
  named_statement read_shared_;
  named_statement read_settling_;
  named_statement read_exclusive_;
  named_statement write_;
  named_statement read_clock_;
};

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
