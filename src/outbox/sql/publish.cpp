#include "outbox/sql/publish.hpp"

#include <holdfast/error.hpp>

#include "outbox/entry.hpp"

#include <algorithm>
#include <limits>
#include <set>

namespace HOLDFAST_NAMESPACE::detail::outbox {

namespace {

/// Bytes of entries that one statement carries. More are sent with several statements.
constexpr std::size_t max_statement_bytes = std::size_t{4} << 20U;
/// How often PostgreSQL may refuse new rows though no row has their ids.
constexpr int max_refusals = 8;

error quota_exceeded(const std::string& message) {
  return {errc::too_large, message, {.transient = true}};
}

/// Locks the stripes, inserts events and entries, counts them and notifies listeners once.
/// Returns the ids of the new events. `given` reads the count of `l`, so that the locks are taken
/// before the first row gets its SEQ, which is its position in its key. `clock` computes the time
/// once: PostgreSQL would compute the expression again for each column of each row.
named_statement publish_in_one_statement(const statement_builder& builder) {
  using enum sql::type;
  return builder.statement(
      "WITH l AS MATERIALIZED (SELECT pg_advisory_xact_lock(:class::int, k.stripe::int) FROM "
      "(SELECT DISTINCT s.stripe FROM unnest(:stripes/text::bigint[]) AS s(stripe) ORDER BY 1) k), "
      "given AS MATERIALIZED (SELECT g.* FROM (SELECT COUNT(*) FROM l) taken, "
      "unnest(:ids/text::text[], :keys/text::text[], :entries/text::text[], "
      ":sizes/text::bigint[], :delays/text::bigint[]) "
      "WITH ORDINALITY AS g(id, k, entry, bytes, delay, n)), "
      "clock AS MATERIALIZED (SELECT {now_ms} AS now_ms), "
      "added AS (INSERT INTO {events} (LANE, ID, EVENT_KEY, QUEUE, DUE, AT, BYTES, CREATED) "
      "SELECT :lane, id, k, NULLIF(k, ''), now_ms + delay, now_ms + delay, bytes, now_ms "
      "FROM given CROSS JOIN clock ORDER BY n ON CONFLICT DO NOTHING RETURNING ID, BYTES), "
      "kept AS (INSERT INTO {entries} (ID, ENTRY) "
      "SELECT given.id, given.entry FROM given JOIN added ON added.ID = given.id), "
      "counted AS (INSERT INTO {counters} (LANE, EVENTS, BYTES, TICKETS, PUBLISHED, "
      "DUPLICATES, CLAIMS, ACKED, RETRIED, PARKINGS, STALE, FIRED, ORPHANS) "
      "SELECT :lane, COUNT(*), COALESCE(SUM(added.BYTES), 0), 0, COUNT(*), "
      "(SELECT COUNT(*) FROM given) - COUNT(*), 0, 0, 0, 0, 0, 0, 0 FROM added), "
      "notified AS MATERIALIZED (SELECT pg_notify(:channel/text, :payload/text) FROM added LIMIT "
      "1) "
      "SELECT added.ID, (SELECT COUNT(*) FROM notified) FROM added",
      {text, integer});
}

}  // namespace

std::string stored_entry(std::string_view id, std::string_view body) {
  std::string text = R"({"v":1,"id":")";
  text.reserve(body.size() + 64);
  text.append(id).append("\",").append(body).append("}");
  return text;
}

bool has_limit(const outbox_quota& quota) {
  return quota.events != 0 || quota.bytes != 0 || quota.overdue.count() != 0;
}

publish_statements make_publish_statements(const statement_builder& builder) {
  using enum sql::type;
  constexpr auto name = row_list::type::name;
  publish_statements statements{
      .find_ids = builder.statement("SELECT o.ID, o.PLACE, o.AT, {now_ms} " +
                                        builder.join("{events}", "ID", {"ids", {{"id", name}}}),
                                    {text, integer, integer, integer}),
      .insert_entries = builder.statement(
          "INSERT INTO {entries} (ID, ENTRY) SELECT g.id, g.entry FROM " +
          builder.rows({"entries", {{"id", name}, {"entry", row_list::type::long_text}}}) +
          " {where_true}" + builder.keep_existing("ID")),
      .publish = {},
      .insert_events = {},
      .insert_entry_rows = {}};
  if (builder.postgres()) statements.publish = publish_in_one_statement(builder);
  if (builder.mysql()) {
    statements.insert_events.emplace(
        builder,
        "{insert_ignore} {events} (LANE, ID, EVENT_KEY, QUEUE, DUE, AT, BYTES, CREATED) VALUES",
        "(?, ?, ?, NULLIF(?, ''), ?, ?, ?, ?)", "",
        std::vector{integer, text, text, text, integer, integer, integer, integer});
    statements.insert_entry_rows.emplace(builder, "INSERT INTO {entries} (ID, ENTRY) VALUES",
                                         "(?, ?)", builder.keep_existing("ID"),
                                         std::vector{text, text});
  }
  return statements;
}

