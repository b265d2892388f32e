#include <holdfast/error.hpp>

#include "outbox/checks.hpp"
#include "outbox/entry.hpp"
#include "outbox/redis_backend.hpp"
#include "outbox/redis_words.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace HOLDFAST_NAMESPACE::outboxes {

using redis::command;

namespace {

/// The seven parts of a claim, in the form that the scripts read (`parse` in lua_places). Any other text is a claim of nothing.
struct progress_text {
  fence token = 0;
  std::uint32_t deliveries = 0, attempts = 0, replays = 0;
  std::string key{};
  bool well_formed = false;

  explicit progress_text(std::string_view text) {
    constexpr std::size_t number_count = 6;
    constexpr std::array<std::int64_t, number_count> limits{9'000'000'000'000'000, 1'000'000'000,         1'000'000'000,
                                                            1'000'000'000,         9'000'000'000'000'000, 9'000'000'000'000'000};
    std::array<std::int64_t, number_count> numbers{};  // token, deliveries, attempts, replays, first failure, run
    for (std::size_t i = 0; i < number_count; ++i) {
      const auto end = text.find(':');
      if (end == std::string_view::npos || text.front() == '-') return;
      const auto digits = text.substr(0, end);
      const auto [read, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), numbers.at(i));
      if (problem != std::errc{} || read != digits.data() + digits.size() || numbers.at(i) >= limits.at(i)) return;
      text.remove_prefix(end + 1);
    }
    token = numbers[0];
    deliveries = static_cast<std::uint32_t>(numbers[1]);
    attempts = static_cast<std::uint32_t>(numbers[2]);
    replays = static_cast<std::uint32_t>(numbers[3]);
    key = text;
    well_formed = true;
  }
};

/// The numbers in `:meta`.
constexpr std::array<std::string_view, 13> meta_numbers{"seq",   "token",   "fence",    "bytes", "published", "duplicates", "claims",
                                                        "acked", "retried", "parkings", "stale", "fired",     "orphans"};

/// One step of HSCAN or ZSCAN: pairs of name and value.
struct step {
  std::string next{};
  std::vector<std::pair<std::string, std::string>> pairs{};
};

step scan_step(const redis::client& client, std::string_view how, const std::string& key, std::string_view cursor, std::size_t most) {
  auto what = command(how).key(key).arg(cursor.empty() ? std::string_view("0") : cursor).arg("COUNT").arg(most).idempotent();
  auto parts = client.call(what).elements();
  step result{.next = parts.at(0).text()};
  if (result.next == "0") result.next.clear();
  auto found = std::move(parts.at(1)).elements();
  for (std::size_t i = 0; i + 1 < found.size(); i += 2) {
    result.pairs.emplace_back(std::move(found[i]).text(), std::move(found[i + 1]).text());
  }
  return result;
}

/// All of it, step by step.
template <class Use>
void scan_all(const redis::client& client, std::string_view how, const std::string& key, Use use) {
  std::string cursor;
  do {
    auto part = scan_step(client, how, key, cursor, 500);
    use(part.pairs);
    cursor = std::move(part.next);
  } while (!cursor.empty());
}

constexpr std::size_t follower_tail = 1 + 16 + 15 + id_length;

}  // namespace

outbox_stats redis_backend::stats(std::size_t lane) {
  auto what = on(at(lane), scripts_.stats);
  what.idempotent();
  const auto answer = client_->call(what);
  const auto& parts = answer.elements();
  const auto number = [&](std::size_t i) { return static_cast<std::uint64_t>(number_in(parts.at(i))); };
  outbox_stats result{.events = number(0),
                      .pending = number(1),
                      .following = number(2),
                      .parked = number(3),
                      .tickets = number(4),
                      .remembered = number(5),
                      .bytes = number(7),
                      .paused = number(8) == 1,
                      .overdue = std::chrono::milliseconds(number_in(parts.at(6)))};
  result.published = number(9);
  result.duplicates = number(10);
  result.claims = number(11);
  result.acked = number(12);
  result.retried = number(13);
  result.parkings = number(14);
  result.stale = number(15);
  result.fired = number(16);
  result.orphans = number(17);
  return result;
}

