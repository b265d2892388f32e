#include <holdfast/error.hpp>

#include "outbox/checks.hpp"
#include "outbox/sql_backend.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace HOLDFAST_NAMESPACE::outboxes {

void sql_backend::advance(join::transaction& in, std::size_t lane, const std::map<std::string, promotion, std::less<>>& keys) const {
  if (keys.empty()) return;
  json_rows names;
  for (const auto& [key, what] : keys) names.row().add(key).add(static_cast<std::int64_t>(lane));
  const auto list = names.text();
  // Asked now, when the rows before are locked and gone: whoever was demoted meanwhile is seen.
  const auto found = ask(in, say_.heads, {std::string_view(list)});
  json_rows rows;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto seq = number_in(found, i, 1);
    const auto what = keys.find(text_in(found, i, 0));
    if (seq == 0 || what == keys.end()) continue;
    const auto& [token, run, due] = what->second;
    rows.row().add(seq).add(run > 0 ? token : 0).add(run).add(run > 0 ? 1 : 0);
    rows.add(run > 0 ? due : std::nullopt);
  }
  if (rows.empty()) return;
  const auto promoted = rows.text();
  tell(in, say_.promote, {std::string_view(promoted)});
}

void sql_backend::place_rows(join::transaction& in, std::span<const sql_row> rows) const {
  if (rows.empty()) return;
  json_rows list;
  for (const auto& one : rows) {
    list.row().add(one.seq).add(static_cast<std::int64_t>(one.place));
    if (one.queue) list.add(*one.queue);
    else list.add_null();
    list.add(one.due).add(one.at).add(one.token).add(one.run).add(one.deliveries).add(one.attempts).add(one.replays).add(one.last_error);
  }
  const auto text = list.text();
  tell(in, say_.place_events, {std::string_view(text)});
}

/// How many it forgot.
std::uint64_t sql_backend::forget_oldest(join::transaction& in, std::int64_t lane, std::int64_t until, std::int64_t most) const {
  if (!say_.trim.text.empty()) return tell(in, say_.trim, {lane, until, most});
  const auto found = ask(in, say_.pick_oldest, {lane, until, most});
  if (found.empty()) return 0;
  json_rows rows;
  for (std::size_t i = 0; i < found.size(); ++i) rows.row().add(number_in(found, i, 0));
  const auto list = rows.text();
  return tell(in, say_.erase_events, {std::string_view(list)});
}

void sql_backend::trim(join::transaction& in, std::size_t lane, std::int64_t now, const publish_terms& terms, std::size_t more) const {
  const auto number = static_cast<std::int64_t>(lane);
  const auto most = static_cast<std::int64_t>(most_in_a_call);
  (void)forget_oldest(in, number, now - terms.dedup_window.count(), most);
  // Counting them takes a while: done when a sixteenth may have been added since the last time, and no more than a few steps forget.
  auto& since = remembered_since_trim_.at(lane);
  since += more;
  if (since <= std::min(terms.dedup_limit / 16, 8 * most_in_a_call)) return;
  since = 0;
  const auto last = ask(in, say_.surplus, {number, static_cast<std::int64_t>(terms.dedup_limit)});
  if (last.empty()) return;
  // Others may add to the lane, too: somewhat more than was added here is forgotten, until it is enough. Never one of the newest.
  for (int step = 0; step < 16; ++step) {
    if (forget_oldest(in, number, number_in(last, 0, 0) - 1, most) < most_in_a_call) return;
  }
}