sql_publisher::sql_publisher(const statement_builder& builder, const outbox_tables& tables,
                             const sql_wake& wake)
    : tables_(tables),
      wake_(wake),
      dialect_(builder.dialect()),
      statements_(make_publish_statements(builder)) {}

void sql_publisher::check_dialect_of(const join::transaction& transaction) const {
  const auto is_mysql = [](sql::dialect_id dialect) {
    return dialect != sql::dialect_id::sqlite && dialect != sql::dialect_id::postgresql;
  };
  const auto other = transaction.dialect();
  if (other == dialect_ || (is_mysql(other) && is_mysql(dialect_))) return;
  throw error(errc::invalid_argument,
              "the transaction is on " + std::string(to_string(other)) + ", but the outbox is on " +
                  std::string(to_string(dialect_)) + "; use a transaction of the same database");
}

std::vector<receipt> sql_publisher::publish(const lane_session& session,
                                            std::span<const event> events,
                                            const publish_terms& terms) const {
  check_dialect_of(session.transaction);
  if (events.empty()) return {};
  if (statements_.publish && !has_limit(terms.quota))
    return publish_at_once(session, events, terms);
  std::vector<stored_event> stored;
  stored.reserve(events.size());
  for (const auto& event : events)
    stored.push_back({.id = event.id,
                      .key = event.key,
                      .delay = event.delay.count(),
                      .entry = stored_entry(event.id, entry_body(event))});
  lane_counters changes;
  auto receipts = insert(session, stored, terms, changes);
  tables_.counters.add(session, changes);
  if (changes.published > 0) wake_.notify(session);
  return receipts;
}

void sql_publisher::check_quota(const lane_session& session, std::size_t events, std::size_t bytes,
                                const publish_terms& terms, std::int64_t now_ms) const {
  const auto& quota = terms.quota;
  if (!has_limit(quota)) return;
  const auto sums = tables_.counters.sum(session);
  // Rows that another program inserted were never counted. A sum below 0 counts as 0 until a repair
  // counts the rows.
  const auto used_events = static_cast<std::uint64_t>(std::max<std::int64_t>(0, sums.events) +
                                                      std::max<std::int64_t>(0, sums.tickets));
  const auto used_bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(0, sums.bytes));
  if (quota.events != 0 && used_events + events > quota.events)
    throw quota_exceeded("the outbox is full: " + std::to_string(used_events) + " events of " +
                         std::to_string(quota.events));
  if (quota.bytes != 0 && used_bytes + bytes > quota.bytes)
    throw quota_exceeded("the outbox is full: " + std::to_string(used_bytes) + " bytes of " +
                         std::to_string(quota.bytes));
  if (quota.overdue.count() == 0) return;
  const auto overdue = tables_.events.overdue_ms(session, now_ms);
  if (overdue > quota.overdue.count())
    throw quota_exceeded("the outbox is behind: an event is overdue by " + std::to_string(overdue) +
                         " ms of " + std::to_string(quota.overdue.count()));
}

std::vector<sql_publisher::used_id> sql_publisher::find_ids(const lane_session& session,
                                                            std::string_view id_list) const {
  const auto rows = statements_.find_ids.query(session, {{"ids", id_list}});
  std::vector<used_id> used;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    row_reader reader(rows, i);
    auto& row = used.emplace_back();
    row.id = reader.text();
    row.state = static_cast<row_state>(reader.integer());
    row.state_time = reader.integer();
    row.now_ms = reader.integer();
  }
  return used;
}

