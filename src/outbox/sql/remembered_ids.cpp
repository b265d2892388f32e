#include "outbox/sql/remembered_ids.hpp"

#include "outbox/checks.hpp"

#include <algorithm>

namespace HOLDFAST_NAMESPACE::detail::outbox {

namespace {

/// Steps in which the oldest ids are forgotten. Others may add ids meanwhile.
constexpr int max_forget_steps = 16;
/// How often a process forgets expired ids of a lane on Galera, in milliseconds.
constexpr std::int64_t expiry_interval = 1000;

}  // namespace

remembered_statements make_remembered_statements(const statement_builder& builder) {
  using enum sql::type;
  const row_list ids{"ids", {{"id", row_list::type::name}}};
  const row_list rows{"rows", {{"lane"}, {"id", row_list::type::name}, {"since"}}};
  remembered_statements statements{
      .find = builder.statement(
          "SELECT o.AT FROM {events} o WHERE o.ID = :id/text AND o.PLACE = {remembered}",
          {integer}),
      .find_effect = builder.statement(
          "SELECT o.PLACE, o.AT, CASE WHEN o.ID = :id/text THEN 1 ELSE 0 END FROM {events} o "
          "WHERE o.ID IN (:id/text, :mark/text)",
          {integer, integer, integer}),
      .upsert =
          builder.statement("INSERT INTO {events} (LANE, ID, EVENT_KEY, PLACE, AT) "
                            "SELECT g.lane, g.id, '', {remembered}, g.since FROM " +
                            builder.rows(rows) + " {where_true} " +
                            (builder.mysql() ? "ON DUPLICATE KEY UPDATE AT = VALUES(AT)"
                                             : "ON CONFLICT (ID) DO UPDATE SET AT = excluded.AT")),
      .insert =
          builder.statement("{insert_ignore} {events} (LANE, ID, EVENT_KEY, PLACE, AT) "
                            "VALUES (:lane, :id/text, '', {remembered}, :now) {ignore_conflict}"),
      .renew = builder.statement("UPDATE {events} SET AT = :now WHERE ID = :id/text AND "
                                 "PLACE = {remembered} AND AT <= :until"),
      .start_windows = builder.statement(
          builder.mysql()
              ? "UPDATE " + builder.rows(ids) +
                    " STRAIGHT_JOIN {events} o FORCE INDEX (ID) ON o.ID = g.id SET o.AT = :now "
                    "WHERE o.PLACE = {remembered} AND o.AT = " +
                    std::to_string(with_event)
              : "UPDATE {events} SET AT = :now WHERE ID IN (SELECT g.id FROM " + builder.rows(ids) +
                    ") AND PLACE = {remembered} AND AT = " + std::to_string(with_event)),
      .forget = builder.statement(builder.erase("{events}", "ID", ids) +
                                  " AND PLACE = {remembered} AND AT <= :until"),
      // SQLite uses a partial index only if the text repeats its condition, PLACE <> {queued}.
      .surplus = builder.statement(
          "SELECT o.AT FROM {events} o WHERE o.LANE = :lane AND o.PLACE = {remembered} AND "
          "o.PLACE <> {queued} AND o.AT < " +
              std::to_string(with_event) + " ORDER BY o.AT DESC LIMIT 1 OFFSET :kept",
          {integer}),
      .erase_oldest = {},
      .select_oldest = {}};
  if (builder.mysql()) {
    // A DELETE would wait for the first row after its range, which may be a mark that a handler
    // has added in a long transaction.
    statements.select_oldest = builder.statement(
        "SELECT o.SEQ FROM {events} o {time_index} WHERE o.LANE = :lane AND o.PLACE = {remembered} "
        "AND o.AT <= :until ORDER BY o.AT LIMIT :limit {skip_locked}",
        {integer});
  } else {
    statements.erase_oldest = builder.statement(
        "DELETE FROM {events} WHERE SEQ IN (SELECT SEQ FROM {events} WHERE LANE = :lane AND "
        "PLACE = {remembered} AND PLACE <> {queued} AND AT <= :until ORDER BY AT LIMIT :limit" +
        std::string(builder.postgres() ? " FOR UPDATE SKIP LOCKED)" : ")"));
  }
  return statements;
}

remembered_ids::remembered_ids(const statement_builder& builder, const event_table& events,
                               std::size_t lanes)
    : events_(events),
      locks_(builder.locks()),
      statements_(make_remembered_statements(builder)),
      added_since_count_(lanes),
      next_expiry_(lanes) {}

std::optional<std::int64_t> remembered_ids::find(const lane_session& session,
                                                 std::string_view id) const {
  return first_integer(statements_.find.query(session, {{"id", id}}));
}

effect_state remembered_ids::find_effect(const lane_session& session,
                                         std::string_view event_id) const {
  const auto mark = effect_mark(event_id);
  const auto rows = statements_.find_effect.query(session, {{"id", event_id}, {"mark", mark}});
  effect_state state;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    row_reader reader(rows, i);
    const bool is_remembered = reader.integer() == static_cast<std::int64_t>(row_state::remembered);
    const auto since = reader.integer();
    const bool is_event = reader.integer() != 0;
    if (is_event) state.event_exists = !is_remembered;
    else if (is_remembered) state.applied_at = since;
  }
  return state;
}

