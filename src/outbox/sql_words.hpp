#pragma once

/// \file
/// Everything that the outbox says to an SQL database: the dialect as data. Lists of rows travel as one JSON parameter, so that a statement
/// has one text whatever their number, on a connection of ours and in the caller's transaction alike.

#include <holdfast/sql.hpp>
#include <holdfast/version.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::outboxes {

/// Where a row of the table of events stands.
enum class place : std::int64_t {
  queued = 0,    ///< to be delivered: due, waiting, claimed, or behind another event of its key
  parked = 2,    ///< kept aside
  blocking = 3,  ///< kept aside, and its key waits for it
  done = 4       ///< remembered: an id that was delivered, `t:` a ticket that fired, `e:` an effect that was applied
};

/// The tables of one outbox. Times are milliseconds since 1970, by the clock of the database.
struct sql_tables {
  std::string events;   ///< narrow, updated; one row for each event, and for what is remembered
  std::string entries;  ///< wide, only inserted and deleted: the JSON of an event
  std::string tickets;  ///< what expires
  std::string lanes;    ///< one row for each: the lock, the pause; and one for the prefix
  std::string tallies;  ///< counters, as differences: publishers only insert, and never wait for each other
  std::string stripes;  ///< MariaDB, MySQL: rows to be locked, so that events of one key are published one transaction after another
};
/// From the hash tag, which has to be the whole prefix: letters (in lower case), digits and `_` stay, the rest becomes `_`.
[[nodiscard]] sql_tables tables_of(std::string_view prefix);

/// The row of `lanes` that keeps the prefix in OWNER: prefixes that differ only in what becomes `_` name the same tables.
inline constexpr std::int64_t lane_of_prefix = -1;

/// A publisher locks the stripe of each key, in ascending order, until its transaction ends.
inline constexpr std::int64_t stripes = 256;
[[nodiscard]] std::int64_t stripe_of(std::string_view key) noexcept;

struct sql_words {
  /// So many rows of a kind are counted; more are not looked at, so that nobody waits for it.
  static constexpr std::int64_t most_counted = 10'000;

  /// Throws errc::unsupported_type for a dialect that has no outbox.
  sql_words(sql::dialect_id spoken, const sql_tables& t);

  sql::dialect_id dialect;
  sql_tables tables;
  std::int64_t lock_class = 0;  ///< PostgreSQL: the first number of its advisory locks

  // Parameters in this order; [a, b] is a JSON list of rows with these columns. `now` is in milliseconds.
  sql::statement lane{};        ///< lane -> now in microseconds, paused, owner, until, fence, token; nobody changes it meanwhile
  sql::statement lane_alone{};  ///< the same, to change it
  sql::statement clock{};       ///< -> now; locks nothing, for the caller's transaction
  sql::statement set_lane{};    ///< paused, owner, until, fence, token, lane
  sql::statement count_lanes{};
  std::vector<sql::statement> all_columns{};  ///< every column of every table, and no row
  sql::statement add_lane{};                  ///< lane
  sql::statement read_prefix{};               ///< -> the prefix of the outbox; no row: a version before this one made it
  sql::statement add_prefix{};                ///< prefix; unless one is there

  sql::statement lock_stripes{};  ///< [stripe]; empty where nobody needs it or `publish` does it
  sql::statement try_stripes{};   ///< [stripe] -> those that nobody else holds, locked; PostgreSQL: class, too
  /// PostgreSQL alone, all in one: [id, key, entry, bytes, delay], lane, [stripe], class, channel -> ids that were added
  sql::statement publish{};
  sql::statement known{};         ///< [id] -> id, place, at, now in milliseconds
  sql::statement forget_ids{};    ///< [id], at or before: those that are only remembered
  sql::statement add_events{};    ///< [lane, id, key, delay, created, bytes]; as many as are new
  sql::statement add_entries{};   ///< [id, entry]
  sql::statement remember{};      ///< lane, [id, at]
  sql::statement remember_new{};  ///< lane, id, at: unless it is there
  sql::statement remembered{};    ///< id -> at, if it is
  sql::statement notify{};        ///< PostgreSQL: channel, lane
  sql::statement first_due{};     ///< lane -> the smallest due of what may be claimed, if any

