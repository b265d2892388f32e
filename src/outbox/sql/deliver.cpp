#include "outbox/sql/deliver.hpp"

#include <holdfast/error.hpp>

#include "outbox/entry.hpp"
#include "outbox/sql/row_repair.hpp"

#include <algorithm>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::outbox {

namespace {

/// A claim that reads nothing but followers, which it demotes, stops after this many rounds.
constexpr int max_claim_rounds = 20;
/// The counters are compacted in one of this many claims and settlements.
constexpr std::uint32_t delivery_compaction_interval = 64;
/// When a claim reads a follower again that it could not demote, in milliseconds.
constexpr std::int64_t min_postponement = 1;
constexpr std::int64_t max_postponement = 1000;
/// On Galera, where most followers are only postponed: each is written about twenty times in all.
constexpr std::int64_t max_postponement_in_cluster = 600'000;

/// Why a lane gives out nothing.
std::optional<claim_status> claim_refusal(const lane_row& lane, std::string_view owner) {
  if (!owner.empty() && !lane.locked_by(owner)) return claim_status::fenced;
  if (lane.paused) return claim_status::paused;
  return std::nullopt;
}

claim_status claim_status_of(const claimed& answer) {
  return answer.events.empty() ? claim_status::empty : claim_status::some;
}

/// The name of a lease: the key, or for an event without a key its id after a byte that no key has.
std::string lease_name(std::string_view key, std::string_view id) {
  return key.empty() ? "\x01" + std::string(id) : std::string(key);
}

/// Takes an event out of the queue of its key.
void park_row(event_row& row) {
  row.state = row_state::parked;
  row.queue.reset();
  row.due.reset();
}

}  // namespace

deliver_statements make_deliver_statements(const statement_builder& builder) {
  using enum sql::type;
  const row_list seqs{"seqs", {{"seq"}}};
  return {
      // The next row is needed only of a head. For a follower MariaDB would read all rows before
      // it.
      .due_events = builder.statement(
          "SELECT {stored_event}, {head}, CASE WHEN o.SEQ = {head} THEN {next} END FROM {events} o "
          "{due_index} WHERE o.LANE = :lane AND o.DUE <= :now "
          "ORDER BY o.DUE, o.ID LIMIT :limit {skip_locked}",
          event_types()),
      // Not MIN(o.DUE): MariaDB would read all rows that have a DUE.
      .first_due = builder.statement(
          "SELECT o.DUE FROM {events} o {due_index} WHERE o.LANE = :lane AND o.DUE IS NOT NULL "
          "ORDER BY o.DUE LIMIT 1",
          {integer}),
      .lock_heads = builder.statement("SELECT o.SEQ " + builder.join("{events}", "SEQ", seqs) +
                                          " WHERE o.QUEUE IS NOT NULL {skip_locked}",
                                      {integer}),
      .demote = builder.statement(builder.update_events(seqs, {{"DUE", "NULL"}})),
      .set_due = builder.statement(
          builder.update_events({"rows", {{"seq"}, {"due"}}}, {{"DUE", "g.due"}})),
      .lock_followers = builder.statement(
          "SELECT {event} FROM {events} o {key_index} WHERE o.LANE = :lane AND "
          "o.QUEUE = :key/text AND o.SEQ > :seq ORDER BY o.SEQ LIMIT :limit {skip_locked}",
          event_types()),
      .mark_delivered = builder.statement(builder.update_events(seqs, {{"PLACE", "{remembered}"},
                                                                       {"QUEUE", "NULL"},
                                                                       {"DUE", "NULL"},
                                                                       {"AT", ":now"},
                                                                       {"EVENT_KEY", "''"},
                                                                       {"LAST_ERROR", "NULL"}})),
  };
}

sql_deliverer::sql_deliverer(const statement_builder& builder, const outbox_tables& tables)
    : tables_(tables),
      locks_(builder.locks()),
      statements_(make_deliver_statements(builder)),
      run_claimer_(builder, tables) {}

// ---- claim ----