void remembered_ids::start_effect_windows(const lane_session& session,
                                          std::span<const std::string> event_ids,
                                          std::int64_t now_ms) const {
  std::vector<std::string> marks;
  marks.reserve(event_ids.size());
  for (const auto& id : event_ids) marks.push_back(effect_mark(id));
  statements_.start_windows.execute(session, {{"ids", json_column(marks)}, {"now", now_ms}});
}

void remembered_ids::remember(const lane_session& session, std::span<const std::string> ids,
                              std::int64_t now_ms) const {
  json_rows rows;
  for (const auto& id : ids) rows.add(session.lane, id, now_ms);
  statements_.upsert.execute(session, {{"rows", rows.text()}});
}

bool remembered_ids::remember_new(const lane_session& session, std::string_view id,
                                  std::int64_t since) const {
  return statements_.insert.execute(session, {{"id", id}, {"now", since}}) == 1;
}

bool remembered_ids::renew(const lane_session& session, std::string_view id, std::int64_t since,
                           std::int64_t until) const {
  return statements_.renew.execute(session, {{"id", id}, {"now", since}, {"until", until}}) == 1;
}

void remembered_ids::forget(const lane_session& session, std::span<const std::string> ids,
                            std::int64_t until) const {
  statements_.forget.execute(session, {{"ids", json_column(ids)}, {"until", until}});
}

std::uint64_t remembered_ids::forget_oldest(const lane_session& session, std::int64_t until) const {
  const auto& erase = statements_.erase_oldest;
  const auto& select = statements_.select_oldest;
  if (erase) return erase->execute(session, {{"until", until}, {"limit", max_events_per_call}});
  if (!select) return 0;
  const auto seqs =
      integers(select->query(session, {{"until", until}, {"limit", max_events_per_call}}));
  return seqs.empty() ? 0 : events_.erase(session, seqs);
}

void remembered_ids::forget_expired(const lane_session& session, std::int64_t now_ms,
                                    std::int64_t until) const {
  if (locks_ == lock_scope::server) {
    (void)forget_oldest(session, until);
    return;
  }
  // Transactions on different nodes do not skip the rows that another one deletes, and all but one
  // of them would fail. So few of them delete, and those delete more.
  auto& next = next_expiry_.at(session.lane);
  if (now_ms < next && now_ms + expiry_interval >= next) return;
  next = now_ms + expiry_interval;
  for (int step = 0; step < max_forget_steps; ++step) {
    if (forget_oldest(session, until) < max_events_per_call) return;
  }
}

void remembered_ids::trim(const lane_session& session, std::int64_t now_ms,
                          const publish_terms& terms, std::size_t added) const {
  forget_expired(session, now_ms, now_ms - terms.dedup_window.count());
  if (terms.dedup_limit == 0) return;  // no limit
  // Counting takes time. It waits until a sixteenth of the limit may have been added, but not for
  // more than a few steps can forget.
  auto& added_since_count = added_since_count_.at(session.lane);
  added_since_count += added;
  if (added_since_count <= std::min(terms.dedup_limit / 16, 8 * max_events_per_call)) return;
  added_since_count = 0;
  const auto surplus =
      first_integer(statements_.surplus.query(session, {{"kept", terms.dedup_limit}}));
  if (!surplus) return;
  // Other processes add ids to the lane as well, so this forgets more than was added here. The
  // newest `dedup_limit` ids stay.
  for (int step = 0; step < max_forget_steps; ++step) {
    if (forget_oldest(session, *surplus - 1) < max_events_per_call) return;
  }
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
