#include "outbox/sql/event_table.hpp"

#include "outbox/checks.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::outbox {

namespace {

constexpr auto name_column = row_list::type::name;

locking_statement select_events(const statement_builder& builder, const std::string& source) {
  const std::string text = "SELECT {event} " + source + " ORDER BY o.SEQ ";
  return {.none = builder.statement(text, event_types()),
          .wait = builder.statement(text + "{for_update}", event_types()),
          .skip = builder.statement(text + "{skip_locked}", event_types())};
}

named_statement insert_events(const statement_builder& builder) {
  const std::string created =
      builder.sqlite() ? "g.created" : "CASE WHEN g.created = 0 THEN {now_ms} ELSE g.created END";
  const row_list events{
      "rows",
      {{"lane"}, {"id", name_column}, {"k", name_column}, {"delay"}, {"created"}, {"bytes"}}};
  // INSERT IGNORE, because the number of rows that an ON DUPLICATE KEY UPDATE reports depends on
  // the flag CLIENT_FOUND_ROWS of the caller's connection.
  return builder.statement(
      "{insert_ignore} {events} (LANE, ID, EVENT_KEY, QUEUE, DUE, AT, BYTES, CREATED) "
      "SELECT g.lane, g.id, g.k, NULLIF(g.k, ''), " +
      created + " + g.delay, " + created + " + g.delay, g.bytes, " + created + " FROM " +
      builder.rows(events) + " {where_true} ORDER BY g.n {ignore_conflict}");
}

named_statement update_event_rows(const statement_builder& builder) {
  const row_list rows{"rows",
                      {{"seq"},
                       {"state"},
                       {"queue", name_column},
                       {"due"},
                       {"state_time"},
                       {"token"},
                       {"run"},
                       {"deliveries"},
                       {"attempts"},
                       {"replays"},
                       {"last_error", row_list::type::long_text}}};
  return builder.statement(builder.update_events(rows, {{"PLACE", "g.state"},
                                                        {"QUEUE", "g.queue"},
                                                        {"DUE", "g.due"},
                                                        {"AT", "g.state_time"},
                                                        {"TOKEN", "g.token"},
                                                        {"RUN", "g.run"},
                                                        {"DELIVERIES", "g.deliveries"},
                                                        {"ATTEMPTS", "g.attempts"},
                                                        {"REPLAYS", "g.replays"},
                                                        {"LAST_ERROR", "g.last_error"}}));
}

named_statement promote_events(const statement_builder& builder) {
  const row_list rows{"rows", {{"seq"}, {"token"}, {"run"}, {"more_deliveries"}, {"due"}}};
  return builder.statement(builder.update_events(
      rows,
      {{"TOKEN", "CASE WHEN g.token = 0 THEN o.TOKEN ELSE g.token END"},
       {"RUN", "g.run"},
       {"DELIVERIES",
        "CASE WHEN o.DELIVERIES BETWEEN 0 AND 1000000000 THEN o.DELIVERIES "
        "ELSE 0 END + g.more_deliveries"},
       {"DUE",
        "COALESCE(g.due, CASE WHEN o.AT > :now AND o.AT = o.CREATED THEN :now "
        "ELSE o.AT END)"}},
      "o.PLACE = {queued}"));
}

named_statement rewrite_event_rows(const statement_builder& builder) {
  const row_list rows{"rows",
                      {{"seq"},
                       {"lane"},
                       {"id", name_column},
                       {"k", name_column},
                       {"state"},
                       {"queue", name_column},
                       {"due"},
                       {"state_time"},
                       {"token"},
                       {"run"},
                       {"deliveries"},
                       {"attempts"},
                       {"replays"},
                       {"bytes"},
                       {"created"},
                       {"original_seq"},
                       {"last_error", row_list::type::long_text}}};
  return builder.statement(builder.update_events(rows, {{"LANE", "g.lane"},
                                                        {"ID", "g.id"},
                                                        {"EVENT_KEY", "g.k"},
                                                        {"PLACE", "g.state"},
                                                        {"QUEUE", "g.queue"},
                                                        {"DUE", "g.due"},
                                                        {"AT", "g.state_time"},
                                                        {"TOKEN", "g.token"},
                                                        {"RUN", "g.run"},
                                                        {"DELIVERIES", "g.deliveries"},
                                                        {"ATTEMPTS", "g.attempts"},
                                                        {"REPLAYS", "g.replays"},
                                                        {"BYTES", "g.bytes"},
                                                        {"CREATED", "g.created"},
                                                        {"NUMBER", "g.original_seq"},
                                                        {"LAST_ERROR", "g.last_error"}}));
}

std::int64_t stored_token(const event_row& row) {
  return row.token != 0 ? row.token : -row.last_token;
}

std::int64_t stored_run(const event_row& row) {
  return row.state == row_state::queued ? row.run_length : row.parked_by;
}

/// Reads numbers that other programs may have damaged. What is not in its range is read as the
/// fallback, so that no arithmetic overflows and no single row stops a lane.
class checked_reader {
 public:
  explicit checked_reader(row_reader& reader) : reader_(reader) {}

