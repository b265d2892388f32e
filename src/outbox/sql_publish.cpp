#include <holdfast/error.hpp>

#include "outbox/entry.hpp"
#include "outbox/sql_backend.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace HOLDFAST_NAMESPACE::outboxes {

namespace {

/// What one statement carries at most; larger ones are several, in one transaction.
constexpr std::size_t most_bytes = std::size_t{4} << 20U;
/// Of events that nobody knows.
constexpr int most_refusals = 8;

error full(const std::string& why) { return {errc::too_large, why, {.transient = true}}; }

bool any(const outbox_quota& quota) { return quota.events != 0 || quota.bytes != 0 || quota.overdue.count() != 0; }

}  // namespace

std::string kept_entry(std::string_view id, std::string_view body) {
  std::string text = R"({"v":1,"id":")";
  text.reserve(body.size() + 64);
  text.append(id).append("\",").append(body).append("}");
  return text;
}

void sql_backend::lock_keys(join::transaction& in, std::span<const std::string_view> keys) const {
  if (say_.lock_stripes.text.empty() || order_ == key_order::wrong_without_lock) return;
  std::set<std::int64_t> wanted;
  for (const auto key : keys) {
    if (!key.empty()) wanted.insert(stripe_of(key));
  }
  if (wanted.empty()) return;
  json_rows rows;
  for (const auto stripe : wanted) rows.row().add(stripe);
  const auto list = rows.text();
  if (say_.dialect == sql::dialect_id::postgresql) (void)ask(in, say_.lock_stripes, {say_.lock_class, std::string_view(list)});
  else (void)ask(in, say_.lock_stripes, {std::string_view(list)});
}

std::set<std::int64_t> sql_backend::free_stripes(join::transaction& in, const std::set<std::int64_t>& wanted) const {
  if (wanted.empty() || say_.try_stripes.text.empty() || order_ == key_order::wrong_without_lock) return wanted;
  json_rows rows;
  for (const auto stripe : wanted) rows.row().add(stripe);
  const auto list = rows.text();
  const auto found = say_.dialect == sql::dialect_id::postgresql ? ask(in, say_.try_stripes, {std::string_view(list), say_.lock_class})
                                                                 : ask(in, say_.try_stripes, {std::string_view(list)});
  std::set<std::int64_t> ours;
  for (std::size_t i = 0; i < found.size(); ++i) ours.insert(number_in(found, i, 0));
  return ours;
}

void sql_backend::check_quota(join::transaction& in, std::size_t lane, std::size_t events, std::size_t bytes, const publish_terms& terms,
                              std::int64_t now) const {
  const auto& quota = terms.quota;
  if (!any(quota)) return;
  const auto has = read_tallies(in, lane);
  // Rows that another program inserted were never counted: what is below 0 counts as 0, until fsck counts again.
  const auto held = static_cast<std::uint64_t>(std::max<std::int64_t>(0, has.events) + std::max<std::int64_t>(0, has.tickets));
  const auto size = static_cast<std::uint64_t>(std::max<std::int64_t>(0, has.bytes));
  if (quota.events != 0 && held + events > quota.events)
    throw full("the outbox is full: " + std::to_string(held) + " events of " + std::to_string(quota.events));
  if (quota.bytes != 0 && size + bytes > quota.bytes)
    throw full("the outbox is full: " + std::to_string(size) + " bytes of " + std::to_string(quota.bytes));
  if (quota.overdue.count() == 0) return;
  const auto first = ask(in, say_.overdue, {static_cast<std::int64_t>(lane), now});
  const auto late = first.empty() ? 0 : now - number_in(first, 0, 0, now);
  if (late > quota.overdue.count()) {
    throw full("the outbox is behind: an event is overdue by " + std::to_string(late) + " ms of " + std::to_string(quota.overdue.count()));
  }
}

