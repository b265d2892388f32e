#pragma once

/// \file
/// The tables of events and entries: rows, and the statements that several operations use.
///
/// Three events of the key k that were published at 10:00, before and after a claim with a lease of
/// five minutes, and after the first event was acknowledged:
///
///     SEQ  QUEUE  DUE        SEQ  QUEUE  DUE        SEQ  QUEUE  DUE
///      1   k      10:00       1   k      10:05       1   NULL   NULL
///      2   k      10:00       2   k      NULL        2   k      10:00
///      3   k      10:00       3   k      NULL        3   k      NULL
///
/// - Publishers only insert. A new row has a DUE, so a claim reads it when that time has come.
/// - The row with the smallest SEQ in a queue is its head. Only a head is delivered.
/// - A claim that reads a follower clears its DUE ("demotes" it), once.
/// - The transaction that removes a head sets the DUE of the next row ("promotes" it).
/// - Both need the lock of the head, so each sees what the other did.

#include <holdfast/outbox/operations.hpp>

#include "outbox/sql/statement.hpp"

namespace HOLDFAST_NAMESPACE::detail::outbox {

/// One row of the table of events.
struct event_row {
  std::int64_t seq = 0;
  std::string id{};
  std::string key{};
  /// The key while the event is in the queue of its key.
  std::optional<std::string> queue{};
  /// When a claim reads the row: when the event is due, or when its lease ends. Empty: never.
  std::optional<std::int64_t> due{};
  row_state state = row_state::queued;
  /// AT. Queued: when the event is due, regardless of leases. Otherwise: since when it has the
  /// state.
  std::int64_t state_time = 0;
  fence token = 0;  ///< of the last claim; 0 after a failure
  /// The largest token that the key, or the event without a key, had so far. The next claim gets a
  /// larger one. TOKEN holds it as a negative number while the event has no claim.
  fence last_token = 0;
  /// RUN of a queued row: the number of events, from this one, that the claim covers.
  std::int64_t run_length = 0;
  /// RUN of a blocking row: the token of the claim that parked it, if its followers are still to be
  /// parked (park_policy::park); otherwise 0. It recognises a settlement that is repeated because
  /// its answer was lost. Such a row has a DUE, so that the next claim continues to park.
  fence parked_by = 0;
  std::int64_t deliveries = 0;
  std::int64_t attempts = 0;
  std::int64_t replays = 0;
  std::int64_t bytes = 0;
  std::int64_t created = 0;
  std::int64_t original_seq = 0;  ///< NUMBER: the SEQ before a replay; 0: it was not replayed
  std::string last_error{};
  /// A column had a value that the outbox does not write. Another one was read instead.
  bool has_bad_number = false;
  std::int64_t head = 0;  ///< SEQ of the head of its queue; 0: the row is in no queue
  std::int64_t next = 0;  ///< SEQ of the row after it in the queue; 0: it is the last

  [[nodiscard]] bool is_head() const noexcept { return !queue || head == seq; }
  /// The event waits for its own time. An event without a delay does not, even if the clock of the
  /// database was ahead when it was published.
  [[nodiscard]] bool is_delayed(std::int64_t now_ms) const noexcept {
    return state_time > now_ms && state_time != created;
  }
  [[nodiscard]] std::int64_t sequence() const noexcept {
    return original_seq != 0 ? original_seq : seq;
  }
};
/// Larger tokens are damage: the next one could not grow.
inline constexpr fence max_token = fence{1} << 61U;
/// The last millisecond of the year 9999. Later times are damage.
inline constexpr std::int64_t max_time_ms = 253'402'300'799'999;
/// AT of the mark of an effect whose event exists. Later than any time, so that no version of the
/// outbox forgets it. Below 2^53: it travels as JSON.
inline constexpr std::int64_t with_event = 9'000'000'000'000'000;

/// What the row says of an event. Its entry says the rest.
[[nodiscard]] claimed_event claimed_event_of(const event_row& row, std::size_t lane);

struct entry_texts {
  std::map<std::string, std::string, std::less<>> by_id{};
  /// The time in microseconds at which they were read; 0 on SQLite, or if no entry exists.
  std::int64_t now_us = 0;
};

using event_rows = std::vector<event_row>;
using event_rows_by_id = std::map<std::string, event_row, std::less<>>;

/// The types of the fragment {event}.
[[nodiscard]] std::vector<sql::type> event_types();
[[nodiscard]] event_row read_event_row(row_reader& reader);
[[nodiscard]] event_rows read_event_rows(const sql::rows& rows);

enum class row_lock : std::uint8_t {
  none,
  wait,
  skip  ///< skips rows that another transaction has locked
};
/// A SELECT of event rows without and with locks.
struct locking_statement {
  named_statement none, wait, skip;