settled sql_backend::settle(std::size_t lane, fence token, std::span<const settlement> what, const std::optional<run_request>& next,
                            const publish_terms& terms) {
  bool woken = false;
  auto result = in_transaction([&](join::transaction& in) {
    woken = false;
    const auto number = static_cast<std::int64_t>(lane);
    auto now = look_at(in, lane);
    settled made;
    made.next.lane = lane;
    made.next.now = timestamp(std::chrono::milliseconds(now.now));
    json_rows ids;
    for (const auto& one : what) ids.row().add(one.id);
    auto rows = lock_rows(in, lane, ids);
    // Where each key stands: its first event, and what covers it.
    struct standing {
      std::int64_t head = 0, token = 0, run = 0, due = 0;
    };
    std::map<std::string, standing, std::less<>> keys;
    for (const auto& [id, one] : rows) {
      if (one.queue && one.head == one.seq && one.place == place::queued)
        keys.emplace(*one.queue, standing{.head = one.seq, .token = one.token, .run = one.run, .due = one.due.value_or(now.now)});
    }
    tally_sheet counts;
    std::vector<sql_row> changed;
    json_rows finished;
    json_rows finished_ids;
    std::size_t acked = 0;
    std::map<std::string, promotion, std::less<>> moved;  // keys whose first event left
    std::vector<std::string> ended;                       // keys whose run was acknowledged whole
    for (const auto& one : what) {
      const auto found = rows.find(one.id);
      const bool known = found != rows.end() && found->second.key == one.key && found->second.place == place::queued;
      standing alone;
      standing* at = &alone;
      if (known && !one.key.empty()) {
        const auto key = keys.find(one.key);
        at = key != keys.end() && key->second.head == found->second.seq ? &key->second : nullptr;
      } else if (known) {
        alone = {
            .head = found->second.seq, .token = found->second.token, .run = found->second.run, .due = found->second.due.value_or(now.now)};
      }
      const bool ours = known && at != nullptr && token != 0 && at->token == token;
      made.done.push_back(ours);
      if (!ours) {
        ++counts.stale;
        // The answer was lost, and with it who is to be parked.
        const bool parking = found != rows.end() && found->second.place == place::blocking && found->second.key == one.key && token != 0 &&
                             found->second.run == token;
        if (parking && one.what == settlement::kind::park && one.policy == park_policy::park) made.more.push_back(one.key);
        continue;
      }
      auto row = std::move(found->second);
      rows.erase(found);
      // One of a run counts as handed out when it comes to the front.
      if (!one.key.empty() && moved.contains(one.key)) ++row.deliveries;
      const auto rest = at->run > 0 ? at->run - 1 : 0;
      const auto leave = [&] {
        if (one.key.empty()) return;
        moved[one.key] = promotion{.token = token, .run = rest, .due = at->due};
        if (row.next == 0) {
          keys.erase(one.key);
        } else {
          *at = standing{.head = row.next, .token = rest > 0 ? token : 0, .run = rest, .due = at->due};
        }
      };
      if (one.what == settlement::kind::ack) {
        ++counts.acked;
        --counts.events;
        counts.bytes -= row.bytes;
        ++acked;
        finished.row().add(row.seq).add(now.now);
        finished_ids.row().add(row.id);
        if (rest == 0 && row.next != 0) ended.push_back(one.key);
        leave();
        continue;
      }
      row.token = 0;
      row.run = 0;
      if (!one.key.empty()) {
        at->token = 0;
        at->run = 0;
        moved.erase(one.key);  // it stands in front itself
      }
      if (one.what == settlement::kind::release) {
        row.deliveries = std::max<std::int64_t>(0, row.deliveries - 1);
        row.due = row.at = now.now;
        changed.push_back(std::move(row));
        continue;
      }
      if (one.counts) ++row.attempts;
      else if (one.what == settlement::kind::retry && row.deliveries > 0) --row.deliveries;
      row.last_error = one.error;
      if (one.what == settlement::kind::retry) {
        ++counts.retried;
        row.due = row.at = now.now + one.delay.count();
        changed.push_back(std::move(row));
        continue;
      }
      ++counts.parkings;
      row.due.reset();
      row.at = now.now;
      row.place = place::parked;
      if (!one.key.empty()) {
        if (one.policy == park_policy::skip || (one.policy == park_policy::park && row.next == 0)) {
          row.queue.reset();
          leave();
        } else {
          row.place = place::blocking;
          keys.erase(one.key);
          if (one.policy == park_policy::park) {
            row.run = token;
            row.due = now.now;
            made.more.push_back(one.key);
            rows.emplace(one.id, row);  // said twice, it is answered twice
          }
        }
      }
      changed.push_back(std::move(row));
    }
    if (!finished.empty()) {
      const auto rows_done = finished.text();
      const auto entries_done = finished_ids.text();
      tell(in, terms.dedup_window.count() > 0 ? say_.finish : say_.erase_events, {std::string_view(rows_done)});
      tell(in, say_.erase_entries, {std::string_view(entries_done)});
    }
    place_rows(in, changed);
    advance(in, lane, moved);
    if (acked > 0) trim(in, lane, now.now, terms, acked);
    if (next) {
      if (!next->owner.empty() && !now.held_by(next->owner)) {
        made.next.status = claim_status::fenced;
      } else if (now.paused) {
        made.next.status = claim_status::paused;
      } else {
        json_rows fresh;
        std::map<std::string, std::size_t, std::less<>> turn;
        for (const auto& key : ended) {
          if (turn.emplace(key, turn.size()).second) fresh.row().add(key).add(number);
        }
        if (!fresh.empty()) {
          const auto asked = fresh.text();
          const auto found = ask(in, say_.heads, {std::string_view(asked)});
          json_rows seqs;
          for (std::size_t i = 0; i < found.size(); ++i) {
            if (const auto seq = number_in(found, i, 1); seq != 0) seqs.row().add(seq);
          }
          if (!seqs.empty()) {
            const auto heads = seqs.text();
            auto ready = rows_of(in, say_.by_seq, {std::string_view(heads)});
            std::erase_if(ready, [&](const sql_row& one) {
              return one.place != place::queued || one.token != 0 || one.due.value_or(now.now + 1) > now.now || !one.first();
            });
            std::sort(ready.begin(), ready.end(), [&](const sql_row& a, const sql_row& b) { return turn[a.key] < turn[b.key]; });
            room left{.events = most_in_a_call, .bytes = next->bytes};
            take(in, lane, now, std::move(ready), next->run, next->lease, left, made.next, counts);
          }
        }
        made.next.status = made.next.events.empty() ? claim_status::empty : claim_status::some;
      }
      made.next.next = next_due(in, lane, now.now);
    }
    // Whoever asked for the next runs has those of the keys that moved on; what is tried again has a time that nobody knows of.
    woken = !changed.empty() || (!next && !moved.empty());
    write_tally(in, lane, counts);
    if (++operations_ % 64 == 0) fold(in, lane);
    return made;
  });
  // In this process somebody may sleep until a time that is too late now.
  if (woken) wake_.signal(lane);
  return result;
}