/// PostgreSQL, without a quota: one statement does it all.
std::vector<receipt> sql_backend::add_at_once(join::transaction& in, std::size_t lane, std::span<const event> events,
                                              const publish_terms& terms, int tries) const {
  std::map<std::string_view, publish_status> became;
  std::set<std::int64_t> wanted;
  json_rows rows;
  std::size_t bytes = 0;
  const auto number = static_cast<std::int64_t>(lane);
  const auto send = [&] {
    if (rows.empty()) return;
    json_rows stripes_of;
    if (order_ == key_order::locked) {
      for (const auto stripe : wanted) stripes_of.row().add(stripe);
    }
    const auto list = rows.text();
    const auto locks = stripes_of.text();
    const auto name = std::to_string(lane);
    const auto added = ask(in, say_.publish,
                           {say_.lock_class, std::string_view(locks), std::string_view(list), number, number, std::string_view(channel_),
                            std::string_view(name)});
    for (std::size_t i = 0; i < added.size(); ++i) became.find(text_in(added, i, 0))->second = publish_status::added;
    rows = {};
    wanted.clear();
    bytes = 0;
  };
  for (const auto& one : events) {
    if (!became.emplace(one.id, publish_status::duplicate).second) continue;
    const auto entry = kept_entry(one.id, entry_body(one));
    if (bytes != 0 && bytes + entry.size() > most_bytes) send();
    bytes += entry.size();
    if (!one.key.empty()) wanted.insert(stripe_of(one.key));
    rows.row().add(one.id).add(one.key).add(entry).add(static_cast<std::int64_t>(entry.size())).add(one.delay.count());
  }
  send();
  std::vector<std::string> refused;
  for (const auto& [id, status] : became) {
    if (status == publish_status::duplicate) refused.emplace_back(id);
  }
  std::vector<receipt> result;
  result.reserve(events.size());
  // The statement counts each id once, and those it found.
  tally_sheet more{.duplicates = static_cast<std::int64_t>(events.size() - became.size())};
  if (!refused.empty()) {
    // Remembered for longer than the window, perhaps: then it is a new one.
    json_rows ids;
    for (const auto& id : refused) ids.row().add(id);
    const auto list = ids.text();
    const auto found = ask(in, say_.known, {std::string_view(list)});
    json_rows old;
    // Those that are not even found were forgotten since the statement met them: new ones, too.
    std::set<std::string> again(refused.begin(), refused.end());
    std::int64_t outlived = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
      const bool done = number_in(found, i, 1) == static_cast<std::int64_t>(place::done);
      outlived = number_in(found, i, 3) - terms.dedup_window.count();
      if (done && number_in(found, i, 2) <= outlived) old.row().add(text_in(found, i, 0));
      else again.erase(text_in(found, i, 0));
    }
    if (!old.empty()) {
      const auto gone = old.text();
      tell(in, say_.forget_ids, {std::string_view(gone), outlived});
    }
    if (!again.empty()) {
      more.duplicates -= static_cast<std::int64_t>(again.size());
      std::vector<event> rest;
      for (const auto& one : events) {
        if (again.erase(one.id) != 0) rest.push_back(one);
      }
      // By something else than an id: a number that is taken, where a sequence was left behind when rows were copied, or a trigger.
      if (tries == most_refusals)
        throw error(errc::duplicate,
                    "the table of events refuses rows though their ids are not there; is the sequence of SEQ behind its rows?");
      for (const auto& one : add_at_once(in, lane, rest, terms, tries + 1)) became.find(one.id)->second = one.status;
    }
  }
  write_tally(in, lane, more);
  std::set<std::string_view> seen;
  for (const auto& one : events) {
    const bool first = seen.insert(one.id).second;
    result.push_back({.id = one.id, .status = first ? became.find(one.id)->second : publish_status::duplicate});
  }
  return result;
}

std::vector<receipt> sql_backend::add(join::transaction& in, std::size_t lane, std::span<const kept_event> events,
                                      const publish_terms& terms, tally_sheet& counts) const {
  std::vector<std::string_view> keys;
  json_rows ids;
  for (const auto& one : events) {
    keys.push_back(one.key);
    ids.row().add(one.id);
  }
  lock_keys(in, keys);
  const auto list = ids.text();
  const auto found = ask(in, say_.known, {std::string_view(list)});
  const auto now = read_clock(in);
  std::set<std::string> known;
  json_rows old;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const bool done = number_in(found, i, 1) == static_cast<std::int64_t>(place::done);
    if (done && number_in(found, i, 2) <= now - terms.dedup_window.count()) old.row().add(text_in(found, i, 0));
    else known.insert(text_in(found, i, 0));
  }
  std::vector<receipt> result;
  std::vector<const kept_event*> fresh;
  std::size_t bytes = 0;
  for (const auto& one : events) {
    const bool is_new = known.insert(one.id).second;
    result.push_back({.id = one.id, .status = is_new ? publish_status::added : publish_status::duplicate});
    if (!is_new) continue;
    fresh.push_back(&one);
    bytes += one.entry.size();
  }
  counts.duplicates += static_cast<std::int64_t>(events.size() - fresh.size());
  if (fresh.empty()) return result;
  check_quota(in, lane, fresh.size(), bytes, terms, now);
  if (!old.empty()) {
    const auto gone = old.text();
    tell(in, say_.forget_ids, {std::string_view(gone), now - terms.dedup_window.count()});
  }
  json_rows rows;
  json_rows entries;
  std::size_t carried = 0;
  std::uint64_t asked = 0;
  std::uint64_t made = 0;
  const auto send = [&] {
    if (rows.empty()) return;
    const auto places = rows.text();
    const auto texts = entries.text();
    made += tell(in, say_.add_events, {std::string_view(places)});
    if (made < asked) {
      // Somebody published it between our look and now; without a key nobody waits for the other. When it is one, we know which.
      if (fresh.size() == 1) return;
      throw error(errc::duplicate, "an event with the id of one of these was published at the same time: run the transaction again",
                  {.transient = true});
    }
    tell(in, say_.add_entries, {std::string_view(texts)});
    rows = {};
    entries = {};
    carried = 0;
  };
  for (const auto* what : fresh) {
    if (carried != 0 && carried + what->entry.size() > most_bytes) send();
    carried += what->entry.size();
    rows.row().add(static_cast<std::int64_t>(lane)).add(what->id).add(what->key).add(what->delay);
    rows.add(now).add(static_cast<std::int64_t>(what->entry.size()));
    entries.row().add(what->id).add(what->entry);
    ++asked;
  }
  send();
  if (made < asked) {
    for (auto& one : result) one.status = publish_status::duplicate;
    ++counts.duplicates;
    return result;
  }
  counts.events += static_cast<std::int64_t>(fresh.size());
  counts.published += static_cast<std::int64_t>(fresh.size());
  counts.bytes += static_cast<std::int64_t>(bytes);
  return result;
}