claimed sql_deliverer::claim(const lane_session& session, const claim_request& request) const {
  auto lane = tables_.lanes.read(session);
  claimed answer{.lane = request.lane, .now = timestamp(std::chrono::milliseconds(lane.now_ms))};
  if (const auto refusal = claim_refusal(lane, request.owner)) {
    answer.status = *refusal;
    return answer;
  }
  if (tables_.lanes.clock_was_ahead(session.lane, lane.now_ms))
    tables_.events.correct_future_events(session, lane.now_ms);
  lane_counters changes;
  claim_progress progress{.session = session,
                          .lane = lane,
                          .max_run_length = request.run,
                          .lease = request.lease,
                          .remaining_bytes = request.bytes,
                          .answer = answer,
                          .changes = changes};
  round_limits limits{.heads = request.most, .parking = max_events_per_call};
  for (int round = 0; round < max_claim_rounds && limits.heads > 0; ++round) {
    if (!claim_round(progress, limits)) break;
  }
  answer.status = claim_status_of(answer);
  tables_.counters.add(session, changes);
  // After as many events as were asked for, more may be due: that is not looked up.
  const bool is_full = limits.heads == 0 && !answer.events.empty();
  answer.next = is_full ? std::chrono::milliseconds(0) : time_to_next_due(session, lane.now_ms);
  tables_.counters.compact_sometimes(session, delivery_compaction_interval);
  return answer;
}

/// Reads rows that are due and claims those that are heads. Returns false if a further round would
/// not claim more.
bool sql_deliverer::claim_round(claim_progress& progress, round_limits& limits) const {
  const auto& session = progress.session;
  const auto now_ms = progress.lane.now_ms;
  auto due = read_event_rows(
      statements_.due_events.query(session, {{"now", now_ms}, {"limit", limits.heads}}));
  const bool read_all = due.size() < limits.heads;
  const bool repaired_some = repair_misplaced(due, progress);
  const bool still_parking = continue_parking(due, limits.parking, progress);
  event_rows heads;
  head_by_follower followers;
  for (auto& row : due) {
    if (row.is_head()) heads.push_back(std::move(row));
    else followers.emplace(row.seq, row.head);
  }
  // Before the heads are claimed: if a head has no entry, the next event of its key is promoted,
  // and must keep its new DUE.
  if (locks_ == lock_scope::server) demote_or_postpone(session, followers, heads, now_ms);
  const auto head_count = heads.size();
  const auto events_before = progress.answer.events.size();
  const auto orphans_before = progress.changes.orphans;
  run_claimer_.claim(std::move(heads), progress);
  if (locks_ == lock_scope::node) demote_or_postpone_after_claim(followers, progress);
  const auto orphan_count = static_cast<std::size_t>(progress.changes.orphans - orphans_before);
  // The heads that are due do not fit, or have a larger token; a further round would read them
  // again. Rows without an entry were removed, so it goes on after those.
  const bool claimed_none =
      head_count > 0 && orphan_count == 0 && progress.answer.events.size() == events_before;
  limits.heads -= std::min(limits.heads, head_count - orphan_count);
  return !still_parking && !claimed_none && (!read_all || repaired_some);
}

/// Repairs rows that another program damaged, and removes them from `due`: a further round reads
/// them again if they are still due. Returns whether there were any.
bool sql_deliverer::repair_misplaced(event_rows& due, claim_progress& progress) const {
  const auto is_misplaced = [](const event_row& row) {
    const bool may_be_due =
        row.state == row_state::queued || (row.state == row_state::blocking && row.parked_by != 0);
    return !may_be_due || is_misplaced_row(row, true);
  };
  if (std::ranges::none_of(due, is_misplaced)) return false;
  std::vector<std::string> ids;
  for (const auto& row : due) {
    if (is_misplaced(row)) ids.push_back(row.id);
  }
  const auto texts = tables_.events.entries(progress.session, ids);
  std::vector<std::pair<event_row, std::size_t>> repaired;
  std::set<std::string, std::less<>> queues;
  for (auto& row : due) {
    if (!is_misplaced(row)) continue;
    const auto text = texts.by_id.find(row.id);
    const bool has_entry = text != texts.by_id.end();
    std::optional<std::string> key;
    if (has_entry) {
      auto content = read_or_explain(text->second, row.id, std::nullopt);
      if (content.problem.empty()) key = std::move(content.event.key);
    }
    if (row.queue) queues.insert(*row.queue);
    auto repaired_event = repaired_row(row, has_entry, key);
    if (repaired_event.queue) queues.insert(*repaired_event.queue);
    repaired.emplace_back(std::move(repaired_event), progress.session.lane);
  }
  std::erase_if(due, is_misplaced);
  tables_.events.rewrite(progress.session, repaired);
  tables_.events.wake_heads(progress.session,
                            std::vector<std::string_view>(queues.begin(), queues.end()));
  return true;
}

