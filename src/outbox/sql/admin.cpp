#include "outbox/sql/admin.hpp"

#include "outbox/entry.hpp"

#include <algorithm>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::outbox {

namespace {

/// When `drain` tries tickets again whose keys an open transaction has locked.
constexpr std::chrono::milliseconds locked_ticket_delay{100};

bool is_parked_row(const event_row& row) {
  return row.state == row_state::parked || row.state == row_state::blocking;
}

lock_grant held_by_other(const lane_row& row) {
  return {.fence = row.lock_fence,
          .holder = row.lock_owner,
          .remaining = std::chrono::milliseconds(row.locked_until - row.now_ms)};
}

}  // namespace

sql_admin::sql_admin(const statement_builder& builder, const outbox_tables& tables,
                     const sql_publisher& publisher, const sql_wake& wake)
    : tables_(tables),
      publisher_(publisher),
      wake_(wake),
      insert_replayed_(builder.statement(
          "INSERT INTO {events} "
          "(LANE, ID, EVENT_KEY, QUEUE, DUE, AT, TOKEN, CREATED, BYTES, REPLAYS, NUMBER) "
          "VALUES (:lane, :id/text, :key/text, :key/text, :now, :now, :token, :created, :bytes, "
          ":replays, :original_seq)")) {}

// ---- parked events ----

std::vector<bool> sql_admin::replay(const lane_session& session,
                                    std::span<const std::string> ids) const {
  auto rows = tables_.events.lock_by_id(session, json_column(ids));
  stripe_set stripes;
  for (const auto& [id, row] : rows) {
    if (row.state == row_state::parked && !row.key.empty()) stripes.insert(stripe_of(row.key));
  }
  tables_.locks.lock(session, stripes);
  const auto now_ms = tables_.lanes.read(session).now_ms;
  std::vector<bool> replayed;
  event_rows changed;
  for (const auto& id : ids) {
    const auto position = rows.find(id);
    replayed.push_back(position != rows.end() && is_parked_row(position->second));
    if (!replayed.back()) continue;
    auto row = std::move(position->second);
    rows.erase(position);
    if (row.state == row_state::parked && !row.key.empty()) {
      append_to_queue(session, row, now_ms);
      continue;
    }
    row.state = row_state::queued;
    row.due = row.state_time = now_ms;
    row.token = row.run_length = row.parked_by = row.deliveries = row.attempts = 0;
    ++row.replays;
    row.last_error.clear();
    changed.push_back(std::move(row));
  }
  tables_.events.update(session, changed);
  return replayed;
}

/// Gives the event a new SEQ, after the events that its key has now, as if it was published again.
void sql_admin::append_to_queue(const lane_session& session, const event_row& row,
                                std::int64_t now_ms) const {
  tables_.events.erase(session, std::span(&row.seq, 1));
  insert_replayed_.execute(session, {{"id", row.id},
                                     {"key", row.key},
                                     {"now", now_ms},
                                     {"token", -row.last_token},
                                     {"created", row.created},
                                     {"bytes", row.bytes},
                                     {"replays", row.replays + 1},
                                     {"original_seq", row.sequence()}});
}

std::vector<bool> sql_admin::discard(const lane_session& session,
                                     std::span<const std::string> ids) const {
  auto rows = tables_.events.lock_by_id(session, json_column(ids));
  std::vector<bool> discarded;
  std::vector<std::int64_t> erased_seqs;
  std::vector<std::string> erased_ids;
  promotions_by_key freed_keys;
  lane_counters changes;
  for (const auto& id : ids) {
    const auto position = rows.find(id);
    discarded.push_back(position != rows.end() && is_parked_row(position->second));
    if (!discarded.back()) continue;
    const auto& row = position->second;
    if (row.state == row_state::blocking)
      freed_keys.emplace(row.key, promotion{.token = row.last_token});
    erased_seqs.push_back(row.seq);
    erased_ids.push_back(row.id);
    --changes.events;
    changes.bytes -= row.bytes;
    rows.erase(position);
  }
  if (erased_seqs.empty()) return discarded;
  tables_.events.erase(session, erased_seqs);
  tables_.events.erase_entries(session, erased_ids);
  const auto now_ms = tables_.lanes.now_ms(session);
  tables_.remembered.start_effect_windows(session, erased_ids, now_ms);
  tables_.events.promote(session, freed_keys, now_ms);
  tables_.counters.add(session, changes);
  return discarded;
}

// ---- lanes ----

void sql_admin::pause(const lane_session& session, bool paused) const {
  auto row = tables_.lanes.read(session, lane_access::exclusive);
  row.paused = paused;
  tables_.lanes.write(session, row);
  if (!paused) wake_.notify(session);
}

lock_grant sql_admin::grant(const lane_session& session, lane_row& row, std::string_view owner,
                            std::chrono::milliseconds ttl) const {
  row.lock_owner = owner;
  row.locked_until = row.now_ms + ttl.count();
  tables_.lanes.write(session, row);
  return {.held = true, .fence = row.lock_fence, .holder = row.lock_owner, .remaining = ttl};
}

lock_grant sql_admin::lock(const lane_session& session, std::string_view owner,
                           std::chrono::milliseconds ttl) const {
  auto row = tables_.lanes.read(session, lane_access::exclusive);
  if (!row.lock_owner.empty() && row.locked_until > row.now_ms && row.lock_owner != owner)
    return held_by_other(row);
  if (!row.locked_by(owner)) row.lock_fence = std::max<fence>(row.lock_fence + 1, row.now_us);
  return grant(session, row, owner, ttl);
}

