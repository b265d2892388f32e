#include "outbox/sql/run_claimer.hpp"

#include "outbox/entry.hpp"

#include <algorithm>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::outbox {

namespace {

std::string_view queue_of(const event_row& row) {
  return row.queue ? std::string_view(*row.queue) : std::string_view();
}

}  // namespace

run_claimer::statements run_claimer::make_statements(const statement_builder& builder) {
  using enum sql::type;
  // A claim does not need the head and the next row of a follower: both are 0.
  const std::string columns = "{stored_event}, 0, 0 ";
  // A damaged number of deliveries counts as 0, as in read_event_row.
  const std::string deliveries =
      "CASE WHEN o.DELIVERIES BETWEEN 0 AND 2147483647 THEN o.DELIVERIES ELSE 0 END + 1";
  const auto lease = [&](const row_list& list, std::string_view run) {
    return builder.statement(builder.update_events(
        list, {{"TOKEN", ":token"}, {"RUN", run}, {"DUE", ":due"}, {"DELIVERIES", deliveries}}));
  };
  statements result{.followers = builder.statement(
                        "SELECT " + columns +
                            "FROM {events} o {key_index} WHERE o.LANE = :lane AND "
                            "o.QUEUE = :key/text AND o.SEQ > :seq ORDER BY o.SEQ LIMIT :limit",
                        event_types()),
                    .lease_events = lease({"seqs", {{"seq"}}}, "1"),
                    .lease_runs = lease({"rows", {{"seq"}, {"run"}}}, "g.run"),
                    .followers_of_many = {}};
  if (builder.postgres()) {
    result.followers_of_many = builder.statement(
        "SELECT " + columns +
            "FROM unnest(:keys/text::text[], :seqs/text::bigint[]) AS g(k, seq) CROSS JOIN LATERAL "
            "(SELECT e.* FROM {events} e WHERE e.LANE = :lane AND e.QUEUE = g.k AND e.SEQ > g.seq "
            "ORDER BY e.SEQ LIMIT :limit) o ORDER BY o.SEQ",
        event_types());
  }
  return result;
}

run_claimer::run_claimer(const statement_builder& builder, const outbox_tables& tables)
    : tables_(tables), has_one_writer_(builder.sqlite()), statements_(make_statements(builder)) {}

void run_claimer::claim(event_rows heads, claim_progress& progress) const {
  auto& answer = progress.answer;
  // All events of a claim share one token. Keys with a larger one, because another claim came
  // between two rounds or the clock of the database was set back, wait for the next claim. So do
  // events that were published since: the last token of their key may be gone with its events.
  if (answer.fence != 0) {
    std::erase_if(heads, [&](const event_row& row) {
      const bool is_newer = !has_one_writer_ && row.created >= answer.fence / 1000;
      return row.last_token >= answer.fence || is_newer;
    });
  }
  const auto runs = collect_runs(std::move(heads), progress);
  if (runs.empty()) return;

  std::vector<std::string> ids;
  fence last_token = 0;
  for (const auto& run : runs) {
    last_token = std::max(last_token, run.head.last_token);
    ids.push_back(run.head.id);
    for (const auto& follower : run.followers) ids.push_back(follower.id);
  }
  const auto texts = tables_.events.entries(progress.session, ids);
  const auto& entries = texts.by_id;
  // A time that was read after the heads were locked. Another claim may have settled the events
  // before them after the lane was read.
  progress.lane.now_us = std::max(progress.lane.now_us, texts.now_us);
  if (answer.fence <= last_token)
    answer.fence = tables_.lanes.new_token(progress.session, progress.lane,
                                           std::max(last_token, answer.fence));

  json_rows single_events;
  json_rows event_runs;
  std::vector<std::int64_t> orphans;
  std::vector<std::string> orphan_ids;
  promotions_by_key orphaned_keys;
  for (const auto& [head, followers] : runs) {
    if (!hand_out(head, true, entries, progress)) {
      // The entry is missing: it was deleted by hand.
      ++progress.changes.orphans;
      --progress.changes.events;
      progress.changes.bytes -= head.bytes;
      orphans.push_back(head.seq);
      orphan_ids.push_back(head.id);
      if (head.queue) orphaned_keys.emplace(*head.queue, promotion{.token = head.last_token});
      continue;
    }
    std::int64_t run_length = 1;
    for (const auto& follower : followers) {
      if (!hand_out(follower, false, entries, progress)) break;
      ++run_length;
    }
    progress.leased_heads.insert(head.seq);
    if (run_length == 1) single_events.add(head.seq);
    else event_runs.add(head.seq, run_length);
  }
  const auto lease_end = progress.lane.now_ms + progress.lease.count();
  if (!single_events.empty())
    statements_.lease_events.execute(
        progress.session,
        {{"seqs", single_events.text()}, {"token", answer.fence}, {"due", lease_end}});
  if (!event_runs.empty())
    statements_.lease_runs.execute(
        progress.session,
        {{"rows", event_runs.text()}, {"token", answer.fence}, {"due", lease_end}});
  if (orphans.empty()) return;
  tables_.events.erase(progress.session, orphans);
  tables_.remembered.start_effect_windows(progress.session, orphan_ids, progress.lane.now_ms);
  tables_.events.promote(progress.session, orphaned_keys, progress.lane.now_ms);
}

