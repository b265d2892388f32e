#include <holdfast/error.hpp>

#include "outbox/checks.hpp"
#include "outbox/entry.hpp"
#include "outbox/sql_backend.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace HOLDFAST_NAMESPACE::outboxes {

namespace {

/// A claim that meets nothing but followers to be demoted goes on for so many rounds; then it is the turn of others.
constexpr int most_rounds = 20;

/// When it meets a follower again that it could not demote, in milliseconds.
constexpr std::int64_t soonest = 1, latest = 1000;

}  // namespace

std::vector<sql_row> sql_backend::rows_of(join::transaction& in, const sql::statement& s,
                                          std::initializer_list<sql::parameter> parameters) const {
  const auto found = ask(in, s, parameters);
  std::vector<sql_row> rows;
  rows.reserve(found.size());
  for (std::size_t i = 0; i < found.size(); ++i) rows.push_back(read_row(found, i));
  return rows;
}

std::map<std::string, sql_row, std::less<>> sql_backend::lock_rows(join::transaction& in, std::size_t lane, const json_rows& ids) const {
  const auto list = ids.text();
  std::map<std::string, sql_row, std::less<>> rows;
  for (auto& one : rows_of(in, say_.by_id, {std::string_view(list), static_cast<std::int64_t>(lane)})) {
    auto id = one.id;
    rows.emplace(std::move(id), std::move(one));
  }
  return rows;
}

std::map<std::string, std::string, std::less<>> sql_backend::entries_of(join::transaction& in, std::span<const std::string> ids) const {
  std::map<std::string, std::string, std::less<>> result;
  if (ids.empty()) return result;
  json_rows rows;
  for (const auto& id : ids) rows.row().add(id);
  const auto list = rows.text();
  const auto found = ask(in, say_.entries_of, {std::string_view(list)});
  for (std::size_t i = 0; i < found.size(); ++i) result.emplace(text_in(found, i, 0), text_in(found, i, 1));
  return result;
}

/// Larger than that of the last claim of each of these events. SQLite, with one writer, keeps the last one of the lane; elsewhere nobody waits
/// for a row that all of them write, and the clock makes the difference.
fence sql_backend::new_token(join::transaction& in, std::size_t lane, lane_row& from, fence last) const {
  const fence token = std::max({from.token + 1, from.now_us, last + 1});
  if (say_.dialect == sql::dialect_id::sqlite) {
    from.token = token;
    write_lane(in, lane, from);
  }
  return token;
}

std::optional<std::chrono::milliseconds> sql_backend::next_due(join::transaction& in, std::size_t lane, std::int64_t now) const {
  const auto first = ask(in, say_.first_due, {static_cast<std::int64_t>(lane)});
  if (first.empty() || !std::holds_alternative<std::int64_t>(first.at(0, 0))) return std::nullopt;
  return std::chrono::milliseconds(std::max<std::int64_t>(number_in(first, 0, 0) - now, 0));
}