std::vector<outbox_record> redis_backend::look_at(std::size_t lane, const std::vector<found_entry>& entries,
                                                  std::vector<std::string>* claims) {
  if (entries.empty()) return {};
  auto what = on(at(lane), scripts_.look);
  std::vector<outbox_record> result;
  result.reserve(entries.size());
  for (const auto& one : entries) {
    auto content = read_or_explain(one.text, one.id, std::nullopt);  // seen with what is known of it, so that it can be found and discarded
    what.arg(one.id).arg(content.what.key);
    outbox_record record;
    record.what = {.event = std::move(content.what),
                   .lane = lane,
                   .created_at = timestamp(std::chrono::milliseconds(content.created_ms)),
                   .sequence = content.sequence,
                   .last_error = std::move(content.problem)};
    result.push_back(std::move(record));
  }
  what.idempotent();
  const auto answer = client_->call(what);
  const auto& parts = answer.elements();
  const auto now = moment_in(parts.at(0).text());
  for (std::size_t i = 0; i < result.size(); ++i) {
    auto& record = result[i];
    const progress_text progress(parts.at(1 + 5 * i).text());
    if (claims != nullptr) claims->push_back(parts.at(1 + 5 * i).text());
    const auto& score = parts.at(2 + 5 * i).text();
    const auto& since = parts.at(3 + 5 * i).text();
    const auto& head = parts.at(4 + 5 * i).text();
    if (const auto& last = parts.at(5 + 5 * i).text(); !last.empty()) record.what.last_error = last;
    if (record.what.event.type.empty()) record.what.event.key = progress.key;
    record.what.deliveries = progress.deliveries;
    record.what.attempts = progress.attempts;
    record.what.replays = progress.replays;
    record.fence = progress.token;
    if (!since.empty()) {
      record.state = head == record.what.event.id ? event_state::blocking : event_state::parked;
      record.until = moment_in(since);
    } else if (!score.empty()) {
      if (moment_in(score) > now) {
        record.state = record.fence != 0 ? event_state::claimed : event_state::waiting;
        record.until = moment_in(score);
      }
    } else {
      record.state = event_state::following;
      record.behind = head;
    }
  }
  return result;
}

std::optional<outbox_record> redis_backend::find(std::size_t lane, std::string_view id) {
  const auto entry = client_->call(command("HGET").key(at(lane)[redis_lane::entries]).arg(id).idempotent());
  if (entry.is_nil()) return std::nullopt;
  auto found = look_at(lane, {{.id = std::string(id), .text = entry.text()}});
  return std::move(found.front());
}

scan_page redis_backend::scan(std::size_t lane, scan_what what, std::string_view after, std::size_t most) {
  const auto& own = at(lane);
  scan_page page;
  std::vector<found_entry> found;
  if (what == scan_what::all) {
    auto part = scan_step(*client_, "HSCAN", own[redis_lane::entries], after, most);
    for (auto& [id, text] : part.pairs) found.push_back({.id = std::move(id), .text = std::move(text)});
    page.after = std::move(part.next);
    page.records = look_at(lane, found);
    return page;
  }
  const bool tickets = what == scan_what::tickets;
  auto part = scan_step(*client_, "ZSCAN", own[tickets ? redis_lane::expiry_due : redis_lane::parked], after, most);
  page.after = std::move(part.next);
  if (part.pairs.empty()) return page;
  auto texts = command("HMGET").key(own[tickets ? redis_lane::tickets : redis_lane::entries]).idempotent();
  for (const auto& [name, score] : part.pairs) texts.arg(name);
  const auto answer = client_->call(texts);
  const auto& values = answer.elements();
  for (std::size_t i = 0; i < part.pairs.size(); ++i) {
    if (values.at(i).is_nil()) continue;
    const auto& text = values[i].text();
    if (!tickets) {
      found.push_back({.id = part.pairs[i].first, .text = text});
      continue;
    }
    // `length of the key:key, body`. What is not is shown all the same: somebody has to find it.
    const auto colon = text.find(':');
    std::size_t size = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + std::min(colon, text.size()), size);
    const bool whole =
        colon != std::string::npos && problem == std::errc{} && end == text.data() + colon && size <= text.size() - colon - 1;
    const std::string_view rest = whole ? std::string_view(text).substr(colon + 1) : std::string_view(text);
    auto content = read_ticket(rest.substr(whole ? size : 0), rest.substr(0, whole ? size : 0));
    outbox_record record;
    record.what.event = std::move(content.what);
    record.what.last_error = std::move(content.problem);
    record.what.event.id = part.pairs[i].first;
    record.what.lane = lane;
    record.what.deliveries = 0;
    record.state = event_state::waiting;
    record.until = moment_in(part.pairs[i].second);
    page.records.push_back(std::move(record));
  }
  if (!tickets) page.records = look_at(lane, found);
  return page;
}

bool redis_backend::repair_one(const redis_lane& lane, bool repair, std::string_view what, std::string_view name, std::string_view key) {
  auto question = on(lane, scripts_.repair);
  question.arg(what).arg(name).arg(repair ? 1 : 0).arg(key).idempotent(!repair);
  return client_->call(question).integer() == 1;
}

