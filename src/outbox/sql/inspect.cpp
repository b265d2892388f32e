#include "outbox/sql/inspect.hpp"

#include "outbox/checks.hpp"
#include "outbox/entry.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::outbox {

namespace {

/// Statistics count at most this many rows of a kind, so that they stay fast. Remembered ids are
/// counted up to ten times as many.
constexpr std::uint64_t max_counted = 10'000;

std::uint64_t at_least_zero(std::int64_t number) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, number));
}

/// Whether a counter never decreases. The others are recounted by a check.
bool only_grows(std::int64_t lane_counters::* counter) {
  return counter != &lane_counters::events && counter != &lane_counters::bytes &&
         counter != &lane_counters::tickets;
}

timestamp timestamp_of(std::int64_t milliseconds) {
  return timestamp(std::chrono::milliseconds(milliseconds));
}

outbox_record record_without_entry(std::size_t lane, const event_row& event,
                                   const std::string& head_id, std::int64_t now_ms) {
  outbox_record record;
  record.details = claimed_event_of(event, lane);
  record.fence = event.token;
  if (event.state == row_state::parked || event.state == row_state::blocking) {
    record.state = event.state == row_state::parked ? event_state::parked : event_state::blocking;
    record.until = timestamp_of(event.state_time);
  } else if (!event.is_head()) {
    record.state = event_state::following;
    record.behind = head_id;
  } else if (const auto due = event.due.value_or(event.state_time); due > now_ms) {
    record.state = event.token != 0 ? event_state::claimed : event_state::waiting;
    record.until = timestamp_of(due);
  }
  return record;
}

/// Counts the rows of each state, the rows with a key, and the keys.
named_statement count_states_statement(const statement_builder& builder) {
  using enum sql::type;
  const std::string limit = std::to_string(max_counted + 1);
  // SQLite uses a partial index only if the text repeats its condition, PLACE <> {queued}.
  const auto count = [&](const std::string& state, const std::string& state_limit) {
    return "(SELECT COUNT(*) FROM (SELECT o.SEQ FROM {events} o {time_index} WHERE o.LANE = :lane "
           "AND o.PLACE <> {queued} AND o.PLACE = " +
           state + " LIMIT " + state_limit + ") a), ";
  };
  return builder.statement(
      "SELECT " + count("{parked}", limit) + count("{blocking}", limit) +
          count("{remembered}", std::to_string(10 * max_counted)) +
          "COUNT(*), COUNT(DISTINCT b.QUEUE) FROM (SELECT o.QUEUE FROM {events} o {key_index} "
          "WHERE o.LANE = :lane AND o.QUEUE IS NOT NULL LIMIT " +
          limit + ") b",
      {integer, integer, integer, integer, integer});
}

/// Counts events, bytes and tickets in the tables, and reads the counters of the same, in one
/// statement, so that no publisher comes between the two. Reads every row of the lane.
named_statement recount_statement(const statement_builder& builder) {
  using enum sql::type;
  return builder.statement(
      "SELECT c.events, c.bytes, (SELECT COUNT(*) FROM {tickets} k WHERE k.LANE = :lane), "
      "d.events, d.bytes, d.tickets FROM "
      "(SELECT COUNT(CASE WHEN o.PLACE <> {remembered} THEN 1 END) AS events, " +
          builder.sum("CASE WHEN o.PLACE <> {remembered} THEN o.BYTES END") +
          " AS bytes FROM {events} o WHERE o.LANE = :lane) c, (SELECT " + builder.sum("o.EVENTS") +
          " AS events, " + builder.sum("o.BYTES") + " AS bytes, " + builder.sum("o.TICKETS") +
          " AS tickets FROM {counters} o WHERE o.LANE = :lane) d",
      {integer, integer, integer, integer, integer, integer});
}

}  // namespace

inspect_statements make_inspect_statements(const statement_builder& builder) {
  using enum sql::type;
  // The event, the id of the head of its queue, and the time.
  const std::string select =
      "SELECT {event}, (SELECT f.ID FROM {events} f WHERE f.SEQ = {head}), {now_ms} "
      "FROM {events} o WHERE o.LANE = :lane AND ";
  auto types = event_types();
  types.insert(types.end(), {text, integer});
  return {
      .count_states = count_states_statement(builder),
      .find = builder.statement(select + "o.ID = :id/text AND o.PLACE <> {remembered}", types),
      .scan = builder.statement(
          select + "o.ID > :after/text AND o.PLACE <> {remembered} ORDER BY o.ID LIMIT :limit",
          types),
      .scan_parked = builder.statement(
          select +
              "o.ID > :after/text AND o.PLACE IN ({parked}, {blocking}) AND o.PLACE <> {queued} "
              "ORDER BY o.ID LIMIT :limit",
          types),
      .events_without_entry = builder.statement(
          "SELECT o.SEQ, o.ID, o.QUEUE FROM {events} o WHERE o.LANE = :lane AND "
          "o.PLACE <> {remembered} AND NOT EXISTS (SELECT 1 FROM {entries} x WHERE x.ID = o.ID)",
          {integer, text, text}),
      .entries_without_event = builder.statement(
          "SELECT x.ID FROM {entries} x WHERE NOT EXISTS (SELECT 1 FROM {events} o WHERE "
          "o.ID = x.ID AND o.PLACE <> {remembered})",
          {text}),
      .queues_without_head = builder.statement(
          "SELECT o.SEQ FROM {events} o WHERE o.LANE = :lane AND o.PLACE = {queued} AND "
          "o.DUE IS NULL AND (o.QUEUE IS NULL OR o.SEQ = {head})",
          {integer}),
      .recount = recount_statement(builder),
  };
}