std::vector<run_claimer::event_run> run_claimer::collect_runs(event_rows heads,
                                                              claim_progress& progress) const {
  std::vector<event_run> runs;
  read_ahead followers;
  for (std::size_t i = 0; i < heads.size(); ++i) {
    if (progress.remaining_events == 0) break;
    const auto bytes = static_cast<std::size_t>(heads[i].bytes);
    const bool is_first = progress.answer.events.empty() && runs.empty();
    if (!is_first && bytes > progress.remaining_bytes) break;
    progress.remaining_bytes -= std::min(progress.remaining_bytes, bytes);
    --progress.remaining_events;
    auto rows = followers_of(std::span(heads).subspan(i), followers, progress);
    collect_followers(runs.emplace_back(event_run{.head = std::move(heads[i])}), std::move(rows),
                      progress);
  }
  return runs;
}

/// Returns the followers of the first of `heads` that the claim may hand out with it. On PostgreSQL
/// one statement reads those of further heads as well, as many as the claim may need.
event_rows run_claimer::followers_of(std::span<const event_row> heads, read_ahead& followers,
                                     const claim_progress& progress) const {
  // An event that was delivered before comes alone, so that one that kills its handler is found.
  const auto comes_alone = [&](const event_row& head) {
    return !head.queue || head.deliveries != 0 || progress.max_run_length <= 1 || head.next == 0;
  };
  const auto& first = heads.front();
  if (comes_alone(first) || progress.remaining_events == 0) return {};
  const auto limit = std::min(progress.max_run_length - 1, progress.remaining_events);
  if (!statements_.followers_of_many) {
    return read_event_rows(statements_.followers.query(
        progress.session, {{"key", queue_of(first)}, {"seq", first.seq}, {"limit", limit}}));
  }
  if (!followers.contains(first.seq)) {
    std::map<std::string_view, std::int64_t> head_of_key;
    array_text keys;
    array_text seqs;
    for (const auto& head : heads) {
      if (comes_alone(head)) continue;
      if (head_of_key.size() * limit >= progress.remaining_events && !head_of_key.empty()) break;
      head_of_key.emplace(queue_of(head), head.seq);
      followers.try_emplace(head.seq);
      keys.add(queue_of(head));
      seqs.add(head.seq);
    }
    for (auto& row : read_event_rows(statements_.followers_of_many->query(
             progress.session, {{"keys", keys.text()}, {"seqs", seqs.text()}, {"limit", limit}}))) {
      const auto head = head_of_key.find(row.queue.value_or(std::string()));
      if (head != head_of_key.end()) followers[head->second].push_back(std::move(row));
    }
  }
  return std::move(followers[first.seq]);
}

void run_claimer::collect_followers(event_run& run, event_rows followers,
                                    claim_progress& progress) const {
  for (auto& follower : followers) {
    const auto bytes = static_cast<std::size_t>(follower.bytes);
    if (progress.remaining_events == 0 || follower.is_delayed(progress.lane.now_ms) ||
        bytes > progress.remaining_bytes)
      return;
    progress.remaining_bytes -= bytes;
    --progress.remaining_events;
    run.followers.push_back(std::move(follower));
  }
}

/// Adds the event to the answer. Returns false if the event has no entry, or is a follower whose
/// entry cannot be read: it is parked when it becomes the head, and until then no lease waits for
/// it.
bool run_claimer::hand_out(const event_row& row, bool is_head, const entry_map& entries,
                           claim_progress& progress) {
  const auto entry = entries.find(row.id);
  if (entry == entries.end()) return false;
  auto content = read_or_explain(entry->second, row.id, row.key);
  if (!is_head && !content.problem.empty()) return false;
  auto event = claimed_event_of(row, progress.session.lane);
  event.event = std::move(content.event);
  if (!content.problem.empty()) event.last_error = std::move(content.problem);
  ++event.deliveries;
  progress.answer.events.push_back(std::move(event));
  ++progress.changes.claims;
  return true;
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