std::vector<receipt> sql_publisher::insert(const lane_session& session,
                                           std::span<const stored_event> events,
                                           const publish_terms& terms,
                                           lane_counters& changes) const {
  stripe_set stripes;
  json_rows ids;
  for (const auto& event : events) {
    if (!event.key.empty()) stripes.insert(stripe_of(event.key));
    ids.add(event.id);
  }
  tables_.locks.lock(session, stripes);
  const auto used = find_ids(session, ids.text());
  const auto now_ms = tables_.lanes.now_ms(session);
  const auto forget_until = now_ms - terms.dedup_window.count();
  std::set<std::string> duplicates;
  std::vector<std::string> forgotten;
  for (const auto& row : used) {
    if (row.is_forgotten(forget_until)) forgotten.push_back(row.id);
    else duplicates.insert(row.id);
  }

  std::vector<receipt> receipts;
  std::vector<const stored_event*> added;
  std::size_t bytes = 0;
  for (const auto& event : events) {
    const bool is_new = duplicates.insert(event.id).second;
    receipts.push_back(
        {.id = event.id, .status = is_new ? publish_status::added : publish_status::duplicate});
    if (!is_new) continue;
    added.push_back(&event);
    bytes += event.entry.size();
  }
  const auto count = static_cast<std::int64_t>(added.size());
  changes.duplicates += static_cast<std::int64_t>(events.size()) - count;
  if (added.empty()) return receipts;
  check_quota(session, added.size(), bytes, terms, now_ms);
  if (!forgotten.empty()) tables_.remembered.forget(session, forgotten, forget_until);
  if (!insert_rows(session, added, now_ms)) {
    for (auto& receipt : receipts) receipt.status = publish_status::duplicate;
    ++changes.duplicates;
    return receipts;
  }
  changes.events += count;
  changes.published += count;
  changes.bytes += static_cast<std::int64_t>(bytes);
  return receipts;
}

/// Returns false if there is only one event and its id exists by now. Events without a key are not
/// locked, so another transaction may have inserted the id since find_ids.
bool sql_publisher::insert_rows(const lane_session& session,
                                std::span<const stored_event* const> events,
                                std::int64_t now_ms) const {
  for (std::size_t first = 0; first < events.size();) {
    std::size_t bytes = 0;
    std::size_t end = first;
    for (; end < events.size(); ++end) {
      const auto size = events[end]->entry.size();
      if (bytes != 0 && bytes + size > max_statement_bytes) break;
      bytes += size;
    }
    const auto part = events.subspan(first, end - first);
    const auto inserted = statements_.insert_events ? insert_values(session, part, now_ms)
                                                    : insert_lists(session, part, now_ms);
    if (inserted < part.size()) {
      if (events.size() == 1) return false;
      throw error(errc::duplicate,
                  "another transaction published an event with one of these ids at the same time: "
                  "run the transaction again",
                  {.transient = true});
    }
    insert_entries(session, part);
    first = end;
  }
  return true;
}

std::uint64_t sql_publisher::insert_lists(const lane_session& session,
                                          std::span<const stored_event* const> events,
                                          std::int64_t now_ms) const {
  json_rows rows;
  for (const auto* event : events)
    rows.add(session.lane, event->id, event->key, event->delay, now_ms, event->entry.size());
  return tables_.events.insert(session, rows);
}

std::uint64_t sql_publisher::insert_values(const lane_session& session,
                                           std::span<const stored_event* const> events,
                                           std::int64_t now_ms) const {
  const auto lane = static_cast<std::int64_t>(session.lane);
  std::vector<sql::parameter> values;
  for (const auto* event : events) {
    const std::string_view key = event->key;
    const auto due = now_ms + event->delay;
    values.insert(values.end(), {lane, std::string_view(event->id), key, key, due, due,
                                 static_cast<std::int64_t>(event->entry.size()), now_ms});
  }
  return statements_.insert_events ? statements_.insert_events->insert(session, values) : 0;
}

void sql_publisher::insert_entries(const lane_session& session,
                                   std::span<const stored_event* const> events) const {
  if (!statements_.insert_entry_rows) {
    json_rows entries;
    for (const auto* event : events) entries.add(event->id, event->entry);
    statements_.insert_entries.execute(session, {{"entries", entries.text()}});
    return;
  }
  std::vector<sql::parameter> values;
  for (const auto* event : events) {
    values.emplace_back(std::string_view(event->id));
    values.emplace_back(std::string_view(event->entry));
  }
  statements_.insert_entry_rows->insert(session, values);
}

bool sql_publisher::fits_one_statement(std::span<const event> events,
                                       const publish_terms& terms) const {
  if (!statements_.publish || has_limit(terms.quota)) return false;
  std::size_t bytes = 0;
  for (const auto& event : events) {
    bytes += event.payload.size();
    for (const auto& [name, value] : event.headers) bytes += name.size() + value.size();
  }
  // An entry is larger than its event: JSON needs up to 6 bytes for a character.
  return bytes <= max_statement_bytes / 6;
}

sql_publisher::status_by_id sql_publisher::publish_without_transaction(
    const lane_session& session, std::span<const event> events) const {
  check_dialect_of(session.transaction);
  return run_publish(session, events, std::numeric_limits<std::size_t>::max());
}

