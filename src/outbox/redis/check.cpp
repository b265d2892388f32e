#include "outbox/redis/check.hpp"

#include "outbox/checks.hpp"
#include "outbox/entry.hpp"
#include "outbox/redis/wire.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <tuple>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::outbox {
namespace {

/// Findings in one call of repair.lua. Each takes about ten commands.
constexpr std::size_t findings_per_call = 50;
/// Elements of a structure in one page, and the size of a page after which the next one has fewer
constexpr std::size_t elements_per_page = 500;
constexpr std::size_t bytes_per_page = std::size_t{256} << 10U;

/// The fields of META that are numbers, except `seq`, `token` and `fence`.
constexpr std::array<std::string_view, 10> meta_counters{
    "bytes",   "published", "duplicates", "claims", "acked",
    "retried", "parkings",  "stale",      "fired",  "orphans"};

/// The type of each key of a lane, in the order of redis_lane::key.
constexpr std::array<std::string_view, redis_lane::key_count> key_types{
    "hash", "zset", "zset", "string", "hash", "hash", "zset",
    "zset", "zset", "hash", "hash",   "hash", "list"};

/// A score as Redis writes it; infinite if it is not a number.
double read_score(const std::string& text) {
  double score = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), score);
  if (code != std::errc{} || end != text.data() + text.size()) return HUGE_VAL;
  return score;
}

}  // namespace

redis_lane_checker::redis_lane_checker(const redis::client& client, const redis_lane& lane,
                                       const redis::script& repair_script,
                                       lane_check_options options)
    : client_(client), lane_(lane), repair_script_(repair_script), options_(options) {}

check_report redis_lane_checker::run() {
  check_types();
  read_structures();
  read_entries();
  report_stray_events();
  check_ids_without_entry();
  check_keys();
  check_tickets();
  check_remembered();
  check_meta();
  return report_;
}

// ---- reading ----

/// Calls `visit` with each page. An element that exists during the whole scan is visited at least
/// once. Pages of large elements have few of them.
template <class Visit>
void redis_lane_checker::visit_pages(std::string_view scan_command, redis_lane::key structure,
                                     Visit visit) const {
  std::string cursor;
  std::size_t most = elements_per_page;
  do {
    auto page = read_scan_page(client_, scan_command, lane_[structure], cursor, most);
    std::size_t bytes = 0;
    for (const auto& [name, value] : page.pairs) bytes += name.size() + value.size();
    if (bytes > bytes_per_page) most = std::max<std::size_t>(most / 2, 1);
    else if (bytes < bytes_per_page / 4) most = std::min(most * 2, elements_per_page);
    for (auto& [name, value] : page.pairs) visit(name, value);
    cursor = std::move(page.next);
  } while (!cursor.empty());
}

// A structure of another type would fail every script. It is put aside, and built anew from the
// entries.
void redis_lane_checker::check_types() {
  std::vector<redis::command> questions;
  questions.reserve(lane_.keys.size());
  for (const auto& key : lane_.keys)
    questions.push_back(redis::command("TYPE").key(key).idempotent());
  const auto types = client_.pipeline(questions);
  for (std::size_t i = 0; i < lane_.keys.size(); ++i) {
    const auto& type = types.at(i).checked().text();
    if (type == "none" || type == key_types.at(i)) continue;
    ++report_.bad_fields;
    const auto& key = lane_.keys.at(i);
    if (!options_.repair) {
      std::string problem = "the key '" + key + "' holds a ";
      problem.append(type).append(" instead of a ").append(key_types.at(i));
      throw error(errc::malformed,
                  problem + "; a repair (fsck --repair) renames it and rebuilds it");
    }
    (void)client_.call(redis::command("RENAME").key(key).key(key + ":damaged-" + new_event_id()));
  }
}

