#include "outbox/redis_backend.hpp"

#include <holdfast/error.hpp>
#include <holdfast/key/redis.hpp>

#include "outbox/entry.hpp"
#include "outbox/redis_words.hpp"

#include <algorithm>
#include <array>

namespace HOLDFAST_NAMESPACE::outboxes {

using redis::command;
using redis::reply;

namespace {

std::optional<std::chrono::milliseconds> perhaps(const reply& ms) {
  if (ms.is_text() && ms.text().empty()) return std::nullopt;
  return std::chrono::milliseconds(number_in(ms));
}

error full(const reply::list& parts) {
  const auto& what = parts.at(1).text();
  const auto& used = parts.at(2).text();
  const auto& limit = parts.at(3).text();
  const std::string text = what == "overdue" ? "the outbox is behind: an event is overdue by " + used + " ms of " + limit
                                             : "the outbox is full: " + used + ' ' + what + " of " + limit;
  return {errc::too_large, text, {.transient = true}};
}

void add_quota(command& to, const outbox_quota& quota) { to.arg(quota.events).arg(quota.bytes).arg(quota.overdue.count()); }

void add_event(command& to, const event& what) { to.arg(what.id).arg(what.key).arg(what.delay.count()).arg(entry_body(what)); }

claim_status status_of(std::string_view word) {
  if (word == "some") return claim_status::some;
  if (word == "paused") return claim_status::paused;
  if (word == "fenced") return claim_status::fenced;
  return claim_status::empty;
}

lock_grant grant_of(const reply& answer) {
  const auto& parts = answer.elements();
  return {.held = parts.at(0).integer() == 1,
          .fence = number_in(parts.at(1)),
          .holder = parts.at(2).text(),
          .remaining = std::chrono::milliseconds(std::max<std::int64_t>(parts.at(3).integer(), 0))};
}

char letter(settlement::kind what) {
  switch (what) {
    case settlement::kind::ack:
      return 'a';
    case settlement::kind::retry:
      return 'r';
    case settlement::kind::park:
      return 'p';
    case settlement::kind::release:
      return 'l';
  }
  return 'a';
}

constexpr std::array<std::string_view, 4> condition_words{"exists", "absent", "equals", "missing"};
constexpr std::array<std::string_view, 6> write_words{"set", "erase", "set_field", "erase_field", "add", "add_to_field"};

}  // namespace

const redis_lane& redis_backend::at(std::size_t lane) const {
  if (lane >= lanes_.size()) throw error(errc::invalid_argument, "there is no lane " + std::to_string(lane));
  return lanes_[lane];
}

command redis_backend::on(const redis_lane& lane, const redis::script& what) const {
  command result(what);
  for (const auto& key : lane.keys) result.key(key);
  return result;
}

reply redis_backend::run_safely(command what, const durability& how) const {
  if (how.level != durability::kind::replicated && how.level != durability::kind::fsynced) return client_->call(what);
  std::vector<command> both;
  both.push_back(std::move(what));
  const bool disk = how.level == durability::kind::fsynced;
  both.push_back(disk ? redis::wait_for_disk(1, how.replicas, how.timeout) : redis::wait_for_replicas(how.replicas, how.timeout));
  auto answers = client_->pipeline(both, {.timeout = how.timeout + std::chrono::seconds(5)});
  auto result = std::move(answers.at(0));
  (void)result.checked();
  const auto unsafe = [](const std::string& why) {
    return error(errc::timeout, why + ": it may be lost in a failover; publish it again with the same id",
                 {.transient = true, .in_doubt = true});
  };
  const auto& confirmed = answers.at(1);
  if (confirmed.is_error())
    throw unsafe("the server did not say whether its replicas have it (" + std::string(confirmed.problem().what()) + ")");
  if (disk) {
    const auto& parts = confirmed.elements();
    if (parts.at(0).integer() < 1) throw unsafe("it is not synced to the server's disk yet");
    if (parts.at(1).integer() < static_cast<std::int64_t>(how.replicas)) throw unsafe("it is not synced on enough replicas yet");
  } else if (confirmed.integer() < static_cast<std::int64_t>(how.replicas)) {
    throw unsafe(std::to_string(confirmed.integer()) + " of " + std::to_string(how.replicas) + " replicas have it");
  }
  return result;
}

std::vector<receipt> redis_backend::publish(std::size_t lane, std::span<const event> events, const publish_terms& terms) {
  auto what = on(at(lane), scripts_.publish);
  add_quota(what, terms.quota);
  what.arg(terms.dedup_window.count());
  for (const auto& one : events) add_event(what, one);
  // Sent again, it finds its own ids: among the entries, or (delivered meanwhile) among those remembered.
  what.idempotent(terms.dedup_window.count() > 0);
  std::vector<receipt> receipts;
  receipts.reserve(events.size());
  const auto all = [&](publish_status status, const error& why) {
    receipts.clear();
    for (const auto& one : events) receipts.push_back({.id = one.id, .status = status, .problem = why});
  };
  try {
    const auto answer = run_safely(std::move(what), terms.how);
    const auto& parts = answer.elements();
    if (parts.at(0).text() == "full") {
      all(publish_status::refused, full(parts));
      return receipts;
    }
    const auto added = marks_in(parts.at(1));
    for (std::size_t i = 0; i < events.size(); ++i) {
      receipts.push_back({.id = events[i].id, .status = added.at(i) ? publish_status::added : publish_status::duplicate});
    }
  } catch (const error& problem) {
    all(problem.in_doubt() ? publish_status::in_doubt : publish_status::refused, problem);
  }
  return receipts;
}

claimed redis_backend::read_claimed(std::size_t lane, reply::list parts, std::size_t from) const {
  claimed result{.status = status_of(parts.at(from).text()),
                 .lane = lane,
                 .fence = number_in(parts.at(from + 1)),
                 .next = perhaps(parts.at(from + 2)),
                 .now = moment_in(parts.at(from + 3).text())};
  for (auto i = from + 4; i + 2 < parts.size(); i += 3) {
    const std::string_view numbers = parts[i + 1].text();
    const auto first = numbers.find(':');
    const auto second = numbers.find(':', first + 1);
    const auto third = numbers.find(':', second + 1);
    const auto name = numbers.substr(third + 1);
    // One that cannot be read must not fail the whole claim. The outbox parks an event without a type, for the reason in its last error.
    auto content = read_or_explain(parts[i].text(), name.substr(0, id_length), name.substr(std::min(id_length, name.size())));
    std::string last_error = content.problem.empty() ? std::move(parts[i + 2]).text() : std::move(content.problem);
    claimed_event one{.event = std::move(content.what),
                      .lane = lane,
                      .created_at = timestamp(std::chrono::milliseconds(content.created_ms)),
                      .sequence = content.sequence,
                      .last_error = std::move(last_error)};
    one.deliveries = static_cast<std::uint32_t>(number_in(numbers.substr(0, first)));
    one.attempts = static_cast<std::uint32_t>(number_in(numbers.substr(first + 1, second - first - 1)));
    one.replays = static_cast<std::uint32_t>(number_in(numbers.substr(second + 1, third - second - 1)));
    result.events.push_back(std::move(one));
  }
  return result;
}

claimed redis_backend::claim(const claim_request& request) {
  auto what = on(at(request.lane), scripts_.claim);
  what.arg(request.most).arg(request.run).arg(request.bytes).arg(request.lease.count()).arg(request.owner);
  return read_claimed(request.lane, client_->call(what).elements(), 0);
}

std::vector<bool> redis_backend::extend(std::size_t lane, fence token, std::span<const settlement> events,
                                        std::chrono::milliseconds lease) {
  auto what = on(at(lane), scripts_.extend);
  what.arg(token).arg(lease.count());
  for (const auto& one : events) what.arg(one.id).arg(one.key);
  what.idempotent();
  return marks_in(client_->call(what));
}

settled redis_backend::settle(std::size_t lane, fence token, std::span<const settlement> items, const std::optional<run_request>& next,
                              const publish_terms& terms) {
  auto what = on(at(lane), scripts_.settle);
  const run_request none{.run = 1};
  const auto& run = next ? *next : none;
  what.arg(token).arg(terms.dedup_window.count()).arg(terms.dedup_limit).arg(next ? 1 : 0);
  what.arg(run.run).arg(run.bytes).arg(run.lease.count()).arg(run.owner);
  for (const auto& one : items) {
    const char kind = letter(one.what);
    what.arg(std::string_view(&kind, 1)).arg(one.id).arg(one.key);
    if (kind == 'r' || kind == 'p') what.arg(one.delay.count()).arg(one.counts ? 1 : 0).arg(one.error).arg(to_string(one.policy));
  }
  auto parts = client_->call(what).elements();
  settled result{.done = marks_in(parts.at(0))};
  const auto more = static_cast<std::size_t>(parts.at(1).integer());
  for (std::size_t i = 0; i < more; ++i) result.more.push_back(parts.at(2 + i).text());
  result.next = read_claimed(lane, std::move(parts), 2 + more);
  return result;
}

std::size_t redis_backend::park_followers(std::size_t lane, std::string_view key, std::size_t most) {
  auto what = on(at(lane), scripts_.park_followers);
  what.arg(key).arg(most).idempotent();
  return static_cast<std::size_t>(client_->call(what).integer());
}

std::vector<bool> redis_backend::replay(std::size_t lane, std::span<const std::string> ids) {
  auto what = on(at(lane), scripts_.replay);
  for (const auto& id : ids) what.arg(id);
  return marks_in(client_->call(what));
}

std::vector<bool> redis_backend::discard(std::size_t lane, std::span<const std::string> ids) {
  auto what = on(at(lane), scripts_.discard);
  for (const auto& id : ids) what.arg(id);
  return marks_in(client_->call(what));
}

void redis_backend::pause(std::size_t lane, bool paused) {
  auto what = on(at(lane), scripts_.pause);
  what.arg(paused ? 1 : 0).idempotent();
  (void)client_->call(what);
}

scheduled redis_backend::schedule(std::size_t lane, std::string_view ticket, std::optional<timestamp> when, std::chrono::milliseconds delay,
                                  const event& becomes, const publish_terms& terms) {
  auto what = on(at(lane), scripts_.schedule);
  add_quota(what, terms.quota);
  what.arg(ticket);
  if (when) {
    what.arg(std::chrono::floor<std::chrono::milliseconds>(*when).time_since_epoch().count());
  } else {
    what.arg(std::string_view());
  }
  what.arg(delay.count()).arg(becomes.key).arg(entry_body(becomes));
  what.idempotent(when.has_value());
  const auto answer = run_safely(std::move(what), terms.how);
  const auto& parts = answer.elements();
  if (parts.at(0).text() == "full") throw full(parts);
  scheduled result{.expires_at = moment_in(parts.at(1).text())};
  if (!parts.at(2).text().empty()) result.before = moment_in(parts.at(2).text());
  return result;
}

cancel_status redis_backend::cancel(std::size_t lane, std::string_view ticket) {
  auto what = on(at(lane), scripts_.cancel);
  what.arg(ticket);
  const auto word = client_->call(what).text();
  if (word == "cancelled") return cancel_status::cancelled;
  return word == "fired" ? cancel_status::fired : cancel_status::unknown;
}

drained redis_backend::drain(std::size_t lane, std::size_t most, const publish_terms& terms) {
  auto what = on(at(lane), scripts_.drain);
  what.arg(most).arg(terms.dedup_window.count()).arg(terms.dedup_limit);
  const auto answer = client_->call(what);
  const auto& parts = answer.elements();
  return {.tickets = static_cast<std::size_t>(parts.at(0).integer()), .next = perhaps(parts.at(1))};
}

lock_grant redis_backend::lock(std::size_t lane, std::string_view owner, std::chrono::milliseconds ttl) {
  auto what = on(at(lane), scripts_.lock);
  what.arg(owner).arg(ttl.count()).idempotent();
  return grant_of(client_->call(what));
}

lock_grant redis_backend::renew(std::size_t lane, std::string_view owner, std::chrono::milliseconds ttl) {
  auto what = on(at(lane), scripts_.renew);
  what.arg(owner).arg(ttl.count()).idempotent();
  return grant_of(client_->call(what));
}

bool redis_backend::unlock(std::size_t lane, std::string_view owner) {
  auto what = on(at(lane), scripts_.unlock);
  what.arg(owner);
  return client_->call(what).integer() == 1;
}

committed redis_backend::commit(std::size_t lane, const commit_request& request, const publish_terms& terms) {
  if (!request.once.empty() && terms.dedup_window.count() == 0) {
    throw error(errc::invalid_argument, "an effect once needs a dedup_window");
  }
  const auto& own = at(lane);
  auto what = on(own, scripts_.commit);
  std::vector<std::string_view> names;
  const auto index_of = [&](const std::string& key) {
    const auto found = std::find(names.begin(), names.end(), key);
    const auto index = static_cast<std::size_t>(found - names.begin());
    if (found == names.end()) names.push_back(key);
    return redis_lane::key_count + 1 + index;
  };
  for (const auto& one : request.conditions) (void)index_of(one.key);
  for (const auto& one : request.writes) (void)index_of(one.key);
  for (const auto name : names) what.key(name);
  add_quota(what, terms.quota);
  what.arg(terms.dedup_window.count()).arg(terms.dedup_limit).arg(request.once).arg(request.fence).arg(request.once_key);
  what.arg(request.conditions.size()).arg(request.writes.size()).arg(request.events.size());
  for (const auto& one : request.conditions) {
    what.arg(condition_words.at(static_cast<std::size_t>(one.what))).arg(index_of(one.key)).arg(one.field).arg(one.value);
  }
  for (const auto& one : request.writes) {
    const bool adds = one.what == commit_write::kind::add || one.what == commit_write::kind::add_to_field;
    what.arg(write_words.at(static_cast<std::size_t>(one.what))).arg(index_of(one.key)).arg(one.field);
    what.arg(adds ? std::to_string(one.number) : one.value);
  }
  for (const auto& one : request.events) add_event(what, one);
  const auto answer = run_safely(std::move(what), terms.how);
  const auto& parts = answer.elements();
  const auto& word = parts.at(0).text();
  if (word == "full") throw full(parts);
  if (word == "wrong") {
    throw error(errc::invalid_argument,
                "the key '" + parts.at(1).text() + "' holds something else than the commit expects: nothing was written");
  }
  if (word == "number") {
    throw error(errc::invalid_argument,
                "what '" + parts.at(1).text() + "' holds is not a whole number of at most 15 digits: nothing was written");
  }
  if (word == "applied") return {.status = commit_status::applied};
  if (word == "stale") return {.status = commit_status::stale};
  if (word == "failed") return {.status = commit_status::condition_failed, .failed = static_cast<std::size_t>(parts.at(1).integer())};
  committed result;
  const auto added = marks_in(parts.at(1));
  for (std::size_t i = 0; i < request.events.size(); ++i) {
    result.receipts.push_back({.id = request.events[i].id, .status = added.at(i) ? publish_status::added : publish_status::duplicate});
  }
  return result;
}

bool redis_backend::wait(std::size_t lane, std::chrono::milliseconds longest) {
  const auto& marker = at(lane)[redis_lane::wake];
  if (longest.count() < 1) return !client_->call(command("LPOP").key(marker)).is_nil();
  const auto seconds = longest.count() / 1000;
  auto fraction = std::to_string(longest.count() % 1000);
  fraction.insert(0, 3 - fraction.size(), '0');
  const auto answer = client_->call(command("BLPOP").key(marker).arg(std::to_string(seconds) + '.' + fraction),
                                    {.timeout = longest + std::chrono::seconds(5)});
  return !answer.is_nil();
}

// Whoever waits comes back by itself soon: it is not worth a long wait.
void redis_backend::wake(std::size_t lane) {
  (void)client_->call(command("RPUSH").key(at(lane)[redis_lane::wake]).arg("1"), {.timeout = std::chrono::seconds(1)});
}

}  // namespace HOLDFAST_NAMESPACE::outboxes