/// PostgreSQL without a quota: one statement does everything.
std::vector<receipt> sql_publisher::publish_at_once(const lane_session& session,
                                                    std::span<const event> events,
                                                    const publish_terms& terms, int attempt) const {
  return publish_rest(session, events, terms, run_publish(session, events, max_statement_bytes),
                      attempt);
}

std::vector<receipt> sql_publisher::publish_rest(const lane_session& session,
                                                 std::span<const event> events,
                                                 const publish_terms& terms, status_by_id statuses,
                                                 int attempt) const {
  const auto republished = publish_forgotten(session, events, terms, attempt, statuses);
  // The statement has counted each id once, and those it refused as duplicates.
  const auto repeated_ids = static_cast<std::int64_t>(events.size() - statuses.size());
  tables_.counters.add(session,
                       {.duplicates = repeated_ids - static_cast<std::int64_t>(republished)});
  return receipts_of(events, statuses);
}

std::vector<receipt> sql_publisher::receipts_of(std::span<const event> events,
                                                const status_by_id& statuses) {
  std::vector<receipt> receipts;
  receipts.reserve(events.size());
  std::set<std::string_view> seen;
  for (const auto& event : events) {
    const bool first = seen.insert(event.id).second;
    receipts.push_back(
        {.id = event.id,
         .status = first ? statuses.find(event.id)->second : publish_status::duplicate});
  }
  return receipts;
}

sql_publisher::status_by_id sql_publisher::run_publish(const lane_session& session,
                                                       std::span<const event> events,
                                                       std::size_t most_bytes) const {
  struct event_arrays {
    array_text ids, keys, entries, sizes, delays;
  };
  status_by_id statuses;
  event_arrays arrays;
  stripe_set stripes;
  std::size_t bytes = 0;
  const auto send = [&] {
    const auto added =
        statements_.publish->query(session, {{"class", tables_.locks.lock_class()},
                                             {"stripes", tables_.locks.stripe_array(stripes)},
                                             {"ids", arrays.ids.text()},
                                             {"keys", arrays.keys.text()},
                                             {"entries", arrays.entries.text()},
                                             {"sizes", arrays.sizes.text()},
                                             {"delays", arrays.delays.text()},
                                             {"channel", wake_.channel()},
                                             {"payload", std::to_string(session.lane)}});
    for (std::size_t i = 0; i < added.size(); ++i)
      statuses.find(row_reader(added, i).text())->second = publish_status::added;
    arrays = {};
    stripes.clear();
    bytes = 0;
  };
  for (const auto& event : events) {
    if (!statuses.emplace(event.id, publish_status::duplicate).second) continue;
    const auto entry = stored_entry(event.id, entry_body(event));
    if (bytes != 0 && bytes + entry.size() > most_bytes) send();
    bytes += entry.size();
    if (!event.key.empty()) stripes.insert(stripe_of(event.key));
    arrays.ids.add(event.id);
    arrays.keys.add(event.key);
    arrays.entries.add(entry);
    arrays.sizes.add(entry.size());
    arrays.delays.add(event.delay.count());
  }
  if (bytes != 0) send();
  return statuses;
}

/// Publishes again the events whose ids were refused because they are remembered, but for longer
/// than the dedup window. Returns their number.
std::size_t sql_publisher::publish_forgotten(const lane_session& session,
                                             std::span<const event> events,
                                             const publish_terms& terms, int attempt,
                                             status_by_id& statuses) const {
  // Ids that are not found were forgotten after the statement met them: they are new as well.
  std::set<std::string> republish;
  for (const auto& [id, status] : statuses) {
    if (status == publish_status::duplicate) republish.emplace(id);
  }
  if (republish.empty()) return 0;
  std::vector<std::string> forgotten;
  std::int64_t forget_until = 0;
  for (const auto& row : find_ids(session, json_column(republish))) {
    forget_until = row.now_ms - terms.dedup_window.count();
    if (row.is_forgotten(forget_until)) forgotten.push_back(row.id);
    else republish.erase(row.id);
  }
  if (!forgotten.empty()) tables_.remembered.forget(session, forgotten, forget_until);
  if (republish.empty()) return 0;
  // Not an id was the reason, but a SEQ that exists, if a sequence was left behind when rows were
  // copied, or a trigger.
  if (attempt > max_refusals)
    throw error(errc::duplicate,
                "the table of events refuses rows whose ids are new; check that the sequence of "
                "SEQ is not behind its rows, and that no trigger refuses them");
  const auto count = republish.size();
  std::vector<event> again;
  for (const auto& event : events) {
    if (republish.erase(event.id) != 0) again.push_back(event);
  }
  for (const auto& receipt : publish_at_once(session, again, terms, attempt + 1))
    statuses.find(receipt.id)->second = receipt.status;
  return count;
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