/// Continues to park the followers of heads that were parked with park_policy::park. Removes these
/// heads and their followers from `due`. Returns true if followers remain.
bool sql_deliverer::continue_parking(event_rows& due, std::size_t& limit,
                                     claim_progress& progress) const {
  bool more = false;
  std::set<std::int64_t> blocking;
  for (const auto& row : due) {
    if (row.state != row_state::blocking) continue;
    const auto result =
        park_followers_of(progress.session, row, limit, progress.lane.now_ms, progress.changes);
    limit -= result.parked;
    more = more || result.more;
    blocking.insert(row.seq);
  }
  std::erase_if(due, [&](const event_row& row) {
    return blocking.contains(row.seq) || blocking.contains(row.head);
  });
  return more;
}

/// Demotes followers if this transaction has locked their heads, so that no claim reads them again.
/// Postpones the others. `heads` are locked.
void sql_deliverer::demote_or_postpone(const lane_session& session,
                                       const head_by_follower& followers, const event_rows& heads,
                                       std::int64_t now_ms) const {
  if (followers.empty()) return;
  const auto locked = lock_heads(session, heads, followers);
  std::vector<std::int64_t> demoted;
  std::vector<std::int64_t> postponed;
  for (const auto& [seq, head] : followers)
    (locked.contains(head) ? demoted : postponed).push_back(seq);
  demote(session, demoted);
  postpone(session, postponed, now_ms);
}

/// Galera: a worker on another node may remove the head without seeing the follower, which then
/// nothing would promote. A follower is therefore demoted only with a change of its head, which
/// makes one of the two transactions fail. The others are postponed: such a follower becomes due
/// again after about as long as it has waited.
void sql_deliverer::demote_or_postpone_after_claim(const head_by_follower& followers,
                                                   const claim_progress& progress) const {
  std::vector<std::int64_t> demoted;
  std::vector<std::int64_t> postponed;
  for (const auto& [seq, head] : followers)
    (progress.leased_heads.contains(head) ? demoted : postponed).push_back(seq);
  demote(progress.session, demoted);
  postpone(progress.session, postponed, progress.lane.now_ms);
}

void sql_deliverer::demote(const lane_session& session,
                           std::span<const std::int64_t> followers) const {
  if (!followers.empty()) statements_.demote.execute(session, {{"seqs", json_column(followers)}});
}

/// Another transaction has locked the heads of these followers. It may be about to promote them, or
/// not, so they are read again later: the longer a follower has waited, the later, since the
/// transaction of a handler may take long. A promotion sets DUE back to the event's own time.
void sql_deliverer::postpone(const lane_session& session, std::span<const std::int64_t> followers,
                             std::int64_t now_ms) const {
  if (followers.empty()) return;
  const auto longest =
      locks_ == lock_scope::server ? max_postponement : max_postponement_in_cluster;
  json_rows postponed;
  for (const auto& row : tables_.events.by_seq(session, followers, row_lock::none)) {
    if (row.is_head()) continue;  // promoted meanwhile
    postponed.add(row.seq, now_ms + std::clamp<std::int64_t>(now_ms - row.state_time,
                                                             min_postponement, longest));
  }
  set_due(session, postponed);
}