// Claims come first: a finding is confirmed only if the claim record is still the same, so an event
// that was replayed since then is left alone.
void redis_lane_checker::read_structures() {
  const auto counters = client_
                            .call(redis::command("HMGET")
                                      .key(lane_[redis_lane::meta])
                                      .arg("seq")
                                      .arg("acked")
                                      .idempotent())
                            .elements();
  const auto size =
      client_.call(redis::command("HLEN").key(lane_[redis_lane::entries]).idempotent());
  events_.reserve(static_cast<std::size_t>(size.integer()));
  if (!counters.at(0).is_nil()) seq_before_ = counters[0].text();
  if (!counters.at(1).is_nil()) acked_before_ = counters[1].text();
  const auto now_parts = client_.call(redis::command("TIME").idempotent()).elements();
  const auto now_ms = static_cast<double>(read_number(now_parts.at(0))) * 1000;
  latest_due_ = now_ms + static_cast<double>(std::chrono::milliseconds(longest_time).count());

  visit_pages("HSCAN", redis_lane::claims, [&](const std::string& id, std::string& text) {
    auto& view = events_[id];
    if (const auto claim = parse_claim_record(text))
      largest_token_ = std::max(largest_token_, claim->token);
    view.claim_text = std::move(text);
    view.has_claim = true;
  });
  visit_pages("ZSCAN", redis_lane::pending, [&](const std::string& id, const std::string& score) {
    events_[id].due = read_score(score);
  });
  visit_pages("ZSCAN", redis_lane::parked, [&](const std::string& id, const std::string& score) {
    events_[id].parked_at = read_score(score);
  });
  visit_pages("ZSCAN", redis_lane::followers, [&](std::string& member, const std::string& score) {
    follower_view follower{.parsed = parse_follower_member(member),
                           .has_score_zero = read_score(score) == 0};
    if (const auto& parsed = follower.parsed) {
      auto& indexes = events_[parsed->id].followers;
      const auto is_same = [&](std::size_t index) { return followers_[index].member == member; };
      if (std::ranges::any_of(indexes, is_same)) return;  // the page came twice
      indexes.push_back(followers_.size());
      auto& first = keys_[parsed->key].first_follower;
      first = std::min(first.value_or(parsed->sequence), parsed->sequence);
    }
    follower.member = std::move(member);
    followers_.push_back(std::move(follower));
  });
  visit_pages("HSCAN", redis_lane::heads, [&](const std::string& key, std::string& id) {
    const auto node = keys_.try_emplace(key).first;
    events_[id].head_of = &*node;
    node->second.head = std::move(id);
  });
  visit_pages("HSCAN", redis_lane::errors, [&](const std::string& id, const std::string& /*text*/) {
    events_[id].has_error = true;
  });
}

void redis_lane_checker::read_entries() {
  visit_pages("HSCAN", redis_lane::entries, [&](const std::string& id, const std::string& text) {
    auto& view = events_[id];
    if (std::exchange(view.has_entry, true)) return;  // the page came twice
    ++report_.events;
    bytes_ += text.size();
    read_entry(id, view, text);
  });
  // Now: repairs of META and of tickets change what the bytes are compared with.
  std::uint64_t differences = 0;  // the reply has the difference itself
  report({.kind = "bytes",
          .arguments = {std::to_string(bytes_), seq_before_, acked_before_,
                        std::to_string(report_.events)},
          .counter = &differences});
  send_findings();
}

void redis_lane_checker::read_entry(const std::string& id, event_view& view,
                                    const std::string& text) {
  const auto content = read_or_explain(text, id, std::nullopt);
  const auto claim = parse_claim_record(view.claim_text);
  std::string key = content.event.key;
  view.is_readable =
      content.problem.empty() && (key.empty() || lane_of(key, options_.lanes) == options_.lane);
  if (!view.is_readable) {
    // The other structures may still know its key.
    if (claim) key = claim->key;
    else if (view.head_of != nullptr) key = view.head_of->first;
    // NOLINTNEXTLINE(bugprone-unchecked-optional-access): only parsed ones belong to an event
    else if (!view.followers.empty()) key = followers_[view.followers.front()].parsed->key;
    else key.clear();
  }
  if (!key.empty()) view.key = &*keys_.try_emplace(key).first;
  // A sequence beyond the clock was written by another program.
  const auto sequence = static_cast<double>(content.sequence) < latest_due_ * 1000
                            ? std::max<std::int64_t>(content.sequence, 0)
                            : 0;
  largest_sequence_ = std::max(largest_sequence_, sequence);
  check_event(id, view, sequence);
}

// ---- events ----