  std::int64_t number(std::int64_t least, std::int64_t most, std::int64_t fallback = 0) {
    const auto value = reader_.optional_integer();
    if (value && *value >= least && *value <= most) return *value;
    has_bad_number_ = true;
    return fallback;
  }
  /// A size or a count, which is added to others.
  std::int64_t count() { return number(0, std::numeric_limits<std::int32_t>::max()); }
  std::int64_t time() { return number(0, max_time_ms, -1); }
  [[nodiscard]] bool has_bad_number() const noexcept { return has_bad_number_; }

 private:
  row_reader& reader_;
  bool has_bad_number_ = false;
};

}  // namespace

claimed_event claimed_event_of(const event_row& row, std::size_t lane) {
  claimed_event event;
  event.event.id = row.id;
  event.lane = lane;
  event.deliveries = static_cast<std::uint32_t>(row.deliveries);
  event.attempts = static_cast<std::uint32_t>(row.attempts);
  event.replays = static_cast<std::uint32_t>(row.replays);
  event.created_at = timestamp(std::chrono::milliseconds(row.created));
  event.sequence = row.sequence();
  event.last_error = row.last_error;
  return event;
}

std::vector<sql::type> event_types() {
  using enum sql::type;
  return {integer, text,    text,    text,    integer, integer, integer, integer, integer,
          integer, integer, integer, integer, integer, integer, text,    integer, integer};
}

event_row read_event_row(row_reader& reader) {
  event_row row;
  checked_reader checked(reader);
  row.seq = reader.integer();
  row.id = reader.text();
  row.key = reader.text();
  row.queue = reader.optional_text();
  row.due = reader.optional_integer();
  row.state = static_cast<row_state>(checked.number(0, std::numeric_limits<std::int32_t>::max(),
                                                    std::numeric_limits<std::int32_t>::max()));
  const bool is_remembered = row.state == row_state::remembered;
  row.state_time = checked.number(0, is_remembered ? with_event : max_time_ms, -1);
  const auto token = checked.number(-max_token, max_token);
  row.token = std::max<fence>(token, 0);
  row.last_token = std::abs(token);
  const bool is_queued = row.state == row_state::queued;
  (is_queued ? row.run_length : row.parked_by) =
      checked.number(0, is_queued ? std::int64_t{max_events_per_call} : max_token);
  // A token is a time. A smaller number is the length of a run: PLACE was damaged.
  if (row.state == row_state::blocking && row.parked_by <= std::int64_t{max_events_per_call})
    row.parked_by = 0;
  row.deliveries = checked.count();
  row.attempts = checked.count();
  row.replays = checked.count();
  row.bytes = checked.count();
  row.created = checked.time();
  row.original_seq = checked.number(0, std::numeric_limits<std::int64_t>::max());
  row.last_error = reader.text();
  row.head = reader.integer();
  row.next = reader.integer();
  row.has_bad_number = checked.has_bad_number();
  // The time of publishing and the time when it is due are the same without a delay.
  if (row.created < 0) row.created = std::max<std::int64_t>(row.state_time, 0);
  if (row.state_time < 0) row.state_time = row.created;
  if (row.due && (*row.due < 0 || *row.due > max_time_ms)) {
    row.due = row.state_time;
    row.has_bad_number = true;
  }
  return row;
}