/// Returns the heads that this transaction has locked: `heads`, and those of the followers that no
/// other transaction holds.
std::set<std::int64_t> sql_deliverer::lock_heads(const lane_session& session,
                                                 const event_rows& heads,
                                                 const head_by_follower& followers) const {
  std::set<std::int64_t> locked;
  for (const auto& row : heads) locked.insert(row.seq);
  std::set<std::int64_t> others;
  for (const auto& [seq, head] : followers) {
    if (!locked.contains(head)) others.insert(head);
  }
  if (others.empty()) return locked;
  for (const auto seq :
       integers(statements_.lock_heads.query(session, {{"seqs", json_column(others)}})))
    locked.insert(seq);
  return locked;
}

void sql_deliverer::set_due(const lane_session& session, const json_rows& rows) const {
  if (!rows.empty()) statements_.set_due.execute(session, {{"rows", rows.text()}});
}

std::optional<std::chrono::milliseconds> sql_deliverer::time_to_next_due(
    const lane_session& session, std::int64_t now_ms) const {
  const auto due = first_integer(statements_.first_due.query(session));
  if (!due) return std::nullopt;
  return std::chrono::milliseconds(*due <= now_ms ? 0 : *due - now_ms);
}

// ---- extend ----

void sql_deliverer::lease_rows::add(event_rows rows, bool are_locked) {
  for (auto& row : rows) {
    if (are_locked) locked.insert(row.seq);
    auto name = lease_name(row.key, row.id);
    by_key_or_id.emplace(std::move(name), std::move(row));
  }
}

template <class Read>
void sql_deliverer::lease_rows::lock_or_read(std::size_t expected, const Read& read) {
  const auto before = by_key_or_id.size();
  add(read(row_lock::skip), true);
  if (by_key_or_id.size() - before < expected) add(read(row_lock::none), false);
}

sql_deliverer::lease_rows sql_deliverer::lock_or_read_lease_rows(
    const lane_session& session, std::span<const settlement> events) const {
  std::set<std::string_view> keys;
  std::set<std::string_view> ids;
  for (const auto& event : events) {
    if (event.key.empty()) ids.insert(event.id);
    else keys.insert(event.key);
  }
  lease_rows leases;
  if (!keys.empty()) {
    const std::vector<std::string_view> names(keys.begin(), keys.end());
    const auto seqs = tables_.events.heads(session, names);
    if (!seqs.empty()) {
      leases.lock_or_read(
          seqs.size(), [&](row_lock lock) { return tables_.events.by_seq(session, seqs, lock); });
    }
  }
  if (!ids.empty()) {
    leases.lock_or_read(ids.size(), [&, list = json_column(ids)](row_lock lock) {
      return tables_.events.by_id(session, list, lock);
    });
  }
  return leases;
}

std::vector<bool> sql_deliverer::extend(const lane_session& session, fence token,
                                        std::span<const settlement> events,
                                        std::chrono::milliseconds lease) const {
  const auto due = tables_.lanes.read(session).now_ms + lease.count();
  const auto leases = lock_or_read_lease_rows(session, events);
  std::vector<bool> held;
  json_rows extended;
  std::set<std::int64_t> extended_seqs;
  for (const auto& event : events) {
    const auto match = leases.by_key_or_id.find(lease_name(event.key, event.id));
    if (token == 0 || match == leases.by_key_or_id.end()) {
      held.push_back(false);
      continue;
    }
    const auto& row = match->second;
    held.push_back(row.token == token && row.state == row_state::queued && row.key == event.key);
    // A handler may hold its event in a long transaction of its own (effect_once). Such a row is
    // not waited for: while it is locked, it cannot be claimed, so its lease need not be extended.
    if (held.back() && leases.locked.contains(row.seq) && extended_seqs.insert(row.seq).second)
      extended.add(row.seq, due);
  }
  set_due(session, extended);
  return held;
}

// ---- settle ----

