#include "outbox/sql/keyless_delivery.hpp"

#include <holdfast/error.hpp>

#include "outbox/entry.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::outbox {

namespace {

/// Acknowledged events after which a lane is maintained.
constexpr std::size_t maintenance_interval = 1000;

constexpr std::string_view counter_insert =
    "INSERT INTO {counters} (LANE, EVENTS, BYTES, TICKETS, PUBLISHED, DUPLICATES, CLAIMS, ACKED, "
    "RETRIED, PARKINGS, STALE, FIRED, ORPHANS) ";
constexpr std::string_view first_due =
    "(SELECT MIN(f.DUE) FROM {events} f WHERE f.LANE = :lane AND f.DUE IS NOT NULL)";

/// The parts, in their order: l reads and locks the lane, d locks the events that are due, s
/// decides whether all of them are simple, c claims them, k counts. If as many events are due as
/// were asked for, more may be due: the time of the next one is not looked up. The time is computed
/// once, in l: PostgreSQL would compute the expression again for each event.
///
/// The commit does not wait until the claim is on disk (synchronous_commit): if the server crashes,
/// the claim may be forgotten, and the events are due at once.
named_statement claim_statement(const statement_builder& builder) {
  using enum sql::type;
  const std::string largest_token = std::to_string(max_token);
  const std::string latest_time = std::to_string(max_time_ms);
  std::string query =
      "WITH l AS MATERIALIZED (SELECT o.PAUSED, o.OWNER, o.UNTIL, {now_us} AS now_us, "
      "{now_ms} AS now_ms, set_config('synchronous_commit', 'off', true) FROM {lanes} o "
      "WHERE o.LANE = :lane FOR SHARE OF o), "
      "d AS MATERIALIZED (SELECT o.ctid AS position, o.SEQ, o.DUE, o.QUEUE, o.EVENT_KEY, o.PLACE, "
      "o.AT, o.TOKEN, "
      "o.BYTES, o.DELIVERIES, o.ATTEMPTS, o.REPLAYS, o.CREATED FROM {events} o WHERE o.LANE = "
      ":lane "
      "AND o.DUE <= {now_ms} AND EXISTS (SELECT 1 FROM l WHERE l.PAUSED <> 1 AND (:owner/text = '' "
      "OR (l.OWNER = :owner/text AND l.UNTIL > {now_ms}))) ORDER BY o.DUE, o.ID LIMIT :limit "
      "FOR UPDATE OF o SKIP LOCKED), "
      "s AS MATERIALIZED (SELECT COUNT(*) AS n, SUM(d.BYTES) AS bytes, "
      "COALESCE(MAX(CASE WHEN d.TOKEN BETWEEN -";
  query += largest_token + " AND " + largest_token +
           " THEN ABS(d.TOKEN) END), 0) AS last_token, "
           "COALESCE(bool_and(d.QUEUE IS NULL AND d.EVENT_KEY = '' AND d.PLACE = {queued} AND "
           "d.AT BETWEEN 0 AND " +
           latest_time + " AND d.CREATED BETWEEN 0 AND " + latest_time + " AND d.TOKEN BETWEEN -" +
           largest_token + " AND " + largest_token;
  for (const auto* column : {"BYTES", "DELIVERIES", "ATTEMPTS", "REPLAYS"})
    query.append(" AND d.").append(column).append(" BETWEEN 0 AND 1000000000");
  query +=
      "), true) AS simple FROM d), "
      "c AS (UPDATE {events} o SET TOKEN = GREATEST(l.now_us, s.last_token + 1), RUN = 1, "
      "DUE = l.now_ms + :lease, DELIVERIES = o.DELIVERIES + 1 FROM s, l WHERE s.simple AND "
      "s.bytes <= :bytes AND o.ctid = ANY(ARRAY(SELECT d.position FROM d)) RETURNING o.SEQ, o.ID, "
      "o.TOKEN, "
      "o.DELIVERIES, o.ATTEMPTS, o.REPLAYS, o.CREATED, o.NUMBER, o.LAST_ERROR), "
      "k AS (";
  query += counter_insert;
  query +=
      "SELECT :lane, 0, 0, 0, 0, 0, COUNT(*), 0, 0, 0, 0, 0, 0 FROM c HAVING COUNT(*) > 0) "
      "SELECT l.now_us, l.PAUSED, l.OWNER, l.UNTIL, s.n, ";
  query.append("CASE WHEN s.n = :limit THEN 0 ELSE ").append(first_due).append(" END");
  query +=
      ", c.SEQ, c.ID, c.TOKEN, c.DELIVERIES, c.ATTEMPTS, c.REPLAYS, c.CREATED, c.NUMBER, "
      "c.LAST_ERROR, (SELECT x.ENTRY FROM {entries} x WHERE x.ID = c.ID) "
      "FROM l CROSS JOIN s LEFT JOIN (c JOIN d ON d.SEQ = c.SEQ) ON TRUE ORDER BY d.DUE, c.ID";
  return builder.statement(query, {integer, integer, sql::type::text, integer, integer, integer,
                                   integer, sql::type::text, integer, integer, integer, integer,
                                   integer, integer, sql::type::text, sql::type::text});
}

/// The parts: l locks the lane against a repair, a marks the events as delivered, e removes their
/// entries, w starts the windows of their effects if the lane has marks of effects, k counts.
named_statement settle_statement(const statement_builder& builder) {
  using enum sql::type;
  const std::string with_event_text = std::to_string(with_event);
  std::string statement =
      "WITH l AS MATERIALIZED (SELECT o.PAUSED, o.OWNER, o.UNTIL, {now_ms} AS now_ms FROM {lanes} "
      "o WHERE o.LANE = :lane FOR SHARE OF o), a AS (UPDATE {events} o SET PLACE = {remembered}, "
      "DUE = NULL, AT = (SELECT l.now_ms FROM l), "
      "LAST_ERROR = NULL WHERE o.ID = ANY(:ids/text::text[]) AND EXISTS (SELECT 1 FROM l) AND "
      "o.LANE = :lane AND o.TOKEN = :token AND o.PLACE = "
      "{queued} AND o.QUEUE IS NULL AND "
      "o.EVENT_KEY = '' RETURNING o.ID, o.BYTES), "
      "e AS (DELETE FROM {entries} WHERE ID = ANY(ARRAY(SELECT a.ID FROM a))), "
      "w AS (UPDATE {events} m SET AT = {now_ms} WHERE (SELECT COUNT(*) FROM (SELECT f.SEQ FROM "
      "{events} f WHERE f.LANE = :lane AND f.PLACE = {remembered} AND f.PLACE <> {queued} AND "
      "f.AT = " +
      with_event_text +
      " LIMIT 1) t) > 0 AND m.ID = ANY(ARRAY(SELECT 'e' || chr(58) || a.ID FROM a)) AND "
      "m.PLACE = {remembered} AND m.AT = " +
      with_event_text + "), k AS (";
  statement += counter_insert;
  statement +=
      "SELECT :lane, -COUNT(*), -COALESCE(SUM(CASE WHEN a.BYTES BETWEEN 0 AND 2147483647 THEN "
      "a.BYTES END), 0), 0, 0, 0, 0, COUNT(*), 0, 0, :count - COUNT(*), 0, 0 FROM a) "
      "SELECT a.ID, {now_us}, l.PAUSED, l.OWNER, l.UNTIL, CASE WHEN :claims = 1 THEN ";
  statement += first_due;
  statement += " END FROM l LEFT JOIN a ON TRUE";
  return builder.statement(statement, {text, integer, integer, text, integer, integer});
}

/// Why the lane gives out nothing.
claim_status status_of_lane(const lane_row& lane, std::string_view owner) {
  if (!owner.empty() && !lane.locked_by(owner)) return claim_status::fenced;
  return lane.paused ? claim_status::paused : claim_status::empty;
}

std::optional<std::chrono::milliseconds> time_until(std::optional<std::int64_t> due,
                                                    std::int64_t now_ms) {
  if (!due) return std::nullopt;
  return std::chrono::milliseconds(*due <= now_ms ? 0 : *due - now_ms);
}

lane_row read_keyless_lane(row_reader& reader) {
  lane_row lane;
  lane.now_us = reader.integer();
  lane.now_ms = lane.now_us / 1000;
  lane.paused = reader.integer() == 1;
  lane.lock_owner = reader.text();
  lane.locked_until = reader.integer();
  return lane;
}

error missing_lane(std::size_t lane) {
  return {errc::invalid_argument, "the outbox has no lane " + std::to_string(lane)};
}

}  // namespace