void redis_lane_checker::check_event(const std::string& id, event_view& view,
                                     std::int64_t sequence) {
  const std::string key = view.key != nullptr ? view.key->first : std::string();
  const auto claim = parse_claim_record(view.claim_text);
  const bool is_follower = !view.followers.empty();
  const bool is_head = view.key != nullptr && view.key->second.head == id;
  const auto sequence_text = std::to_string(sequence);
  check_claim(id, view, key);
  check_followers_of(id, view, key, sequence);
  if (view.due && !(*view.due >= 0 && *view.due <= latest_due_))
    report({.kind = "due", .arguments = {id}, .counter = &report_.bad_fields});
  if (view.parked_at && ((view.due && !(claim && claim->parked_by != 0)) || is_follower)) {
    report({.kind = "parked_twice",
            .arguments = {id, key, sequence_text},
            .counter = &report_.bad_fields});
  }
  auto* const key_state = view.key != nullptr ? &view.key->second : nullptr;
  if (!view.due && !view.parked_at && !is_follower) {
    if (key_state != nullptr) key_state->has_stray = true;
    stray_events_.push_back({.key = key,
                             .sequence = sequence,
                             .problem = {.kind = "place",
                                         .arguments = {id, key, sequence_text, view.claim_text},
                                         .counter = &report_.without_place}});
  } else if (view.due && key_state != nullptr && !is_head && view.is_readable) {
    key_state->has_stray = true;
    stray_events_.push_back({.key = key,
                             .sequence = sequence,
                             .problem = {.kind = "key",
                                         .arguments = {key, id, sequence_text},
                                         .counter = &report_.without_head}});
  } else if (view.parked_at && key_state != nullptr && !is_head &&
             sequence > key_state->blocking_sequence &&
             sequence < key_state->first_follower.value_or(0)) {
    key_state->blocking = id;
    key_state->blocking_sequence = sequence;
  }
}

void redis_lane_checker::check_claim(const std::string& id, const event_view& view,
                                     const std::string& key) {
  const auto claim = parse_claim_record(view.claim_text);
  const bool is_suspect = claim ? claim->key != key : !view.claim_text.empty() || !key.empty();
  // A follower has no record before it was handed out, and gets its key when it is promoted.
  const bool may_differ = (claim || !view.has_claim) && !view.due && !view.parked_at;
  if (!is_suspect || may_differ) return;
  report(
      {.kind = "claim", .arguments = {id, key, view.claim_text}, .counter = &report_.bad_fields});
}

void redis_lane_checker::check_followers_of(const std::string& id, const event_view& view,
                                            const std::string& key, std::int64_t sequence) {
  if (!view.is_readable || key.empty()) return;
  const auto claim = parse_claim_record(view.claim_text);
  const bool was_replayed = claim && claim->replays > 0;
  const bool is_head = view.key->second.head == id && (view.due || view.parked_at);
  const bool several = view.followers.size() > 1;
  for (const auto index : view.followers) {
    const auto& follower = followers_[index];
    // NOLINTNEXTLINE(bugprone-unchecked-optional-access): only parsed ones belong to an event
    const auto& parsed = *follower.parsed;
    const bool has_its_sequence = parsed.sequence == sequence || (was_replayed && !several);
    if (follower.has_score_zero && parsed.key == key && has_its_sequence && !is_head &&
        static_cast<double>(parsed.due) <= latest_due_)
      continue;
    const auto its_sequence = has_its_sequence ? parsed.sequence : sequence;
    report({.kind = "misplaced",
            .arguments = {follower.member, key, std::to_string(its_sequence), view.claim_text},
            .counter = &report_.bad_fields});
  }
}

void redis_lane_checker::report_stray_events() {
  std::ranges::sort(stray_events_, [](const auto& a, const auto& b) {
    return std::tie(a.key, a.sequence) < std::tie(b.key, b.sequence);
  });
  for (auto& stray : stray_events_) report(std::move(stray.problem));
  stray_events_.clear();
}

void redis_lane_checker::check_ids_without_entry() {
  for (const auto& [id, view] : events_) {
    const bool is_placed = view.due || view.parked_at;
    if (view.has_entry || !(is_placed || view.has_claim || view.has_error)) continue;
    report({.kind = "gone",
            .arguments = {id},
            .counter = is_placed ? &report_.without_entry : &report_.bad_fields});
  }
  for (const auto& follower : followers_) {
    if (follower.parsed && events_.at(follower.parsed->id).has_entry) continue;
    report({.kind = "follower", .arguments = {follower.member}, .counter = &report_.without_entry});
  }
}

// ---- keys ----