/// These first events of their keys, and those without one, are handed out; each with its run.
void sql_backend::take(join::transaction& in, std::size_t lane, lane_row& now, std::vector<sql_row> heads, std::size_t run,
                       std::chrono::milliseconds lease, room& left, claimed& into, tally_sheet& counts) const {
  // A claim has one token. What has a larger one already, since the clock of the database went back, is left for the next.
  if (into.fence != 0) std::erase_if(heads, [&](const sql_row& one) { return one.token >= into.fence; });
  if (heads.empty()) return;
  struct one_run {
    sql_row head;
    std::vector<sql_row> behind{};
  };
  std::vector<one_run> runs;
  std::vector<std::string> ids;
  for (auto& head : heads) {
    if (left.events == 0) break;
    const auto size = static_cast<std::size_t>(head.bytes);
    const bool first = into.events.empty() && runs.empty();
    if (!first && size > left.bytes) break;
    left.bytes -= std::min(left.bytes, size);
    --left.events;
    ids.push_back(head.id);
    auto& made = runs.emplace_back(one_run{.head = std::move(head)});
    // One that was handed out before comes alone.
    if (!made.head.queue || made.head.deliveries != 0 || run <= 1 || made.head.next == 0) continue;
    const auto wanted = static_cast<std::int64_t>(std::min(run - 1, left.events));
    for (auto& next :
         rows_of(in, say_.followers, {static_cast<std::int64_t>(lane), std::string_view(*made.head.queue), made.head.seq, wanted})) {
      const auto bytes = static_cast<std::size_t>(next.bytes);
      if (left.events == 0 || next.at > now.now || bytes > left.bytes) break;
      left.bytes -= bytes;
      --left.events;
      ids.push_back(next.id);
      made.behind.push_back(std::move(next));
    }
  }
  if (runs.empty()) return;
  auto entries = entries_of(in, ids);
  fence last = 0;
  for (const auto& one : runs) last = std::max(last, one.head.token);
  if (into.fence <= last) into.fence = new_token(in, lane, now, std::max(last, into.fence));
  json_rows taken;
  std::map<std::string, promotion, std::less<>> orphaned;
  json_rows gone;
  for (auto& [head, behind] : runs) {
    const auto hand_out = [&](sql_row& what, bool first) {
      const auto entry = entries.find(what.id);
      if (entry == entries.end()) return false;
      auto content = read_or_explain(entry->second, what.id, what.key);
      if (!first && !content.problem.empty()) return false;  // as the head of its key it is parked; until then, nobody waits for its lease
      claimed_event made{.event = std::move(content.what), .lane = lane};
      made.last_error = std::move(content.problem.empty() ? what.last_error : content.problem);
      made.deliveries = static_cast<std::uint32_t>(what.deliveries + 1);
      made.attempts = static_cast<std::uint32_t>(what.attempts);
      made.replays = static_cast<std::uint32_t>(what.replays);
      made.created_at = timestamp(std::chrono::milliseconds(what.created));
      made.sequence = what.number != 0 ? what.number : what.seq;
      into.events.push_back(std::move(made));
      ++counts.claims;
      return true;
    };
    if (!hand_out(head, true)) {
      // Nothing to deliver: somebody removed its entry by hand.
      ++counts.orphans;
      --counts.events;
      counts.bytes -= head.bytes;
      gone.row().add(head.seq);
      if (head.queue) orphaned.emplace(*head.queue, promotion{});
      continue;
    }
    std::int64_t covered = 1;
    for (auto& next : behind) {
      if (!hand_out(next, false)) break;
      ++covered;
    }
    taken.row().add(head.seq).add(into.fence).add(covered).add(now.now + lease.count());
  }
  if (!taken.empty()) {
    const auto list = taken.text();
    tell(in, say_.take, {std::string_view(list)});
  }
  if (!gone.empty()) {
    const auto list = gone.text();
    tell(in, say_.erase_events, {std::string_view(list)});
    advance(in, lane, orphaned);
  }
}

claimed sql_backend::claim(const claim_request& request) {
  auto result = in_transaction(
      [&](join::transaction& in) {
        const auto lane = static_cast<std::int64_t>(request.lane);
        auto now = look_at(in, request.lane);
        claimed into{.lane = request.lane, .now = timestamp(std::chrono::milliseconds(now.now))};
        if (!request.owner.empty() && !now.held_by(request.owner)) {
          into.status = claim_status::fenced;
          return into;
        }
        if (now.paused) {
          into.status = claim_status::paused;
          return into;
        }
        tally_sheet counts;
        room left{.events = most_in_a_call, .bytes = request.bytes};
        std::size_t wanted = request.most;
        std::size_t to_park = most_in_a_call;
        for (int round = 0; round < most_rounds && wanted > 0; ++round) {
          auto found = rows_of(in, say_.candidates, {lane, now.now, static_cast<std::int64_t>(wanted)});
          const auto seen = found.size();
          std::vector<sql_row> heads;
          std::map<std::int64_t, std::int64_t> behind;  // a follower, and the first of its key
          std::set<std::int64_t> ours;
          bool stuck = false;
          std::set<std::int64_t> parking;
          for (const auto& one : found) {
            if (one.place != place::blocking) continue;
            // Whoever parked it did not come to those behind it.
            const auto [parked, more] = park_behind(in, request.lane, one, to_park, now.now, counts);
            to_park -= parked;
            stuck = stuck || more;
            parking.insert(one.seq);
          }
          for (auto& one : found) {
            if (parking.contains(one.seq) || parking.contains(one.head)) continue;
            if (!one.first()) {
              behind.emplace(one.seq, one.head);
              continue;
            }
            ours.insert(one.seq);
            heads.push_back(std::move(one));
          }
          if (!behind.empty()) {
            json_rows theirs;
            std::set<std::int64_t> asked = ours;
            for (const auto& [seq, head] : behind) {
              if (asked.insert(head).second) theirs.row().add(head);
            }
            if (!theirs.empty()) {
              const auto list = theirs.text();
              const auto locked = ask(in, say_.lock_heads, {std::string_view(list)});
              for (std::size_t i = 0; i < locked.size(); ++i) ours.insert(number_in(locked, i, 0));
            }
            // Whose first event somebody else holds right now may be on its way to the front, and nobody else may be about to say so: it
            // comes again, later the longer it has waited, since a handler's transaction may take long. Whoever is next in front gets its
            // own time back.
            json_rows away;
            json_rows held_up;
            for (const auto& [seq, head] : behind) (ours.contains(head) ? away : held_up).row().add(seq);
            json_rows later;
            if (!held_up.empty()) {
              const auto list = held_up.text();
              // Looked at again: one that came to the front while it was being locked keeps its time.
              for (const auto& one : rows_of(in, say_.by_seq_seen, {std::string_view(list)})) {
                if (one.first()) continue;
                later.row().add(one.seq).add(now.now + std::clamp<std::int64_t>(now.now - one.at, soonest, latest));
              }
            }
            if (!away.empty()) {
              const auto list = away.text();
              tell(in, say_.demote, {std::string_view(list)});
            }
            if (!later.empty()) {
              const auto list = later.text();
              tell(in, say_.renew_lease, {std::string_view(list)});
            }
          }
          // After those behind them lost their times: where a first event has nothing to deliver, the next of its key gets one, and keeps it.
          const auto taken_before = into.events.size();
          const auto head_count = heads.size();
          take(in, request.lane, now, std::move(heads), request.run, request.lease, left, into, counts);
          stuck = stuck || (into.events.size() == taken_before && head_count > 0);  // no room for the next
          if (stuck || seen < wanted || head_count >= wanted) break;
          wanted -= head_count;
        }
        into.status = into.events.empty() ? claim_status::empty : claim_status::some;
        write_tally(in, request.lane, counts);
        into.next = next_due(in, request.lane, now.now);
        if (++operations_ % 64 == 0) fold(in, request.lane);
        return into;
      },
      when_in_doubt::give_up);
  if (result.status == claim_status::some) wake_.found(request.lane);
  return result;
}