sql_inspector::sql_inspector(const statement_builder& builder, const outbox_tables& tables,
                             std::size_t lane_count)
    : tables_(tables), lane_count_(lane_count), statements_(make_inspect_statements(builder)) {}

outbox_stats sql_inspector::stats(const lane_session& session) const {
  const auto lane_state = tables_.lanes.read(session);
  const auto now_ms = lane_state.now_ms;
  tables_.counters.compact(session);
  const auto sums = tables_.counters.sum(session);
  const auto rows = statements_.count_states.query(session);
  row_reader counts(rows);
  const auto parked = at_least_zero(counts.integer());
  const auto blocking = at_least_zero(counts.integer());
  const auto remembered = at_least_zero(counts.integer());
  const auto with_key = at_least_zero(counts.integer());
  const auto keys = at_least_zero(counts.integer());

  outbox_stats stats;
  stats.at_least = parked > max_counted || blocking > max_counted || with_key > max_counted;
  stats.events = at_least_zero(sums.events);
  stats.bytes = at_least_zero(sums.bytes);
  stats.tickets = at_least_zero(sums.tickets);
  stats.parked = std::min(parked + blocking, stats.events);
  stats.remembered = remembered;
  // Each key has one head. A head that blocks is not to be delivered.
  const auto queued_heads = keys - std::min(keys, blocking);
  const auto queued = stats.events - stats.parked;
  const auto followers = with_key - std::min(with_key, blocking + queued_heads);
  // If not all rows with a key were counted, the heads are a lower bound, and the rest is taken for
  // followers.
  stats.following = with_key > max_counted ? queued - std::min(queued, queued_heads)
                                           : std::min(followers, queued);
  stats.pending = queued - stats.following;
  stats.paused = lane_state.paused;
  stats.overdue = std::chrono::milliseconds(tables_.events.overdue_ms(session, now_ms));
  // A ticket is late if no worker drains.
  if (const auto expiry = first_integer(tables_.tickets.first_expiry.query(session)))
    stats.overdue = std::max(stats.overdue, std::chrono::milliseconds(now_ms - *expiry));
  stats.published = at_least_zero(sums.published);
  stats.duplicates = at_least_zero(sums.duplicates);
  stats.claims = at_least_zero(sums.claims);
  stats.acked = at_least_zero(sums.acked);
  stats.retried = at_least_zero(sums.retried);
  stats.parkings = at_least_zero(sums.parkings);
  stats.stale = at_least_zero(sums.stale);
  stats.fired = at_least_zero(sums.fired);
  stats.orphans = at_least_zero(sums.orphans);
  return stats;
}

std::vector<sql_inspector::inspected_row> sql_inspector::read_rows(const sql::rows& rows) const {
  std::vector<inspected_row> inspected;
  inspected.reserve(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    row_reader reader(rows, i);
    auto& row = inspected.emplace_back();
    row.event = read_event_row(reader);
    row.head_id = reader.text();
    row.now_ms = tables_.lanes.now_ms(reader.integer());
  }
  return inspected;
}

std::vector<outbox_record> sql_inspector::make_records(const lane_session& session,
                                                       std::span<const inspected_row> rows) const {
  std::vector<std::string> ids;
  for (const auto& row : rows) ids.push_back(row.event.id);
  const auto entries = tables_.events.entries(session, ids);
  std::vector<outbox_record> records;
  for (const auto& row : rows) {
    auto& record = records.emplace_back(
        record_without_entry(session.lane, row.event, row.head_id, row.now_ms));
    const auto entry = entries.find(row.event.id);
    if (entry == entries.end() || entry->second.empty()) continue;
    auto content = read_or_explain(entry->second, row.event.id, row.event.key);
    auto& delivery = record.details;
    delivery.event = std::move(content.event);
    delivery.event.id = row.event.id;
    if (delivery.last_error.empty()) delivery.last_error = std::move(content.problem);
  }
  return records;
}