sql_deliverer::settle_result sql_deliverer::settle(
    const lane_session& session, fence token, std::span<const settlement> settlements,
    const std::optional<run_request>& next_run_request, const publish_terms& terms) const {
  auto lane = tables_.lanes.read(session, lane_access::settling);
  json_rows ids;
  for (const auto& settlement : settlements) ids.add(settlement.id);
  settle_batch batch(tables_.events.lock_by_id(session, ids.text()), token, lane.now_ms);
  for (const auto& settlement : settlements) batch.apply(settlement);
  write_changes(session, batch, lane, terms);

  settle_result result;
  auto& next_claim = result.answer.next;
  bool caller_got_promotions = false;
  if (next_run_request) {
    next_claim = claim_next(session, *next_run_request, lane, batch);
    caller_got_promotions =
        next_claim.status == claim_status::some || next_claim.status == claim_status::empty;
  } else {
    next_claim.lane = session.lane;
    next_claim.now = timestamp(std::chrono::milliseconds(lane.now_ms));
  }
  // A caller that may claim the next runs gets those of the keys that were promoted. It does not
  // know of events that are to be retried.
  result.must_wake_workers =
      !batch.changed.empty() || (!caller_got_promotions && !batch.promotions.empty());
  tables_.counters.add(session, batch.changes);
  tables_.counters.compact_sometimes(session, delivery_compaction_interval);
  result.answer.done = std::move(batch.done);
  result.answer.keys_to_park = std::move(batch.keys_to_park);
  return result;
}

/// Claims the next runs of the keys whose run the batch has acknowledged to its end.
claimed sql_deliverer::claim_next(const lane_session& session, const run_request& request,
                                  lane_row& lane, settle_batch& batch) const {
  claimed answer{.lane = session.lane, .now = timestamp(std::chrono::milliseconds(lane.now_ms))};
  if (const auto refusal = claim_refusal(lane, request.owner)) {
    answer.status = *refusal;
  } else {
    claim_progress progress{.session = session,
                            .lane = lane,
                            .max_run_length = request.run,
                            .lease = request.lease,
                            .remaining_bytes = request.bytes,
                            .answer = answer,
                            .changes = batch.changes};
    claim_next_runs(batch.completed_keys, progress);
    answer.status = claim_status_of(answer);
  }
  // A caller that got events comes again soon.
  answer.next =
      answer.events.empty() ? time_to_next_due(session, lane.now_ms) : std::chrono::milliseconds(0);
  return answer;
}

void sql_deliverer::write_changes(const lane_session& session, const settle_batch& batch,
                                  const lane_row& lane, const publish_terms& terms) const {
  const auto now_ms = lane.now_ms;
  const bool has_effect_marks = lane.has_effect_marks;
  const auto& delivered = batch.delivered_seqs;
  if (!delivered.empty()) {
    if (terms.dedup_window.count() > 0) {
      statements_.mark_delivered.execute(session,
                                         {{"seqs", json_column(delivered)}, {"now", now_ms}});
    } else {
      tables_.events.erase(session, delivered);
    }
    tables_.events.erase_entries(session, batch.delivered_ids);
    if (has_effect_marks)
      tables_.remembered.start_effect_windows(session, batch.delivered_ids, now_ms);
  }
  tables_.events.update(session, batch.changed);
  tables_.events.promote(session, batch.promotions, now_ms);
  if (!delivered.empty()) tables_.remembered.trim(session, now_ms, terms, delivered.size());
}

/// Claims the next run of each key, in the order of `keys`.
void sql_deliverer::claim_next_runs(std::span<const std::string> keys,
                                    claim_progress& progress) const {
  std::map<std::string_view, std::size_t> order;
  std::vector<std::string_view> names;
  for (const auto& key : keys) {
    if (order.emplace(key, order.size()).second) names.push_back(key);
  }
  if (names.empty()) return;
  const auto seqs = tables_.events.heads(progress.session, names);
  if (seqs.empty()) return;
  auto heads = tables_.events.by_seq(progress.session, seqs, row_lock::wait);
  const auto now_ms = progress.lane.now_ms;
  std::erase_if(heads, [&](const event_row& row) {
    return row.state != row_state::queued || row.token != 0 ||
           row.due.value_or(now_ms + 1) > now_ms || !row.is_head();
  });
  std::ranges::sort(heads, {}, [&](const event_row& row) { return order[row.key]; });
  run_claimer_.claim(std::move(heads), progress);
}