std::vector<receipt> sql_backend::publish_in(join::transaction& in, std::size_t lane, std::span<const event> events,
                                             const publish_terms& terms) {
  const bool same =
      in.dialect() == say_.dialect || (in.dialect() != sql::dialect_id::sqlite && in.dialect() != sql::dialect_id::postgresql &&
                                       say_.dialect != sql::dialect_id::sqlite && say_.dialect != sql::dialect_id::postgresql);
  if (!same) {
    throw error(errc::invalid_argument, "the transaction is on " + std::string(to_string(in.dialect())) + ", but the outbox lives on " +
                                            std::string(to_string(say_.dialect)) + ": they have to share a database");
  }
  if (events.empty()) return {};
  if (say_.dialect == sql::dialect_id::postgresql && !any(terms.quota)) return add_at_once(in, lane, events, terms, 0);
  tally_sheet counts;
  std::vector<kept_event> kept;
  kept.reserve(events.size());
  for (const auto& one : events)
    kept.push_back({.id = one.id, .key = one.key, .delay = one.delay.count(), .entry = kept_entry(one.id, entry_body(one))});
  auto result = add(in, lane, kept, terms, counts);
  write_tally(in, lane, counts);
  if (!say_.notify.text.empty() && counts.published > 0) {
    const auto name = std::to_string(lane);
    (void)ask(in, say_.notify, {std::string_view(channel_), std::string_view(name)});
  }
  return result;
}

std::vector<receipt> sql_backend::publish(std::size_t lane, std::span<const event> events, const publish_terms& terms) {
  try {
    // Safe to repeat in doubt: an id is kept once.
    auto result = in_transaction(
        [&](join::transaction& in) {
          auto receipts = publish_in(in, lane, events, terms);
          // Who delivers does so, too; perhaps there is nobody, and a quota reads them all. Not in a transaction of the caller's: it may be
          // long, or see an old moment.
          if (++operations_ % (any(terms.quota) ? 64 : 1024) == 0) fold(in, lane);
          return receipts;
        },
        when_in_doubt::repeat);
    wake_.published(lane);
    return result;
  } catch (const error& problem) {
    std::vector<receipt> result;
    const auto status = problem.in_doubt() ? publish_status::in_doubt : publish_status::refused;
    for (const auto& one : events) result.push_back({.id = one.id, .status = status, .problem = problem});
    return result;
  }
}

commit_status sql_backend::apply_once(join::transaction& in, std::size_t lane, fence token, std::string_view id, std::string_view key,
                                      const publish_terms& terms) {
  if (terms.dedup_window.count() == 0) throw error(errc::invalid_argument, "an effect once needs a dedup_window");
  const auto now = read_clock(in);
  json_rows wanted;
  if (key.empty()) {
    wanted.row().add(id);
  } else {
    json_rows keys;
    keys.row().add(key).add(static_cast<std::int64_t>(lane));
    const auto list = keys.text();
    wanted.row().add(number_in(ask(in, say_.heads, {std::string_view(list)}), 0, 1));
  }
  const auto list = wanted.text();
  // Locked until the caller's transaction ends: no claim takes it meanwhile.
  const auto rows = key.empty() ? rows_of(in, say_.by_id, {std::string_view(list), static_cast<std::int64_t>(lane)})
                                : rows_of(in, say_.by_seq, {std::string_view(list)});
  const std::string mark = "e:" + std::string(id);
  const auto before = ask(in, say_.remembered, {std::string_view(mark)});
  if (!before.empty() && number_in(before, 0, 0) > now - terms.dedup_window.count()) return commit_status::applied;
  if (token != 0 && (rows.empty() || rows[0].token != token || rows[0].place != place::queued || rows[0].key != key))
    return commit_status::stale;
  if (before.empty()) {
    // Of two who try at once, one waits here for the other's transaction to end.
    const auto made = tell(in, say_.remember_new, {static_cast<std::int64_t>(lane), std::string_view(mark), now});
    return made == 1 ? commit_status::done : commit_status::applied;
  }
  json_rows marks;
  marks.row().add(static_cast<std::int64_t>(lane)).add(mark).add(now);
  const auto text = marks.text();
  tell(in, say_.remember, {std::string_view(text)});
  return commit_status::done;
}

}  // namespace HOLDFAST_NAMESPACE::outboxes