lock_grant sql_admin::renew(const lane_session& session, std::string_view owner,
                            std::chrono::milliseconds ttl) const {
  auto row = tables_.lanes.read(session, lane_access::exclusive);
  if (row.locked_by(owner)) return grant(session, row, owner, ttl);
  if (row.lock_owner.empty() || row.locked_until <= row.now_ms) return {};
  return held_by_other(row);
}

bool sql_admin::unlock(const lane_session& session, std::string_view owner) const {
  auto row = tables_.lanes.read(session, lane_access::exclusive);
  if (!row.locked_by(owner)) return false;
  row.lock_owner.clear();
  row.locked_until = 0;
  tables_.lanes.write(session, row);
  return true;
}

// ---- tickets ----

scheduled sql_admin::schedule(const lane_session& session, std::string_view ticket,
                              std::optional<timestamp> expires_at, std::chrono::milliseconds delay,
                              const event& event, const publish_terms& terms) const {
  const auto now_ms = tables_.lanes.read(session).now_ms;
  const auto body = entry_body(event);
  const std::chrono::milliseconds expires =
      expires_at ? std::chrono::floor<std::chrono::milliseconds>(expires_at->time_since_epoch())
                 : std::chrono::milliseconds(now_ms) + delay;
  const argument arguments[]{
      {"ticket", ticket}, {"expires", expires.count()}, {"key", event.key}, {"body", body}};
  scheduled answer{.expires_at = timestamp(expires)};
  if (const auto before =
          first_integer(tables_.tickets.find.query(session, {{"ticket", ticket}}))) {
    answer.before = timestamp(std::chrono::milliseconds(*before));
    tables_.tickets.update.execute(session, arguments);
  } else {
    publisher_.check_quota(session, 1, body.size(), terms, now_ms);
    tables_.tickets.insert.execute(session, arguments);
    tables_.counters.add(session, {.tickets = 1});
  }
  wake_.notify(session);
  return answer;
}

cancel_status sql_admin::cancel(const lane_session& session, std::string_view ticket) const {
  if (tables_.tickets.erase.execute(session, {{"ticket", ticket}}) > 0) {
    tables_.counters.add(session, {.tickets = -1});
    return cancel_status::cancelled;
  }
  const auto fired_at = tables_.remembered.find(session, ticket_mark(ticket));
  return fired_at ? cancel_status::fired : cancel_status::unknown;
}

drained sql_admin::drain(const lane_session& session, std::size_t limit,
                         const publish_terms& terms) const {
  const auto now_ms = tables_.lanes.read(session).now_ms;
  auto tickets = read_ticket_rows(
      tables_.tickets.lock_expired.query(session, {{"now", now_ms}, {"limit", limit}}));
  const auto expired_count = tickets.size();
  // A caller may have published for one of these keys in a transaction that is still open. To wait
  // for it would stop the whole lane, so the ticket fires later.
  stripe_set stripes;
  for (const auto& ticket : tickets) {
    if (!ticket.key.empty()) stripes.insert(stripe_of(ticket.key));
  }
  const auto locked = tables_.locks.try_lock(session, stripes);
  std::erase_if(tickets, [&](const ticket_row& ticket) {
    return !ticket.key.empty() && !locked.contains(stripe_of(ticket.key));
  });
  if (!tickets.empty()) fire(session, tickets, now_ms, terms);

  drained answer{.tickets = tickets.size(), .held_up = tickets.size() < expired_count};
  if (const auto expiry = first_integer(tables_.tickets.first_expiry.query(session)))
    answer.next = std::chrono::milliseconds(*expiry <= now_ms ? 0 : *expiry - now_ms);
  // If all expired tickets wait for locks, the caller must not drain again and again.
  if (answer.held_up && tickets.empty())
    answer.next = std::max(answer.next.value_or(locked_ticket_delay), locked_ticket_delay);
  return answer;
}

/// Turns tickets into events.
void sql_admin::fire(const lane_session& session, std::span<const ticket_row> tickets,
                     std::int64_t now_ms, const publish_terms& terms) const {
  std::vector<stored_event> events;
  json_rows names;
  std::vector<std::string> marks;
  for (const auto& ticket : tickets) {
    auto id = expiry_event_id(ticket.name, timestamp(std::chrono::milliseconds(ticket.expires)));
    // The body is not read here. A claim parks an event whose entry cannot be read.
    auto entry = stored_entry(id, ticket.body);
    events.push_back({.id = std::move(id), .key = ticket.key, .entry = std::move(entry)});
    names.add(ticket.name, session.lane);
    marks.push_back(ticket_mark(ticket.name));
  }
  lane_counters changes;
  auto without_quota = terms;
  without_quota.quota = {};
  (void)publisher_.insert(session, events, without_quota, changes);
  tables_.tickets.erase_list.execute(session, {{"tickets", names.text()}});
  if (terms.dedup_window.count() > 0) tables_.remembered.remember(session, marks, now_ms);
  changes.fired = static_cast<std::int64_t>(tickets.size());
  changes.tickets = -changes.fired;
  tables_.counters.add(session, changes);
  tables_.remembered.trim(session, now_ms, terms, tickets.size());
  wake_.notify(session);
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