bool sql_deliverer::park_followers(const lane_session& session, std::string_view key,
                                   std::size_t limit) const {
  const auto now_ms = tables_.lanes.read(session).now_ms;
  const auto heads = tables_.events.heads(session, std::span(&key, 1));
  if (heads.empty()) return false;
  auto rows = tables_.events.by_seq(session, heads, row_lock::wait);
  if (rows.empty()) return false;
  auto& head = rows.front();
  // A head that was parked with park_policy::block stays: this call came late.
  if (head.state != row_state::blocking || head.parked_by == 0 || !head.is_head()) return false;
  lane_counters changes;
  const auto result = park_followers_of(session, std::move(head), limit, now_ms, changes);
  tables_.counters.add(session, changes);
  return result.more && result.parked > 0;
}

/// Parks up to `limit` followers of a blocking head, which this transaction has locked. If none
/// remains, parks the head as well, and the key is free.
sql_deliverer::parking_result sql_deliverer::park_followers_of(const lane_session& session,
                                                               event_row head, std::size_t limit,
                                                               std::int64_t now_ms,
                                                               lane_counters& changes) const {
  // Skips rows that other transactions hold: two that wait here would wait for each other.
  auto followers = read_event_rows(statements_.lock_followers.query(
      session, {{"key", head.key}, {"seq", head.seq}, {"limit", limit + 1}}));
  bool more = followers.size() > limit;
  if (more) followers.pop_back();
  for (auto& row : followers) {
    park_row(row);
    row.state_time = now_ms;
    row.last_error = "parked behind " + head.id;
    ++changes.parkings;
  }
  tables_.events.update(session, followers);
  if (!more) {
    const auto rows = tables_.events.by_seq(session, std::span(&head.seq, 1), row_lock::none);
    more = !rows.empty() && rows.front().next != 0;
  }
  if (!more) {
    // The settlement that parked the head has set its time and error, and has counted it.
    park_row(head);
    tables_.events.update(session, std::span(&head, 1));
  }
  return {.parked = followers.size(), .more = more};
}

// ---- effects ----

commit_status sql_deliverer::apply_once(const lane_session& session, fence token,
                                        std::string_view id, std::string_view key,
                                        const publish_terms& terms) const {
  if (terms.dedup_window.count() == 0)
    throw error(errc::invalid_argument, "effect_once requires dedup_window > 0");
  const auto now_ms = tables_.lanes.now_ms(session);
  // Locked until the caller's transaction ends, so no claim takes the event meanwhile. Not on
  // Galera: a claim on another node would not see the lock, and an extension of the lease there
  // would end the caller's transaction.
  const auto lock = locks_ == lock_scope::server ? row_lock::wait : row_lock::none;
  event_rows rows;
  if (key.empty()) {
    rows = tables_.events.by_id(session, json_column(std::span(&id, 1)), lock);
  } else {
    const auto seqs = tables_.events.heads(session, std::span(&key, 1));
    if (!seqs.empty()) rows = tables_.events.by_seq(session, seqs, lock);
  }
  const auto mark = effect_mark(id);
  const auto [applied_at, event_exists] = tables_.remembered.find_effect(session, id);
  const auto expired_at = now_ms - terms.dedup_window.count();
  // The event may be delivered again as long as it exists. Its settlement starts the window.
  const auto since = event_exists ? with_event : now_ms;
  // Before the lease: an event that is delivered again, because it was not settled in time, may
  // have lost its lease after its effect was applied. The caller must not repeat the effect.
  if (applied_at && *applied_at > expired_at) return commit_status::applied;
  // Token 0: the caller has no claim.
  const bool held = !rows.empty() && rows.front().token == token &&
                    rows.front().state == row_state::queued && rows.front().key == key;
  if (token != 0 && !held) return commit_status::stale;
  // Of two transactions that get here with the same id, one waits for the other, and then finds its
  // mark. The mark may also have been trimmed meanwhile; then it is inserted again.
  if (applied_at && tables_.remembered.renew(session, mark, since, expired_at))
    return commit_status::done;
  return tables_.remembered.remember_new(session, mark, since) ? commit_status::done
                                                               : commit_status::applied;
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