keyless_delivery::keyless_delivery(const statement_builder& builder, const outbox_tables& tables,
                                   std::size_t lanes)
    : tables_(tables),
      claim_(claim_statement(builder)),
      settle_(settle_statement(builder)),
      only_keyless_(lanes),
      since_maintenance_(lanes) {
  for (auto& count : since_maintenance_) count = maintenance_interval;  // the first one maintains
}

void keyless_delivery::observe(const claimed& answer) const {
  const auto& events = answer.events;
  if (events.empty()) return;
  only_keyless_.at(answer.lane) =
      std::ranges::all_of(events, [](const claimed_event& each) { return each.event.key.empty(); });
}

std::optional<claimed> keyless_delivery::claim(const lane_session& session,
                                               const claim_request& request) const {
  const auto rows = claim_.query(session, {{"owner", request.owner},
                                           {"limit", request.most},
                                           {"lease", request.lease.count()},
                                           {"bytes", request.bytes}});
  if (rows.empty()) throw missing_lane(session.lane);
  claimed answer{.lane = session.lane};
  std::size_t due_count = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    row_reader reader(rows, i);
    const auto lane = read_keyless_lane(reader);
    due_count = static_cast<std::size_t>(reader.integer());
    answer.now = timestamp(std::chrono::milliseconds(lane.now_ms));
    answer.next = time_until(reader.optional_integer(), lane.now_ms);
    answer.status = status_of_lane(lane, request.owner);
    event_row row;
    row.seq = reader.integer();
    row.id = reader.text();
    if (row.id.empty()) break;  // nothing was claimed
    answer.fence = reader.integer();
    row.deliveries = reader.integer();
    row.attempts = reader.integer();
    row.replays = reader.integer();
    row.created = reader.integer();
    row.original_seq = reader.integer();
    row.last_error = reader.text();
    const auto entry = reader.optional_text();
    // Its entry was deleted by hand. Such rows are removed by sql_deliverer when the lease ends.
    if (!entry) {
      only_keyless_.at(session.lane) = false;
      continue;
    }
    auto content = read_or_explain(*entry, row.id, row.key);
    auto event = claimed_event_of(row, session.lane);
    event.event = std::move(content.event);
    if (!content.problem.empty()) event.last_error = std::move(content.problem);
    answer.events.push_back(std::move(event));
  }
  if (!answer.events.empty()) answer.status = claim_status::some;
  else if (due_count > 0) return std::nullopt;
  return answer;
}