event_rows read_event_rows(const sql::rows& rows) {
  event_rows events;
  events.reserve(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    row_reader reader(rows, i);
    events.push_back(read_event_row(reader));
  }
  return events;
}

event_statements make_event_statements(const statement_builder& builder) {
  using enum sql::type;
  const row_list seqs{"seqs", {{"seq"}}};
  const row_list ids{"ids", {{"id", name_column}}};
  const row_list keys{"keys", {{"k", name_column}, {"lane"}}};
  return {
      .by_id = select_events(builder, builder.join("{events}", "ID", ids) +
                                          " WHERE o.LANE = :lane AND o.PLACE <> {remembered}"),
      .by_seq = select_events(builder, builder.join("{events}", "SEQ", seqs)),
      .heads = builder.statement(
          "SELECT g.k, (SELECT h.SEQ FROM {events} h {key_index} WHERE h.LANE = g.lane AND "
          "h.QUEUE = g.k ORDER BY h.SEQ LIMIT 1) FROM " +
              builder.rows(keys) + " {where_true}",
          {text, integer}),
      .overdue = builder.statement(
          "SELECT o.DUE FROM {events} o {due_index} WHERE o.LANE = :lane AND o.DUE < :now AND "
          "(o.QUEUE IS NULL OR o.SEQ = {head}) ORDER BY o.DUE LIMIT 1",
          {integer}),
      .entries = builder.statement(
          "SELECT o.ID, o.ENTRY, {now_us} " + builder.join("{entries}", "ID", ids),
          {text, text, integer}),
      .insert = insert_events(builder),
      .update = update_event_rows(builder),
      .promote = promote_events(builder),
      .erase = builder.statement(builder.erase("{events}", "SEQ", seqs)),
      .erase_entries = builder.statement(builder.erase("{entries}", "ID", ids)),
      .future_events = builder.statement(
          "SELECT o.SEQ FROM {events} o {due_index} WHERE o.LANE = :lane AND o.DUE > :now AND "
          "o.CREATED > :now AND o.AT = o.CREATED AND o.PLACE = {queued} AND o.TOKEN <= 0 "
          "ORDER BY o.DUE LIMIT :limit {skip_locked}",
          {integer}),
      .set_published = builder.statement(
          builder.update_events(seqs, {{"DUE", ":now"}, {"AT", ":now"}, {"CREATED", ":now"}})),
      .rewrite = rewrite_event_rows(builder),
      .wake_heads = builder.statement(
          builder.update_events(seqs, {{"DUE", "o.AT"}}, "{no_due} AND o.PLACE = {queued}")),
  };
}

event_rows event_table::by_id(const lane_session& session, std::string_view id_list,
                              row_lock lock) const {
  return read_event_rows(statements_.by_id.for_lock(lock).query(session, {{"ids", id_list}}));
}

event_rows_by_id event_table::lock_by_id(const lane_session& session,
                                         std::string_view id_list) const {
  event_rows_by_id rows;
  for (auto& row : by_id(session, id_list, row_lock::wait)) {
    auto id = row.id;
    rows.emplace(std::move(id), std::move(row));
  }
  return rows;
}

event_rows event_table::by_seq(const lane_session& session, std::span<const std::int64_t> seqs,
                               row_lock lock) const {
  return read_event_rows(
      statements_.by_seq.for_lock(lock).query(session, {{"seqs", json_column(seqs)}}));
}

std::vector<std::pair<std::string, std::int64_t>> event_table::heads_by_key(
    const lane_session& session, std::span<const std::string_view> keys) const {
  json_rows list;
  for (const auto key : keys) list.add(key, session.lane);
  const auto rows = statements_.heads.query(session, {{"keys", list.text()}});
  std::vector<std::pair<std::string, std::int64_t>> heads;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    row_reader reader(rows, i);
    auto key = reader.text();
    if (const auto seq = reader.optional_integer()) heads.emplace_back(std::move(key), *seq);
  }
  return heads;
}

std::vector<std::int64_t> event_table::heads(const lane_session& session,
                                             std::span<const std::string_view> keys) const {
  std::vector<std::int64_t> seqs;
  for (const auto& [key, seq] : heads_by_key(session, keys)) seqs.push_back(seq);
  return seqs;
}