  [[nodiscard]] const named_statement& for_lock(row_lock lock) const {
    return lock == row_lock::none ? none : lock == row_lock::wait ? wait : skip;
  }
};

/// What the next head of a key inherits from the head that left.
struct promotion {
  fence token = 0;              ///< the last token of the key
  std::int64_t run_length = 0;  ///< 0: nothing; the row may be claimed when it is due
  std::optional<std::int64_t> due{};
};
using promotions_by_key = std::map<std::string, promotion, std::less<>>;

struct event_statements {
  locking_statement by_id, by_seq;
  named_statement heads, overdue, entries;
  named_statement insert, update, promote, erase, erase_entries;
  named_statement future_events, set_published;
  named_statement rewrite, wake_heads;
};
[[nodiscard]] event_statements make_event_statements(const statement_builder& builder);

/// Thread-safety: every function may be called from any thread.
class event_table {
 public:
  explicit event_table(const statement_builder& builder)
      : statements_(make_event_statements(builder)) {}

  /// Events of the lane, without remembered ids, in the order of SEQ. `id_list` is a JSON list.
  event_rows by_id(const lane_session& session, std::string_view id_list, row_lock lock) const;
  /// The same, locked, as a map.
  event_rows_by_id lock_by_id(const lane_session& session, std::string_view id_list) const;
  event_rows by_seq(const lane_session& session, std::span<const std::int64_t> seqs,
                    row_lock lock) const;
  /// SEQ of the head of each queue that is not empty.
  std::vector<std::int64_t> heads(const lane_session& session,
                                  std::span<const std::string_view> keys) const;
  /// For how many milliseconds a head has been due at most; 0: no head is due.
  std::int64_t overdue_ms(const lane_session& session, std::int64_t now_ms) const;
  /// The JSON texts of events.
  entry_texts entries(const lane_session& session, std::span<const std::string> ids) const;

  /// Inserts [lane, id, key, delay, created, bytes]; `created` 0 is now. Skips ids that exist.
  /// Returns the number of new rows.
  std::uint64_t insert(const lane_session& session, const json_rows& rows) const;
  /// Writes the columns that a settlement, a parking or a replay changes.
  void update(const lane_session& session, std::span<const event_row> rows) const;
  /// Writes all columns but SEQ, and moves the rows to the lanes.
  void rewrite(const lane_session& session,
               std::span<const std::pair<event_row, std::size_t>> rows_and_lanes) const;
  /// Makes the heads of these keys due that no claim would find.
  void wake_heads(const lane_session& session, std::span<const std::string_view> keys) const;
  /// Makes the next event of each key its head.
  void promote(const lane_session& session, const promotions_by_key& keys,
               std::int64_t now_ms) const;
  /// Makes these events due at their own times.
  void promote(const lane_session& session, std::span<const std::int64_t> seqs,
               std::int64_t now_ms) const;
  /// Makes events without a delay due that were published while the clock of the database was
  /// ahead. Skips rows that another transaction has locked.
  void correct_future_events(const lane_session& session, std::int64_t now_ms) const;
  std::uint64_t erase(const lane_session& session, std::span<const std::int64_t> seqs) const;
  void erase_entries(const lane_session& session, std::span<const std::string> ids) const;

 private:
  std::vector<std::pair<std::string, std::int64_t>> heads_by_key(
      const lane_session& session, std::span<const std::string_view> keys) const;

  event_statements statements_;
};

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