std::size_t sql_backend::park_followers(std::size_t lane, std::string_view key, std::size_t most) {
  return in_transaction([&](join::transaction& in) -> std::size_t {
    const auto now = look_at(in, lane);
    json_rows names;
    names.row().add(key).add(static_cast<std::int64_t>(lane));
    const auto list = names.text();
    const auto first = number_in(ask(in, say_.heads, {std::string_view(list)}), 0, 1);
    if (first == 0) return 0;
    json_rows seqs;
    seqs.row().add(first);
    const auto heads = seqs.text();
    auto found = rows_of(in, say_.by_seq, {std::string_view(heads)});
    // One that was parked to block its key stays in front: whoever was told to go on came late.
    if (found.empty() || found[0].place != place::blocking || found[0].run == 0 || !found[0].first()) return 0;
    tally_sheet counts;
    const auto [parked, more] = park_behind(in, lane, std::move(found[0]), most, now.now, counts);
    write_tally(in, lane, counts);
    // Where others hold all that is left, whoever claims next goes on.
    return more && parked > 0 ? 1 : 0;
  });
}

std::pair<std::size_t, bool> sql_backend::park_behind(join::transaction& in, std::size_t lane, sql_row head, std::size_t most,
                                                      std::int64_t now, tally_sheet& counts) const {
  const std::string key = head.key;
  // Nobody waits here for a row that somebody else has: two who do would wait for each other.
  auto behind = rows_of(in, say_.followers_free,
                        {static_cast<std::int64_t>(lane), std::string_view(key), head.seq, static_cast<std::int64_t>(most) + 1});
  bool more = behind.size() > most;
  if (more) behind.pop_back();
  for (auto& one : behind) {
    one.place = place::parked;
    one.queue.reset();
    one.due.reset();
    one.at = now;
    one.last_error = "parked behind " + head.id;
    ++counts.parkings;
  }
  place_rows(in, behind);
  if (!more) {
    json_rows seqs;
    seqs.row().add(head.seq);
    const auto list = seqs.text();
    const auto seen = rows_of(in, say_.by_seq_seen, {std::string_view(list)});
    more = !seen.empty() && seen[0].next != 0;
  }
  if (!more) {
    head.place = place::parked;
    head.queue.reset();
    head.due.reset();
    place_rows(in, {&head, 1});
  }
  return {behind.size(), more};
}

}  // namespace HOLDFAST_NAMESPACE::outboxes