std::int64_t event_table::overdue_ms(const lane_session& session, std::int64_t now_ms) const {
  const auto due = first_integer(statements_.overdue.query(session, {{"now", now_ms}}));
  return now_ms - std::max<std::int64_t>(due.value_or(now_ms), 0);
}

entry_texts event_table::entries(const lane_session& session,
                                 std::span<const std::string> ids) const {
  entry_texts entries;
  if (ids.empty()) return entries;
  const auto rows = statements_.entries.query(session, {{"ids", json_column(ids)}});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    row_reader reader(rows, i);
    auto id = reader.text();
    entries.by_id.emplace(std::move(id), reader.text());
    entries.now_us = reader.integer();
  }
  return entries;
}

std::uint64_t event_table::insert(const lane_session& session, const json_rows& rows) const {
  return statements_.insert.execute(session, {{"rows", rows.text()}});
}

void event_table::update(const lane_session& session, std::span<const event_row> rows) const {
  if (rows.empty()) return;
  json_rows list;
  for (const auto& row : rows)
    list.add(row.seq, static_cast<std::int64_t>(row.state), row.queue, row.due, row.state_time,
             stored_token(row), stored_run(row), row.deliveries, row.attempts, row.replays,
             row.last_error);
  statements_.update.execute(session, {{"rows", list.text()}});
}

void event_table::promote(const lane_session& session, const promotions_by_key& keys,
                          std::int64_t now_ms) const {
  if (keys.empty()) return;
  std::vector<std::string_view> names;
  for (const auto& [key, promotion] : keys) names.push_back(key);
  json_rows rows;
  // Read now, while the rows before them are locked or gone: followers that another claim demoted
  // meanwhile are seen.
  for (const auto& [key, seq] : heads_by_key(session, names)) {
    const auto inherited = keys.find(key);
    if (inherited == keys.end()) continue;
    const auto& [token, run_length, due] = inherited->second;
    if (run_length > 0) rows.add(seq, token, run_length, 1, due);
    else rows.add(seq, -token, 0, 0, std::optional<std::int64_t>());
  }
  if (!rows.empty()) statements_.promote.execute(session, {{"rows", rows.text()}, {"now", now_ms}});
}

void event_table::promote(const lane_session& session, std::span<const std::int64_t> seqs,
                          std::int64_t now_ms) const {
  json_rows rows;
  for (const auto seq : seqs) rows.add(seq, 0, 0, 0, std::optional<std::int64_t>());
  statements_.promote.execute(session, {{"rows", rows.text()}, {"now", now_ms}});
}

void event_table::rewrite(const lane_session& session,
                          std::span<const std::pair<event_row, std::size_t>> rows_and_lanes) const {
  if (rows_and_lanes.empty()) return;
  json_rows list;
  for (const auto& [row, lane] : rows_and_lanes)
    list.add(row.seq, lane, row.id, row.key, static_cast<std::int64_t>(row.state), row.queue,
             row.due, row.state_time, stored_token(row), stored_run(row), row.deliveries,
             row.attempts, row.replays, row.bytes, row.created, row.original_seq, row.last_error);
  statements_.rewrite.execute(session, {{"rows", list.text()}});
}

void event_table::wake_heads(const lane_session& session,
                             std::span<const std::string_view> keys) const {
  if (keys.empty()) return;
  const auto seqs = heads(session, keys);
  if (!seqs.empty()) statements_.wake_heads.execute(session, {{"seqs", json_column(seqs)}});
}

void event_table::correct_future_events(const lane_session& session, std::int64_t now_ms) const {
  while (true) {
    const auto seqs = integers(statements_.future_events.query(
        session, {{"now", now_ms}, {"limit", max_events_per_call}}));
    if (!seqs.empty())
      statements_.set_published.execute(session, {{"seqs", json_column(seqs)}, {"now", now_ms}});
    if (seqs.size() < max_events_per_call) return;
  }
}

std::uint64_t event_table::erase(const lane_session& session,
                                 std::span<const std::int64_t> seqs) const {
  return statements_.erase.execute(session, {{"seqs", json_column(seqs)}});
}

void event_table::erase_entries(const lane_session& session,
                                std::span<const std::string> ids) const {
  statements_.erase_entries.execute(session, {{"ids", json_column(ids)}});
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