bool redis_lane_checker::is_head_suspect(const keys_by_name::value_type& key) const {
  const auto& [name, view] = key;
  if (view.head.empty()) return view.first_follower.has_value();
  const auto& head = events_.at(view.head);
  if (!head.has_entry) return true;
  if (!head.due && !head.parked_at) return true;
  if (head.key == &key || !head.is_readable) return false;
  const auto claim = parse_claim_record(head.claim_text);
  return !claim || claim->key != name;
}

void redis_lane_checker::check_keys() {
  for (const auto& node : keys_) {
    const auto& [name, view] = node;
    if (view.has_stray || !is_head_suspect(node)) continue;
    finding problem{.kind = "key", .arguments = {name}, .counter = &report_.without_head};
    // A head that was pending or parked is gone with its entry. Otherwise another program deleted
    // or replaced the head of a key that was blocked, since all other heads are pending.
    const auto head = events_.find(view.head);
    const bool was_placed = head != events_.end() && (head->second.due || head->second.parked_at) &&
                            !head->second.has_entry;
    if (!view.blocking.empty() && !was_placed)
      problem.arguments = {name, view.blocking, std::to_string(view.blocking_sequence), "1"};
    report(std::move(problem));
  }
}

// ---- the other structures ----

void redis_lane_checker::check_tickets() {
  std::unordered_map<std::string, int> parts;  // tickets with a valid time or a text, not both
  constexpr double latest_expiry = 2.6e14;
  visit_pages("ZSCAN", redis_lane::expiry_due, [&](const std::string& name, const auto& score) {
    const auto expires = read_score(score);
    parts[name] = expires >= 0 && expires <= latest_expiry ? 1 : 0;
  });
  visit_pages("HSCAN", redis_lane::tickets, [&](const std::string& name, const auto& /*text*/) {
    if (const auto part = parts.find(name); part == parts.end()) parts[name] = 0;
    else if (part->second == 1) parts.erase(part);
  });
  for (const auto& [name, state] : parts) {
    report({.kind = "ticket",
            .arguments = {name, new_event_id()},
            .counter = state == 1 ? &report_.without_entry : &report_.bad_fields});
  }
}

void redis_lane_checker::check_remembered() {
  visit_pages("ZSCAN", redis_lane::done, [&](const std::string& member, const auto& score) {
    const auto remembered_at = read_score(score);
    constexpr double longest_time_ms = 3.2e11;
    if (remembered_at <= latest_due_ - longest_time_ms) return;
    if (member.starts_with("e:")) {
      const auto event = events_.find(member.substr(2));
      constexpr double unexpiring = 9e15;
      if (event != events_.end() && event->second.has_entry && remembered_at == unexpiring) return;
    }
    report({.kind = "remembered", .arguments = {member}, .counter = &report_.bad_fields});
  });
}

void redis_lane_checker::check_meta() {
  const auto check_number = [&](std::string_view name, std::int64_t smallest) {
    report({.kind = "meta",
            .arguments = {std::string(name), std::to_string(smallest)},
            .counter = &report_.bad_fields});
  };
  for (const auto& follower : followers_) {
    if (follower.parsed && static_cast<double>(follower.parsed->sequence) < latest_due_ * 1000)
      largest_sequence_ = std::max(largest_sequence_, follower.parsed->sequence);
  }
  check_number("seq", largest_sequence_);
  check_number("token", largest_token_);
  check_number("fence", 0);
  check_number("paused", 0);
  for (const auto name : meta_counters) check_number(name, 0);
  report({.kind = "lock", .counter = &report_.bad_fields});
  send_findings();
}

// ---- findings ----

void redis_lane_checker::report(finding problem) {
  findings_.push_back(std::move(problem));
  if (findings_.size() == findings_per_call) send_findings();
}

void redis_lane_checker::send_findings() {
  if (findings_.empty()) return;
  redis::command command(repair_script_);
  for (const auto& key : lane_.keys) command.key(key);
  command.arg(options_.repair ? 1 : 0).idempotent(!options_.repair);
  for (const auto& [kind, arguments, counter] : findings_) {
    command.arg(kind);
    for (const auto& argument : arguments) command.arg(argument);
  }
  const auto reply = client_.call(command);
  const auto confirmed = read_flags(reply.elements().at(0));
  for (std::size_t i = 0; i < findings_.size(); ++i) {
    if (confirmed.at(i)) ++*findings_[i].counter;
  }
  report_.bytes_off += reply.elements().at(1).integer();
  findings_.clear();
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