bool keyless_delivery::may_settle(fence token, std::span<const settlement> settlements,
                                  const publish_terms& terms) {
  if (token == 0 || terms.dedup_window.count() == 0) return false;
  return std::ranges::all_of(settlements, [](const settlement& each) {
    return each.action == settlement::kind::ack && each.key.empty();
  });
}

settled keyless_delivery::settle(const lane_session& session, fence token,
                                 std::span<const settlement> settlements,
                                 const std::optional<run_request>& next_run_request) const {
  array_text ids;
  for (const auto& each : settlements) ids.add(each.id);
  const auto rows = settle_.query(session, {{"ids", ids.text()},
                                            {"token", token},
                                            {"count", settlements.size()},
                                            {"claims", next_run_request.has_value()}});
  if (rows.empty()) throw missing_lane(session.lane);
  settled answer;
  auto& next = answer.next;
  next.lane = session.lane;
  std::set<std::string, std::less<>> acknowledged;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    row_reader reader(rows, i);
    if (auto id = reader.optional_text()) acknowledged.insert(std::move(*id));
    const auto lane = read_keyless_lane(reader);
    next.now = timestamp(std::chrono::milliseconds(lane.now_ms));
    if (!next_run_request) continue;
    next.status = status_of_lane(lane, next_run_request->owner);
    next.next = time_until(reader.optional_integer(), lane.now_ms);
  }
  // Of two settlements of the same event, the first one was applied.
  for (const auto& each : settlements) answer.done.push_back(acknowledged.erase(each.id) != 0);
  return answer;
}

bool keyless_delivery::needs_maintenance(std::size_t lane, std::size_t acknowledged) const {
  auto& count = since_maintenance_.at(lane);
  if (count.fetch_add(acknowledged) + acknowledged < maintenance_interval) return false;
  count = 0;
  return true;
}

void keyless_delivery::maintain(const lane_session& session, const publish_terms& terms) const {
  tables_.remembered.trim(session, tables_.lanes.now_ms(session), terms, maintenance_interval);
  tables_.counters.compact(session);
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