check_report redis_backend::check(std::size_t lane, bool repair) {
  const auto& own = at(lane);
  check_report report;
  for (const auto name : meta_numbers) {
    if (repair_one(own, repair, "meta", name, {})) ++report.bad_fields;
  }
  const auto marks = client_->call(command("HMGET").key(own[redis_lane::meta]).arg("seq").arg("acked").idempotent()).elements();
  // What leads to nothing.
  for (const auto place : {redis_lane::pending, redis_lane::parked}) {
    const std::string_view name = place == redis_lane::pending ? "pending" : "parked";
    scan_all(*client_, "ZSCAN", own[place], [&](const auto& pairs) {
      std::vector<command> questions;
      questions.reserve(pairs.size());
      for (const auto& [id, score] : pairs) questions.push_back(command("HEXISTS").key(own[redis_lane::entries]).arg(id).idempotent());
      if (questions.empty()) return;
      const auto answers = client_->pipeline(questions);
      for (std::size_t i = 0; i < pairs.size(); ++i) {
        if (answers.at(i).integer() == 0 && repair_one(own, repair, name, pairs[i].first, {})) ++report.without_entry;
      }
    });
  }
  std::set<std::string> keys;
  std::unordered_set<std::string> following;
  scan_all(*client_, "ZSCAN", own[redis_lane::followers], [&](const auto& pairs) {
    std::vector<command> questions;
    questions.reserve(pairs.size());
    for (const auto& [member, score] : pairs) {
      // One that is shorter, which no outbox wrote, leads to no entry.
      const auto id = member.substr(member.size() - std::min(member.size(), id_length));
      if (member.size() >= follower_tail) keys.insert(member.substr(0, member.size() - follower_tail));
      following.insert(id);
      questions.push_back(command("HEXISTS").key(own[redis_lane::entries]).arg(id).idempotent());
    }
    if (questions.empty()) return;
    const auto answers = client_->pipeline(questions);
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      if (answers.at(i).integer() == 0 && repair_one(own, repair, "follower", pairs[i].first, {})) ++report.without_entry;
    }
  });
  std::unordered_map<std::string, std::string> keys_of_heads;
  scan_all(*client_, "HSCAN", own[redis_lane::heads], [&](const auto& pairs) {
    for (const auto& [key, id] : pairs) {
      keys.insert(key);
      keys_of_heads.emplace(id, key);
    }
  });
  for (const auto& key : keys) {
    if (repair_one(own, repair, "key", key, {})) ++report.without_head;
  }
  // What nothing leads to.
  std::unordered_set<std::string> seen;
  std::uint64_t bytes = 0;
  scan_all(*client_, "HSCAN", own[redis_lane::entries], [&](const auto& pairs) {
    std::vector<found_entry> found;
    found.reserve(pairs.size());
    for (const auto& [id, text] : pairs) {
      if (!seen.insert(id).second) continue;
      bytes += text.size();
      found.push_back({.id = id, .text = text});
    }
    std::vector<std::string> claims;
    const auto records = look_at(lane, found, &claims);
    for (std::size_t i = 0; i < records.size(); ++i) {
      const auto& one = records[i];
      const auto& id = one.what.event.id;
      const progress_text progress(claims.at(i));
      std::string key = one.what.event.key;
      // Neither its entry nor its claim say which one.
      if (const auto head = keys_of_heads.find(id); one.what.event.type.empty() && !progress.well_formed && head != keys_of_heads.end())
        key = head->second;
      const bool suspect = !progress.well_formed ? !claims[i].empty() || !key.empty() : progress.key != key;
      const bool in_its_lane = key.empty() || lane_of(key, lanes_.size()) == lane;
      if (suspect && in_its_lane && repair_one(own, repair, "claim", id, key)) ++report.bad_fields;
      if (one.state != event_state::following || following.contains(id)) continue;
      if (repair_one(own, repair, "entry", id, key)) ++report.without_place;
    }
  });
  report.events = seen.size();
  auto question = on(own, scripts_.repair);
  question.arg("bytes").arg(bytes).arg(repair ? 1 : 0);
  question.arg(marks.at(0).is_nil() ? std::string_view() : std::string_view(marks.at(0).text()));
  question.arg(marks.at(1).is_nil() ? std::string_view() : std::string_view(marks.at(1).text()));
  question.arg(seen.size());
  report.bytes_off = client_->call(question).integer();
  return report;
}

}  // namespace HOLDFAST_NAMESPACE::outboxes