std::optional<outbox_record> sql_inspector::find(const lane_session& session,
                                                 std::string_view id) const {
  const auto rows = statements_.find.query(session, {{"id", id}});
  if (rows.empty()) return std::nullopt;
  return std::move(make_records(session, read_rows(rows)).front());
}

scan_page sql_inspector::scan(const lane_session& session, scan_what kind, std::string_view after,
                              std::size_t limit) const {
  if (kind == scan_what::tickets) return scan_tickets(session, after, limit);
  const auto& statement = kind == scan_what::parked ? statements_.scan_parked : statements_.scan;
  // One row more tells whether this is the last page.
  auto rows = read_rows(statement.query(session, {{"after", after}, {"limit", limit + 1}}));
  scan_page page;
  if (rows.size() > limit) {
    rows.resize(limit);
    page.after = rows.back().event.id;
  }
  page.records = make_records(session, rows);
  return page;
}

scan_page sql_inspector::scan_tickets(const lane_session& session, std::string_view after,
                                      std::size_t limit) const {
  auto tickets = read_ticket_rows(
      tables_.tickets.scan.query(session, {{"after", after}, {"limit", limit + 1}}));
  scan_page page;
  if (tickets.size() > limit) {
    tickets.resize(limit);
    page.after = tickets.back().name;
  }
  for (const auto& ticket : tickets) {
    auto& record = page.records.emplace_back();
    auto& delivery = record.details;
    auto content = read_ticket(ticket.body, ticket.key);
    delivery.event = std::move(content.event);
    delivery.last_error = std::move(content.problem);
    delivery.event.id = ticket.name;
    delivery.lane = session.lane;
    delivery.deliveries = 0;
    record.state = event_state::waiting;
    record.until = timestamp_of(ticket.expires);
  }
  return page;
}

check_report sql_inspector::check(const lane_session& session, bool repair) const {
  const auto now_ms =
      tables_.lanes.read(session, repair ? lane_access::exclusive : lane_access::shared).now_ms;
  check_report report;
  const auto without_entry = integers(statements_.events_without_entry.query(session));
  report.without_entry = without_entry.size();
  if (repair && !without_entry.empty()) tables_.events.erase(session, without_entry);
  // Entries have no lane. They are checked with the first one.
  if (session.lane == 0) {
    const auto entry_ids = statements_.entries_without_event.query(session);
    report.without_place = entry_ids.size();
    if (repair && !entry_ids.empty()) insert_missing_events(session, entry_ids, now_ms);
  }
  const auto without_head = integers(statements_.queues_without_head.query(session));
  report.without_head = without_head.size();
  if (repair && !without_head.empty()) tables_.events.promote(session, without_head);

  const auto rows = statements_.recount.query(session);
  row_reader reader(rows);
  const lane_counters actual{
      .events = reader.integer(), .bytes = reader.integer(), .tickets = reader.integer()};
  const lane_counters counted{
      .events = reader.integer(), .bytes = reader.integer(), .tickets = reader.integer()};
  report.events = static_cast<std::uint64_t>(actual.events);
  report.bytes_off = counted.bytes - actual.bytes;
  lane_counters corrections{.events = actual.events - counted.events,
                            .bytes = actual.bytes - counted.bytes,
                            .tickets = actual.tickets - counted.tickets};
  report.bad_fields = (corrections.events != 0 ? 1U : 0U) + (corrections.tickets != 0 ? 1U : 0U);
  // The other counters cannot be recounted. They only grow, so another program wrote a negative
  // one.
  const auto sums = tables_.counters.sum(session);
  for (const auto& [name, counter] : counter_columns) {
    if (!only_grows(counter) || sums.*counter >= 0) continue;
    corrections.*counter = -(sums.*counter);
    ++report.bad_fields;
  }
  if (repair) tables_.counters.add(session, corrections);
  return report;
}

/// Makes events of entries that have none. A claim parks those whose entries cannot be read.
void sql_inspector::insert_missing_events(const lane_session& session, const sql::rows& entry_ids,
                                          std::int64_t now_ms) const {
  std::vector<std::string> ids;
  ids.reserve(entry_ids.size());
  for (std::size_t i = 0; i < entry_ids.size(); ++i) ids.push_back(row_reader(entry_ids, i).text());
  std::map<std::size_t, json_rows> rows_by_lane;
  for (const auto& [id, entry] : tables_.events.entries(session, ids)) {
    const auto key = read_or_explain(entry, id, std::nullopt).event.key;
    const auto lane = lane_of(key.empty() ? id : key, lane_count_);
    rows_by_lane[lane].add(lane, id, key, 0, now_ms, entry.size());
  }
  for (const auto& [lane, rows] : rows_by_lane) tables_.events.insert(session, rows);
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
