#include "outbox/sql/inspect.hpp"

#include <holdfast/error.hpp>

#include "outbox/checks.hpp"
#include "outbox/entry.hpp"
#include "outbox/sql/row_repair.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <limits>
#include <map>
#include <set>
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
  } else if (!event.due) {
    record.state = event_state::stuck;
  } else if (const auto due = event.due.value_or(event.state_time); due > now_ms) {
    record.state = event.token != 0 ? event_state::claimed : event_state::waiting;
    record.until = timestamp_of(due);
  }
  return record;
}

/// Where a scan of parked events continues: behind this row, in the order of the index of times.
struct parked_position {
  row_state state = row_state::blocking;
  std::int64_t time = std::numeric_limits<std::int64_t>::min();
  std::int64_t seq = std::numeric_limits<std::int64_t>::min();
  auto operator<=>(const parked_position&) const = default;
};

/// For example `3.1763554316000.17`.
std::string to_text(const parked_position& position) {
  return std::to_string(static_cast<std::int64_t>(position.state)) + '.' +
         std::to_string(position.time) + '.' + std::to_string(position.seq);
}

/// Throws errc::invalid_argument.
parked_position read_parked_position(std::string_view text) {
  if (text.empty()) return {};
  std::array<std::int64_t, 3> numbers{};
  const char* begin = text.data();
  const char* const end = text.data() + text.size();
  bool is_well_formed = true;
  for (std::size_t i = 0; i < numbers.size() && is_well_formed; ++i) {
    const auto [stop, code] = std::from_chars(begin, end, numbers.at(i));
    const bool is_last = i + 1 == numbers.size();
    is_well_formed = code == std::errc{} && (is_last ? stop == end : stop != end && *stop == '.');
    begin = is_well_formed && !is_last ? stop + 1 : stop;
  }
  const auto state = static_cast<row_state>(numbers[0]);
  if (!is_well_formed || (state != row_state::blocking && state != row_state::parked))
    throw error(errc::invalid_argument, "'" + std::string(text.substr(0, 64)) +
                                            "' is not the `after` of a page: pass it unchanged");
  return {.state = state, .time = numbers[1], .seq = numbers[2]};
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

/// Counts the keys whose first event is queued, but has no DUE, and selects since when the oldest
/// of them is due.
named_statement count_stuck_statement(const statement_builder& builder) {
  // SQLite stores values of any type in any column.
  return builder.statement(
      "SELECT COUNT(*), MIN(CASE WHEN e.AT BETWEEN 0 AND " + std::to_string(max_time_ms) +
          " THEN e.AT END) FROM (SELECT MIN(b.SEQ) AS head_seq FROM (SELECT o.QUEUE, o.SEQ FROM "
          "{events} o {key_index} WHERE o.LANE = :lane AND o.QUEUE IS NOT NULL ORDER BY o.LANE, "
          "o.QUEUE, o.SEQ LIMIT " +
          std::to_string(max_counted + 1) +
          ") b GROUP BY b.QUEUE) a JOIN {events} e ON e.SEQ = a.head_seq WHERE e.DUE IS NULL AND "
          "e.PLACE = {queued}",
      {sql::type::integer, sql::type::integer});
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
  const std::string select_from =
      "SELECT {event}, (SELECT f.ID FROM {events} f WHERE f.SEQ = {head}), {now_ms} "
      "FROM {events} o ";
  const std::string select = select_from + "WHERE o.LANE = :lane AND ";
  auto types = event_types();
  types.insert(types.end(), {text, integer});
  auto page_types = event_types();
  page_types.insert(page_types.end(), {integer, integer});
  // SQLite stores values of any type in any column.
  const std::string foreign_lane_only = std::string("(LANE < 0 OR LANE >= :lanes") +
                                        (builder.sqlite() ? " OR typeof(LANE) <> 'integer')" : ")");
  const std::string foreign_lane = std::string("(o.LANE < 0 OR o.LANE >= :lanes") +
                                   (builder.sqlite() ? " OR typeof(o.LANE) <> 'integer')" : ")");
  // Recurring events have lanes of their own; see recurring.hpp.
  const std::string not_recurring =
      " AND (LANE > -2 OR LANE < -1 - :lanes" +
      std::string(builder.sqlite() ? " OR typeof(LANE) <> 'integer')" : ")");
  std::string bad_counter;
  for (const auto& column : counter_columns)
    bad_counter.append(bad_counter.empty() ? "" : " OR ")
        .append("o.")
        .append(column.name)
        .append(" NOT BETWEEN -1000000000000000 AND 1000000000000000");
  return {
      .count_states = count_states_statement(builder),
      .count_stuck = count_stuck_statement(builder),
      .find = builder.statement(select + "o.ID = :id/text AND o.PLACE <> {remembered}", types),
      .scan = builder.statement(
          select + "o.ID > :after/text AND o.PLACE <> {remembered} ORDER BY o.ID LIMIT :limit",
          types),
      // In the order of the index of times: only the rows of the page are read, however many are
      // parked, and however many are not.
      .scan_state = builder.statement(
          select_from + "{time_index} WHERE o.LANE = :lane AND o.PLACE <> {queued} AND o.PLACE = " +
              ":state AND o.AT >= :at AND (o.AT > :at OR o.SEQ > :seq) ORDER BY o.AT, o.SEQ LIMIT "
              ":limit",
          types),
      .check_page = builder.statement(
          "SELECT {event}, o.LANE, " +
              std::string(builder.sqlite() ? "LENGTH(CAST(x.ENTRY AS BLOB))"
                                           : "OCTET_LENGTH(x.ENTRY)") +
              " FROM {events} o LEFT JOIN {entries} x ON x.ID = o.ID WHERE o.SEQ > :after AND "
              "(o.LANE = :lane OR (:lane = 0 AND " +
              foreign_lane +
              ")) "
              "ORDER BY o.SEQ LIMIT :limit",
          page_types),
      .blocking_behind =
          builder.statement("SELECT {event} FROM {events} o {time_index} WHERE o.LANE = :lane AND "
                            "o.PLACE <> {queued} AND o.PLACE = {blocking} AND o.SEQ <> {head}",
                            event_types()),
      .events_without_entry = builder.statement(
          "SELECT {event}, o.LANE, CAST(NULL AS " +
              std::string(builder.mysql() ? "SIGNED" : "{integer}") +
              ") FROM {events} o WHERE o.PLACE <> {remembered} AND NOT EXISTS (SELECT 1 FROM "
              "{entries} x WHERE x.ID = o.ID)",
          page_types),
      .entries_without_event = builder.statement(
          "SELECT x.ID FROM {entries} x WHERE NOT EXISTS (SELECT 1 FROM {events} o WHERE "
          "o.ID = x.ID)",
          {text}),
      .rename_entry = builder.statement("UPDATE {entries} SET ID = :id/text WHERE ID = :old/text"),
      .foreign_tickets = builder.statement(
          "SELECT o.TICKET, o.EXPIRES, o.EVENT_KEY, o.BODY FROM {tickets} o WHERE " + foreign_lane +
              not_recurring,
          {text, integer, text, text}),
      .erase_ticket = builder.statement(
          "DELETE FROM {tickets} WHERE LANE = :old_lane AND TICKET = :ticket/text"),
      .erase_foreign_tickets =
          builder.statement("DELETE FROM {tickets} WHERE " + foreign_lane_only + not_recurring),
      .insert_ticket = builder.statement(
          "INSERT INTO {tickets} (LANE, TICKET, EXPIRES, EVENT_KEY, BODY) VALUES (:new_lane, "
          ":ticket/text, :expires, :key/text, :body/text)" +
          builder.keep_existing("LANE")),
      .marks_without_event = builder.statement(
          "SELECT SUBSTR(o.ID, 3) FROM {events} o {time_index} WHERE o.LANE = :lane AND "
          "o.PLACE = {remembered} AND o.PLACE <> {queued} AND o.AT = " +
              std::to_string(with_event) +
              " AND NOT EXISTS (SELECT 1 FROM {events} e WHERE e.ID = SUBSTR(o.ID, 3) AND "
              "e.PLACE <> {remembered})",
          {text}),
      .bad_counters =
          builder.statement("SELECT COUNT(*) FROM {counters} o WHERE (o.LANE = :lane AND (" +
                                bad_counter + ")) OR (:lane = 0 AND " + foreign_lane + ")",
                            {integer}),
      .erase_foreign_counters =
          builder.statement("DELETE FROM {counters} WHERE " + foreign_lane_only),
      .queues_without_head = builder.statement(
          "SELECT o.SEQ FROM {events} o WHERE o.LANE = :lane AND o.PLACE = {queued} AND "
          "{no_due} AND (o.QUEUE IS NULL OR o.SEQ = {head})",
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
  const auto stuck_rows = statements_.count_stuck.query(session);
  row_reader stuck(stuck_rows);
  stats.stuck = at_least_zero(stuck.integer());
  const auto stuck_since =
      std::clamp<std::int64_t>(stuck.optional_integer().value_or(now_ms), 0, now_ms);
  stats.paused = lane_state.paused;
  stats.overdue = std::chrono::milliseconds(
      std::max(tables_.events.overdue_ms(session, now_ms), now_ms - stuck_since));
  // A ticket is late if no worker drains.
  if (const auto expiry = first_integer(tables_.tickets.first_expiry.query(session)))
    stats.overdue = std::max(
        stats.overdue, std::chrono::milliseconds(now_ms - std::max<std::int64_t>(*expiry, 0)));
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
  const auto entries = tables_.events.entries(session, ids).by_id;
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
  if (kind == scan_what::parked) return scan_parked(session, after, limit);
  // One row more tells whether this is the last page.
  auto rows = read_rows(statements_.scan.query(session, {{"after", after}, {"limit", limit + 1}}));
  scan_page page;
  if (rows.size() > limit) {
    rows.resize(limit);
    page.after = rows.back().event.id;
  }
  page.records = make_records(session, rows);
  return page;
}

/// Those that block their key come first: an event that stops blocking while pages are read is
/// shown twice, and not left out. More than a page of rows with a damaged time is cut.
scan_page sql_inspector::scan_parked(const lane_session& session, std::string_view after,
                                     std::size_t limit) const {
  auto position = read_parked_position(after);
  scan_page page;
  for (;;) {
    const auto remaining = limit - page.records.size();
    auto rows = read_rows(
        statements_.scan_state.query(session, {{"state", static_cast<std::int64_t>(position.state)},
                                               {"at", position.time},
                                               {"seq", position.seq},
                                               {"limit", remaining + 1}}));
    const bool is_last = rows.size() <= remaining;
    if (!is_last) rows.resize(remaining);
    if (!rows.empty())
      std::ranges::move(make_records(session, rows), std::back_inserter(page.records));
    if (!is_last) {
      if (rows.empty()) break;  // the page is full
      const parked_position last{position.state, rows.back().event.state_time,
                                 rows.back().event.seq};
      // A damaged time may be smaller than the ones before.
      if (last > position) {
        position = last;
        break;
      }
    }
    if (position.state == row_state::parked) return page;
    position = {.state = row_state::parked};
  }
  page.after = to_text(position);
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

// ---- check ----

check_report sql_inspector::check(const lane_session& session, bool repair) const {
  const auto lane =
      tables_.lanes.read(session, repair ? lane_access::exclusive : lane_access::shared);
  check_run run{.session = session, .repair = repair, .now_ms = lane.now_ms};
  if (lane.has_bad_number) {
    ++run.report.bad_fields;
    if (repair) tables_.lanes.write(session, lane);
  }
  // Entries have no lane. They are checked with the first one.
  if (session.lane == 0) check_entries(run);
  check_rows(run);
  check_tickets(run);
  check_marks(run);
  check_counters(run);
  return run.report;
}

std::vector<sql_inspector::checked_row> sql_inspector::read_checked_rows(
    const sql::rows& rows) const {
  std::vector<checked_row> checked;
  checked.reserve(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    row_reader reader(rows, i);
    auto& row = checked.emplace_back();
    row.event = read_event_row(reader);
    row.lane = reader.optional_integer().value_or(-1);
    row.entry_bytes = reader.optional_integer();
  }
  return checked;
}

/// Finds the events of entries that have none. An entry contains the id of its event; an event row
/// whose id was damaged has the key and the size of its entry.
void sql_inspector::check_entries(check_run& run) const {
  const auto& session = run.session;
  const auto id_rows = statements_.entries_without_event.query(session);
  if (id_rows.empty()) return;
  std::vector<std::string> ids;
  ids.reserve(id_rows.size());
  for (std::size_t i = 0; i < id_rows.size(); ++i) ids.push_back(row_reader(id_rows, i).text());
  run.report.without_place += ids.size();
  if (!run.repair) return;
  auto without_entry = read_checked_rows(statements_.events_without_entry.query(session));
  for (std::size_t first = 0; first < ids.size(); first += max_events_per_call) {
    const auto part =
        std::span(ids).subspan(first, std::min(max_events_per_call, ids.size() - first));
    const auto texts = tables_.events.entries(session, {part.data(), part.size()});
    for (const auto& [id, text] : texts.by_id) restore_event(run, id, text, without_entry);
  }
}

void sql_inspector::restore_event(check_run& run, const std::string& id, const std::string& text,
                                  std::vector<checked_row>& without_entry) const {
  const auto& session = run.session;
  auto content = read_or_explain(text, id, std::nullopt);
  if (!content.problem.empty()) {
    // Perhaps the id of the entry was damaged, and not its text.
    std::string inner_id;
    try {
      inner_id = read_entry(text).event.id;
    } catch (const error&) {  // NOLINT(bugprone-empty-catch): the text is damaged
    }
    const auto owner = std::ranges::find(without_entry, inner_id,
                                         [](const checked_row& row) { return row.event.id; });
    if (!inner_id.empty() && owner != without_entry.end()) {
      statements_.rename_entry.execute(session, {{"id", inner_id}, {"old", id}});
      without_entry.erase(owner);
      return;
    }
  }
  const auto& key = content.event.key;
  const auto fits = [&](const checked_row& row) {
    return row.event.key == key && row.event.bytes == static_cast<std::int64_t>(text.size());
  };
  if (std::ranges::count_if(without_entry, fits) == 1) {
    const auto owner = std::ranges::find_if(without_entry, fits);
    owner->event.id = id;
    const std::pair rewritten{owner->event, lane_for(*owner)};
    tables_.events.rewrite(session, std::span(&rewritten, 1));
    without_entry.erase(owner);
    return;
  }
  insert_missing_event(run, id, key, text.size());
}

/// Makes an event of an entry. The position that it had in its key is not known. If the key has
/// other events, it is parked: delivered last, it would be out of order.
void sql_inspector::insert_missing_event(check_run& run, const std::string& id,
                                         const std::string& key, std::size_t bytes) const {
  const auto lane = lane_of(key.empty() ? id : key, lane_count_);
  const lane_session target{run.session.transaction, lane};
  const std::string_view key_name = key;
  const bool key_has_events =
      !key.empty() && !tables_.events.heads(target, std::span(&key_name, 1)).empty();
  json_rows rows;
  rows.add(lane, id, key, 0, run.now_ms, bytes);
  tables_.events.insert(target, rows);
  if (!key_has_events) return;
  auto inserted = tables_.events.by_id(target, json_column(std::span(&id, 1)), row_lock::none);
  for (auto& row : inserted) {
    row.state = row_state::parked;
    row.queue.reset();
    row.due.reset();
    row.last_error = "its row in the outbox was missing, and its position in its key is not known";
  }
  tables_.events.update(target, inserted);
}

std::size_t sql_inspector::lane_for(const checked_row& row) const {
  const auto& [event, lane, entry_bytes] = row;
  if (!event.key.empty()) return lane_of(event.key, lane_count_);
  const bool exists = lane >= 0 && lane < static_cast<std::int64_t>(lane_count_);
  return exists ? static_cast<std::size_t>(lane) : lane_of(event.id, lane_count_);
}

/// Checks every row of the lane, and with the first lane those of lanes that do not exist.
void sql_inspector::check_rows(check_run& run) const {
  const auto& session = run.session;
  std::map<std::size_t, std::set<std::string, std::less<>>> queues;  // by lane
  std::int64_t after = std::numeric_limits<std::int64_t>::min();
  while (true) {
    const auto page = read_checked_rows(statements_.check_page.query(
        session, {{"after", after}, {"lanes", lane_count_}, {"limit", max_events_per_call}}));
    if (page.empty()) break;
    after = page.back().event.seq;
    repair_page(run, page, queues);
    if (page.size() < max_events_per_call) break;
  }
  auto behind = read_event_rows(statements_.blocking_behind.query(session));
  run.report.bad_fields += behind.size();
  if (run.repair) {
    for (auto& row : behind) {
      row.state = row_state::queued;
      row.parked_by = 0;
      if (!row.due) row.due = row.state_time;
    }
    tables_.events.update(session, behind);
  }
  for (const auto& [lane, names] : queues) {
    const std::vector<std::string_view> keys(names.begin(), names.end());
    tables_.events.wake_heads({session.transaction, lane}, keys);
  }
  const auto without_head = integers(statements_.queues_without_head.query(session));
  run.report.without_head += without_head.size();
  if (run.repair && !without_head.empty())
    tables_.events.promote(session, without_head, run.now_ms);
}

void sql_inspector::repair_page(
    check_run& run, std::span<const checked_row> page,
    std::map<std::size_t, std::set<std::string, std::less<>>>& queues) const {
  std::vector<std::int64_t> erased_seqs;
  std::vector<std::string> erased_ids;
  std::vector<checked_row> damaged;
  for (const auto& row : page) {
    const auto& event = row.event;
    const bool has_entry = row.entry_bytes.has_value();
    const bool is_remembered = event.state == row_state::remembered;
    const bool is_known = is_remembered || event.state == row_state::queued ||
                          event.state == row_state::parked || event.state == row_state::blocking;
    // Only a remembered id looks like this; its state was damaged.
    const bool is_bare = !event.queue && !event.due && event.key.empty();
    if (!has_entry && !is_remembered && is_known && !is_bare) {
      erased_seqs.push_back(event.seq);
      erased_ids.push_back(event.id);
      continue;
    }
    const bool has_wrong_lane = static_cast<std::int64_t>(lane_for(row)) != row.lane;
    // An event whose entry was damaged is parked for that.
    const bool has_wrong_size =
        has_entry && *row.entry_bytes != event.bytes && event.state == row_state::queued;
    if (event.has_bad_number || is_misplaced_row(event, has_entry) || has_wrong_lane ||
        has_wrong_size || (!has_entry && !is_remembered))
      damaged.push_back(row);
  }
  run.report.without_entry += erased_seqs.size();
  run.report.bad_fields += damaged.size();
  if (!run.repair) return;
  if (!erased_seqs.empty()) {
    tables_.events.erase(run.session, erased_seqs);
    tables_.remembered.start_effect_windows(run.session, erased_ids, run.now_ms);
  }
  if (damaged.empty()) return;
  std::vector<std::string> ids;
  ids.reserve(damaged.size());
  for (const auto& row : damaged) ids.push_back(row.event.id);
  const auto texts = tables_.events.entries(run.session, ids);
  std::vector<std::pair<event_row, std::size_t>> repaired;
  for (auto& row : damaged) {
    const auto text = texts.by_id.find(row.event.id);
    const bool has_entry = text != texts.by_id.end();
    std::optional<std::string> key;
    if (has_entry) {
      auto content = read_or_explain(text->second, row.event.id, std::nullopt);
      if (content.problem.empty()) key = std::move(content.event.key);
      row.event.bytes = static_cast<std::int64_t>(text->second.size());
    } else {
      row.event.state = row_state::remembered;
    }
    const bool lane_exists = row.lane >= 0 && row.lane < static_cast<std::int64_t>(lane_count_);
    if (row.event.queue && lane_exists)
      queues[static_cast<std::size_t>(row.lane)].insert(*row.event.queue);
    row.event = repaired_row(std::move(row.event), has_entry, key);
    const auto lane = lane_for(row);
    if (row.event.queue) queues[lane].insert(*row.event.queue);
    // The lane that it moves to was counted before, without it.
    if (lane < run.session.lane && row.event.state != row_state::remembered)
      tables_.counters.add({run.session.transaction, lane},
                           {.events = 1, .bytes = row.event.bytes});
    repaired.emplace_back(std::move(row.event), lane);
  }
  tables_.events.rewrite(run.session, repaired);
}

void sql_inspector::check_tickets(check_run& run) const {
  const auto& session = run.session;
  // `lane` is empty if the lane of the ticket does not exist.
  const auto check = [&](ticket_row ticket, std::optional<std::size_t> lane) {
    const auto before = ticket;
    const auto content = read_ticket(ticket.body, ticket.key);
    if (content.problem.empty()) ticket.key = content.event.key;
    if (ticket.expires <= 0 || ticket.expires > max_time_ms) ticket.expires = run.now_ms;
    const auto& name_of_lane = ticket.key.empty() ? ticket.name : ticket.key;
    const auto right_lane = lane_of(name_of_lane, lane_count_);
    if (ticket.key == before.key && ticket.expires == before.expires && right_lane == lane) return;
    ++run.report.bad_fields;
    if (!run.repair) return;
    if (lane)
      statements_.erase_ticket.execute(session, {{"old_lane", *lane}, {"ticket", ticket.name}});
    if (right_lane < session.lane)  // it was counted before, without the ticket
      tables_.counters.add({session.transaction, right_lane}, {.tickets = 1});
    statements_.insert_ticket.execute(session, {{"new_lane", right_lane},
                                                {"ticket", ticket.name},
                                                {"expires", ticket.expires},
                                                {"key", ticket.key},
                                                {"body", ticket.body}});
  };
  std::string after;
  while (true) {
    auto page = read_ticket_rows(
        tables_.tickets.scan.query(session, {{"after", after}, {"limit", max_events_per_call}}));
    const bool is_last = page.size() < max_events_per_call;
    if (!page.empty()) after = page.back().name;
    for (auto& ticket : page) check(std::move(ticket), session.lane);
    if (is_last) break;
  }
  if (session.lane != 0) return;
  auto foreign =
      read_ticket_rows(statements_.foreign_tickets.query(session, {{"lanes", lane_count_}}));
  if (foreign.empty()) return;
  for (auto& ticket : foreign) check(std::move(ticket), std::nullopt);
  if (run.repair) statements_.erase_foreign_tickets.execute(session, {{"lanes", lane_count_}});
}

/// A mark of an effect that is kept for an event that does not exist any more.
void sql_inspector::check_marks(check_run& run) const {
  const auto rows = statements_.marks_without_event.query(run.session);
  if (rows.empty()) return;
  std::vector<std::string> ids;
  ids.reserve(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) ids.push_back(row_reader(rows, i).text());
  run.report.bad_fields += ids.size();
  if (run.repair) tables_.remembered.start_effect_windows(run.session, ids, run.now_ms);
}

void sql_inspector::check_counters(check_run& run) const {
  const auto& session = run.session;
  auto& report = run.report;
  const auto bad_rows =
      first_integer(statements_.bad_counters.query(session, {{"lanes", lane_count_}})).value_or(0);
  report.bad_fields += at_least_zero(bad_rows);
  if (run.repair && bad_rows > 0) {
    if (session.lane == 0)
      statements_.erase_foreign_counters.execute(session, {{"lanes", lane_count_}});
    tables_.counters.rewrite(session);
  }
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
  report.bad_fields += (corrections.events != 0 ? 1U : 0U) + (corrections.tickets != 0 ? 1U : 0U);
  // The other counters cannot be recounted. They only grow, so another program wrote a negative
  // one.
  const auto sums = tables_.counters.sum(session);
  for (const auto& [name, counter] : counter_columns) {
    if (!only_grows(counter) || sums.*counter >= 0) continue;
    corrections.*counter = -(sums.*counter);
    ++report.bad_fields;
  }
  if (run.repair) tables_.counters.add(session, corrections);
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