std::vector<bool> sql_backend::extend(std::size_t lane, fence token, std::span<const settlement> events, std::chrono::milliseconds lease) {
  return in_transaction([&](join::transaction& in) {
    const auto now = look_at(in, lane);
    json_rows keys;
    json_rows ids;
    std::set<std::string_view> asked;
    std::set<std::string_view> alone;
    for (const auto& one : events) {
      if (one.key.empty()) {
        if (alone.insert(one.id).second) ids.row().add(one.id);
      } else if (asked.insert(one.key).second) {
        keys.row().add(one.key).add(static_cast<std::int64_t>(lane));
      }
    }
    std::map<std::string, sql_row, std::less<>> bearers;  // by key; without one: by id, behind a byte that no key has
    const auto name_of = [](std::string_view key, std::string_view id) {
      return key.empty() ? "\x01" + std::string(id) : std::string(key);
    };
    // A handler may hold its event in a transaction of its own (effect_once), for long: nobody waits for it here. While it does, nobody can
    // claim the event either, so it is ours without a longer lease.
    std::set<std::int64_t> held;
    const auto keep = [&](std::vector<sql_row> rows, bool locked) {
      for (auto& one : rows) {
        if (locked) held.insert(one.seq);
        auto name = name_of(one.key, one.id);
        bearers.emplace(std::move(name), std::move(one));
      }
    };
    if (!keys.empty()) {
      const auto list = keys.text();
      const auto found = ask(in, say_.heads, {std::string_view(list)});
      json_rows seqs;
      for (std::size_t i = 0; i < found.size(); ++i) {
        if (const auto seq = number_in(found, i, 1); seq != 0) seqs.row().add(seq);
      }
      const auto heads = seqs.text();
      if (!seqs.empty()) {
        keep(rows_of(in, say_.by_seq_free, {std::string_view(heads)}), true);
        if (bearers.size() < asked.size()) keep(rows_of(in, say_.by_seq_seen, {std::string_view(heads)}), false);
      }
    }
    if (!ids.empty()) {
      const auto list = ids.text();
      const auto number = static_cast<std::int64_t>(lane);
      const auto before = bearers.size();
      keep(rows_of(in, say_.by_id_free, {std::string_view(list), number}), true);
      if (bearers.size() - before < alone.size()) keep(rows_of(in, say_.by_id_seen, {std::string_view(list), number}), false);
    }
    std::vector<bool> result;
    json_rows longer;
    std::set<std::int64_t> renewed;
    for (const auto& one : events) {
      const auto found = bearers.find(name_of(one.key, one.id));
      const bool ours = token != 0 && found != bearers.end() && found->second.token == token && found->second.place == place::queued &&
                        found->second.key == one.key;
      result.push_back(ours);
      if (ours && held.contains(found->second.seq) && renewed.insert(found->second.seq).second)
        longer.row().add(found->second.seq).add(now.now + lease.count());
    }
    if (!longer.empty()) {
      const auto list = longer.text();
      tell(in, say_.renew_lease, {std::string_view(list)});
    }
    return result;
  });
}

}  // namespace HOLDFAST_NAMESPACE::outboxes