  sql::statement candidates{};      ///< lane, now, limit -> event columns; locked
  sql::statement lock_heads{};      ///< [seq] -> seq: those that nobody else holds, locked
  sql::statement demote{};          ///< [seq]
  sql::statement followers{};       ///< lane, key, seq, limit -> event columns
  sql::statement followers_free{};  ///< the same, only those that nobody else holds, locked
  sql::statement take{};            ///< token, due, [seq, run]
  sql::statement entries_of{};      ///< [id] -> id, entry

  sql::statement by_id{};       ///< lane, [id] -> event columns; locked
  sql::statement heads{};       ///< lane, [key] -> key, seq of its first event
  sql::statement by_seq{};      ///< [seq] -> event columns; locked
  sql::statement by_id_free{};  ///< as by_id, by_seq: only those that nobody else holds, locked
  sql::statement by_seq_free{};
  sql::statement by_id_seen{};  ///< the same, without a lock
  sql::statement by_seq_seen{};
  sql::statement place_events{};   ///< [seq, place, queue or null, due or null, at, token, run, deliveries, attempts, replays, error]
  sql::statement promote{};        ///< [seq, token, run, more deliveries, due or null: its own time]
  sql::statement finish{};         ///< at, [seq]: delivered, and remembered
  sql::statement erase_events{};   ///< [seq]
  sql::statement erase_entries{};  ///< [id]
  sql::statement add_again{};      ///< lane, id, key, at, created, bytes, replays, number: behind all others
  sql::statement trim{};           ///< lane, at or before, limit; empty where it takes two steps:
  sql::statement pick_oldest{};    ///< MariaDB, MySQL: the same -> seq; locked
  sql::statement surplus{};        ///< lane, limit -> at of the one after the newest `limit` that are remembered
  sql::statement renew_lease{};    ///< due, [seq]

  sql::statement ticket{};         ///< lane, ticket -> expires; locked
  sql::statement add_ticket{};     ///< lane, ticket, expires, key, body
  sql::statement set_ticket{};     ///< expires, key, body, lane, ticket
  sql::statement erase_ticket{};   ///< lane, ticket
  sql::statement due_tickets{};    ///< lane, now, limit -> ticket, expires, key, body; locked
  sql::statement erase_tickets{};  ///< [ticket, lane]
  sql::statement first_ticket{};   ///< lane -> expires
  sql::statement scan_tickets{};   ///< lane, after, limit -> ticket, expires, key, body

  sql::statement tally{};       ///< lane and the counters, in the order of `counters`
  sql::statement tallies{};     ///< lane -> number of rows, and the sums
  sql::statement fold_pick{};   ///< lane, limit -> n; locked
  sql::statement fold_erase{};  ///< [n] -> nothing
  sql::statement fold_sum{};    ///< [n] -> the sums

  sql::statement count{};          ///< lane, three times -> events, bytes, tickets, and the same by the tallies; reads every row
  sql::statement waiting{};        ///< lane, four times -> parked, blocking, remembered, with a key, their keys; of each at most so many
  sql::statement overdue{};        ///< lane, now -> the due of the longest waiting head
  sql::statement find{};           ///< lane, id -> event columns, id of the head
  sql::statement scan{};           ///< lane, after, limit -> the same
  sql::statement scan_parked{};    ///< lane, after, limit -> the same
  sql::statement without_entry{};  ///< lane -> seq, id, queue
  sql::statement without_place{};  ///< -> id
  sql::statement without_head{};   ///< lane -> seq of the first event of each key that nothing leads to

  /// Of the tallies.
  static constexpr std::string_view counters[] = {"EVENTS", "BYTES",   "TICKETS",  "PUBLISHED", "DUPLICATES", "CLAIMS",
                                                  "ACKED",  "RETRIED", "PARKINGS", "STALE",     "FIRED",      "ORPHANS"};
  static constexpr std::size_t counter_count = std::size(counters);
};

/// What creates the tables of an outbox, one statement each; nothing happens where they are.
/// Throws errc::unsupported_type for a dialect that has no outbox.
[[nodiscard]] std::vector<std::string> sql_outbox_schema(sql::dialect_id dialect, const sql_tables& t);

}  // namespace HOLDFAST_NAMESPACE::outboxes
