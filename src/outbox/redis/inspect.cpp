// Statistics, search and consistency check of an outbox on Redis.

#include "outbox/checks.hpp"
#include "outbox/entry.hpp"
#include "outbox/redis/backend.hpp"
#include "outbox/redis/wire.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::outbox {
namespace {

/// A claim record; see records.lua.
struct claim_record {
  fence token = 0;
  std::uint32_t deliveries = 0, attempts = 0, replays = 0;
  std::string key{};
};

/// Returns nothing if no script wrote the text. The limits are those of read_claim in records.lua.
std::optional<claim_record> parse_claim_record(std::string_view text) {
  constexpr std::int64_t number_limit = 9'000'000'000'000'000;
  constexpr std::int64_t count_limit = 1'000'000'000;
  // token, deliveries, attempts, replays, first_failed, run or parked_by
  constexpr std::array<std::int64_t, 6> limits{number_limit, count_limit,  count_limit,
                                               count_limit,  number_limit, number_limit};
  std::array<std::int64_t, limits.size()> numbers{};
  for (std::size_t i = 0; i < limits.size(); ++i) {
    const auto colon = text.find(':');
    if (colon == std::string_view::npos || text.front() == '-') return std::nullopt;
    const auto digits = text.substr(0, colon);
    const auto [parsed, code] =
        std::from_chars(digits.data(), digits.data() + digits.size(), numbers.at(i));
    if (code != std::errc{} || parsed != digits.data() + digits.size() ||
        numbers.at(i) >= limits.at(i))
      return std::nullopt;
    text.remove_prefix(colon + 1);
  }
  return claim_record{.token = numbers[0],
                      .deliveries = static_cast<std::uint32_t>(numbers[1]),
                      .attempts = static_cast<std::uint32_t>(numbers[2]),
                      .replays = static_cast<std::uint32_t>(numbers[3]),
                      .key = std::string(text)};
}

/// The fields of META that are numbers.
constexpr std::array<std::string_view, 13> meta_numbers{
    "seq",   "token",   "fence",    "bytes", "published", "duplicates", "claims",
    "acked", "retried", "parkings", "stale", "fired",     "orphans"};

using name_and_value = std::pair<std::string, std::string>;

struct redis_page {
  std::vector<name_and_value> pairs{};
  /// Cursor of the next page; empty: this is the last one
  std::string next{};
};

/// One step of HSCAN or ZSCAN.
redis_page read_page(const redis::client& client, std::string_view scan_command,
                     const std::string& key, std::string_view cursor, std::size_t most) {
  auto command = redis::command(scan_command)
                     .key(key)
                     .arg(cursor.empty() ? std::string_view("0") : cursor)
                     .arg("COUNT")
                     .arg(most)
                     .idempotent();
  auto parts = client.call(command).elements();
  redis_page page{.next = parts.at(0).text()};
  if (page.next == "0") page.next.clear();
  auto values = std::move(parts.at(1)).elements();
  for (std::size_t i = 0; i + 1 < values.size(); i += 2)
    page.pairs.emplace_back(std::move(values[i]).text(), std::move(values[i + 1]).text());
  return page;
}

template <class Visit>
void visit_pages(const redis::client& client, std::string_view scan_command, const std::string& key,
                 Visit visit) {
  std::string cursor;
  do {
    auto page = read_page(client, scan_command, key, cursor, 500);
    if (!page.pairs.empty()) visit(page.pairs);
    cursor = std::move(page.next);
  } while (!cursor.empty());
}

/// The fields of a hash with the names of a page; nil where there is none.
redis::reply::list read_fields(const redis::client& client, const std::string& hash,
                               const std::vector<name_and_value>& page) {
  auto command = redis::command("HMGET").key(hash).idempotent();
  for (const auto& [name, value] : page) command.arg(name);
  return client.call(command).elements();
}

/// Splits `length of the key:key, body` of a ticket. Any other text becomes the body, so that a
/// damaged ticket is shown too.
std::pair<std::string_view, std::string_view> split_ticket(std::string_view text) {
  const auto colon = text.find(':');
  if (colon == std::string_view::npos) return {{}, text};
  std::size_t length = 0;
  const auto digits = text.substr(0, colon);
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), length);
  const auto rest = text.substr(colon + 1);
  if (code != std::errc{} || end != digits.data() + digits.size() || length > rest.size())
    return {{}, text};
  return {rest.substr(0, length), rest.substr(length)};
}

}  // namespace

outbox_stats redis_backend::stats(std::size_t lane) {
  auto command = command_for(lane, scripts_.stats);
  command.idempotent();
  const auto reply = client().call(command);
  const auto& parts = reply.elements();
  const auto number = [&](std::size_t i) {
    return static_cast<std::uint64_t>(read_number(parts.at(i)));
  };
  outbox_stats result{.events = number(0),
                      .pending = number(1),
                      .following = number(2),
                      .parked = number(3),
                      .tickets = number(4),
                      .remembered = number(5),
                      .bytes = number(7),
                      .paused = number(8) == 1,
                      .overdue = std::chrono::milliseconds(read_number(parts.at(6)))};
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

std::vector<outbox_record> redis_backend::read_records(
    std::size_t lane, const std::vector<raw_entry>& entries,
    std::vector<std::string>* claim_records) const {
  if (entries.empty()) return {};
  auto command = command_for(lane, scripts_.inspect);
  std::vector<outbox_record> records;
  records.reserve(entries.size());
  for (const auto& entry : entries) {
    // An event whose entry cannot be read is listed too, so that it can be discarded.
    auto content = read_or_explain(entry.text, entry.id, std::nullopt);
    command.arg(entry.id).arg(content.event.key);
    outbox_record record;
    record.details = {.event = std::move(content.event),
                      .lane = lane,
                      .created_at = timestamp(std::chrono::milliseconds(content.created_ms)),
                      .sequence = content.sequence,
                      .last_error = std::move(content.problem)};
    records.push_back(std::move(record));
  }
  command.idempotent();
  const auto reply = client().call(command);
  const auto& parts = reply.elements();
  const auto now = read_timestamp(parts.at(0).text());
  for (std::size_t i = 0; i < records.size(); ++i) {
    auto& record = records[i];
    const auto& claim_text = parts.at(1 + 5 * i).text();
    if (claim_records != nullptr) claim_records->push_back(claim_text);
    const auto claim = parse_claim_record(claim_text).value_or(claim_record{});
    const auto& due = parts.at(2 + 5 * i).text();
    const auto& parked_at = parts.at(3 + 5 * i).text();
    const auto& head = parts.at(4 + 5 * i).text();
    const auto& last_error = parts.at(5 + 5 * i).text();
    if (!last_error.empty()) record.details.last_error = last_error;
    if (record.details.event.type.empty()) record.details.event.key = claim.key;
    record.details.deliveries = claim.deliveries;
    record.details.attempts = claim.attempts;
    record.details.replays = claim.replays;
    record.fence = claim.token;
    if (!parked_at.empty()) {
      record.state = head == record.details.event.id ? event_state::blocking : event_state::parked;
      record.until = read_timestamp(parked_at);
    } else if (due.empty()) {
      record.state = event_state::following;
      record.behind = head;
    } else if (read_timestamp(due) > now) {
      record.state = record.fence != 0 ? event_state::claimed : event_state::waiting;
      record.until = read_timestamp(due);
    }
  }
  return records;
}

std::optional<outbox_record> redis_backend::find(std::size_t lane, std::string_view id) {
  const auto entry = client().call(
      redis::command("HGET").key(lane_at(lane)[redis_lane::entries]).arg(id).idempotent());
  if (entry.is_nil()) return std::nullopt;
  auto records = read_records(lane, {{.id = std::string(id), .text = entry.text()}});
  return std::move(records.front());
}

scan_page redis_backend::scan(std::size_t lane, scan_what kind, std::string_view after,
                              std::size_t most) {
  switch (kind) {
    case scan_what::all:
      return scan_entries(lane, after, most);
    case scan_what::parked:
      return scan_parked(lane, after, most);
    case scan_what::tickets:
      return scan_tickets(lane, after, most);
  }
  return {};
}

scan_page redis_backend::scan_entries(std::size_t lane, std::string_view after,
                                      std::size_t most) const {
  auto page = read_page(client(), "HSCAN", lane_at(lane)[redis_lane::entries], after, most);
  std::vector<raw_entry> entries;
  entries.reserve(page.pairs.size());
  for (auto& [id, text] : page.pairs)
    entries.push_back({.id = std::move(id), .text = std::move(text)});
  return {.records = read_records(lane, entries), .after = std::move(page.next)};
}

scan_page redis_backend::scan_parked(std::size_t lane, std::string_view after,
                                     std::size_t most) const {
  const auto& keys = lane_at(lane);
  auto page = read_page(client(), "ZSCAN", keys[redis_lane::parked], after, most);
  if (page.pairs.empty()) return {.after = std::move(page.next)};
  const auto texts = read_fields(client(), keys[redis_lane::entries], page.pairs);
  std::vector<raw_entry> entries;
  for (std::size_t i = 0; i < page.pairs.size(); ++i) {
    if (texts.at(i).is_nil()) continue;
    entries.push_back({.id = page.pairs[i].first, .text = texts[i].text()});
  }
  return {.records = read_records(lane, entries), .after = std::move(page.next)};
}

scan_page redis_backend::scan_tickets(std::size_t lane, std::string_view after,
                                      std::size_t most) const {
  const auto& keys = lane_at(lane);
  auto page = read_page(client(), "ZSCAN", keys[redis_lane::expiry_due], after, most);
  scan_page result{.after = std::move(page.next)};
  if (page.pairs.empty()) return result;
  const auto texts = read_fields(client(), keys[redis_lane::tickets], page.pairs);
  for (std::size_t i = 0; i < page.pairs.size(); ++i) {
    if (texts.at(i).is_nil()) continue;
    const auto& [ticket, expires] = page.pairs[i];
    const auto [key, body] = split_ticket(texts[i].text());
    auto content = read_ticket(body, key);
    outbox_record record{.state = event_state::waiting, .until = read_timestamp(expires)};
    record.details.event = std::move(content.event);
    record.details.event.id = ticket;
    record.details.lane = lane;
    record.details.deliveries = 0;
    record.details.last_error = std::move(content.problem);
    result.records.push_back(std::move(record));
  }
  return result;
}

/// Compares the keys of a lane with each other, in many steps while others change them. Each
/// finding is confirmed, and repaired if asked to, by a script of its own (repair.lua).
class redis_backend::checker {
 public:
  checker(const redis_backend& backend, std::size_t lane, bool repair)
      : backend_(backend),
        client_(backend.client()),
        lane_(lane),
        keys_(backend.lane_at(lane)),
        repair_(repair) {}

  check_report run() {
    for (const auto name : meta_numbers) {
      if (confirm("meta", name)) ++report_.bad_fields;
    }
    const auto counters = client_
                              .call(redis::command("HMGET")
                                        .key(keys_[redis_lane::meta])
                                        .arg("seq")
                                        .arg("acked")
                                        .idempotent())
                              .elements();
    check_ids(redis_lane::pending, "pending");
    check_ids(redis_lane::parked, "parked");
    check_followers();
    check_heads();
    check_entries();
    check_bytes(counters);
    return report_;
  }

 private:
  [[nodiscard]] redis::command repair_command(std::string_view kind,
                                              std::string_view subject) const {
    auto command = backend_.command_for(lane_, backend_.scripts_.repair);
    command.arg(kind).arg(subject).arg(repair_ ? 1 : 0);
    return command;
  }

  /// Whether it is still inconsistent.
  [[nodiscard]] bool confirm(std::string_view kind, std::string_view subject,
                             std::string_view key = {}) const {
    auto command = repair_command(kind, subject);
    command.arg(key).idempotent(!repair_);
    return client_.call(command).integer() == 1;
  }

  /// Confirms and counts each of these names that has no entry. `id_of` gives the id of a name.
  template <class IdOf>
  void count_without_entry(std::string_view kind, const std::vector<name_and_value>& page,
                           IdOf id_of) {
    std::vector<redis::command> questions;
    questions.reserve(page.size());
    for (const auto& [name, value] : page) {
      questions.push_back(
          redis::command("HEXISTS").key(keys_[redis_lane::entries]).arg(id_of(name)).idempotent());
    }
    const auto replies = client_.pipeline(questions);
    for (std::size_t i = 0; i < page.size(); ++i) {
      if (replies.at(i).integer() == 0 && confirm(kind, page[i].first)) ++report_.without_entry;
    }
  }

  void check_ids(redis_lane::key set, std::string_view kind) {
    visit_pages(client_, "ZSCAN", keys_[set], [&](const auto& page) {
      count_without_entry(kind, page, [](std::string_view id) { return id; });
    });
  }

  void check_followers() {
    // After the key: NUL, 16 digits, 15 digits, id; see records.lua.
    constexpr std::size_t tail = 1 + 16 + 15 + id_length;
    // A shorter member, which another program wrote, has no entry.
    const auto id_of = [](std::string_view member) {
      return member.substr(member.size() - std::min(member.size(), id_length));
    };
    visit_pages(client_, "ZSCAN", keys_[redis_lane::followers], [&](const auto& page) {
      for (const auto& [member, score] : page) {
        if (member.size() >= tail) ordering_keys_.insert(member.substr(0, member.size() - tail));
        following_ids_.emplace(id_of(member));
      }
      count_without_entry("follower", page, id_of);
    });
  }

  void check_heads() {
    visit_pages(client_, "HSCAN", keys_[redis_lane::heads], [&](const auto& page) {
      for (const auto& [key, id] : page) {
        ordering_keys_.insert(key);
        keys_of_heads_.emplace(id, key);
      }
    });
    for (const auto& key : ordering_keys_) {
      if (confirm("key", key)) ++report_.without_head;
    }
  }

  void check_entries() {
    std::unordered_set<std::string> seen;
    visit_pages(client_, "HSCAN", keys_[redis_lane::entries], [&](const auto& page) {
      std::vector<raw_entry> entries;
      entries.reserve(page.size());
      for (const auto& [id, text] : page) {
        if (!seen.insert(id).second) continue;
        bytes_ += text.size();
        entries.push_back({.id = id, .text = text});
      }
      std::vector<std::string> claim_records;
      const auto records = backend_.read_records(lane_, entries, &claim_records);
      for (std::size_t i = 0; i < records.size(); ++i)
        check_record(records[i], claim_records.at(i));
    });
    report_.events = seen.size();
  }

  void check_record(const outbox_record& record, const std::string& claim_text) {
    const auto& event = record.details.event;
    const auto claim = parse_claim_record(claim_text);
    std::string key = event.key;
    // If neither its entry nor its claim record can be read, the event may still be a head.
    if (const auto head = keys_of_heads_.find(event.id);
        event.type.empty() && !claim && head != keys_of_heads_.end())
      key = head->second;
    const bool suspect = claim ? claim->key != key : !claim_text.empty() || !key.empty();
    const bool in_its_lane = key.empty() || lane_of(key, backend_.lanes()) == lane_;
    if (suspect && in_its_lane && confirm("claim", event.id, key)) ++report_.bad_fields;
    if (record.state != event_state::following || following_ids_.contains(event.id)) return;
    if (confirm("entry", event.id, key)) ++report_.without_place;
  }

  /// `counters`: `seq` and `acked` before the check. If they changed, the bytes are not compared.
  void check_bytes(const redis::reply::list& counters) {
    auto command = repair_command("bytes", std::to_string(bytes_));
    for (const auto& counter : {counters.at(0), counters.at(1)})
      command.arg(counter.is_nil() ? std::string_view() : std::string_view(counter.text()));
    command.arg(report_.events);
    report_.bytes_off = client_.call(command).integer();
  }

  const redis_backend& backend_;
  const redis::client& client_;
  std::size_t lane_;
  const redis_lane& keys_;
  bool repair_;
  std::set<std::string> ordering_keys_{};
  std::unordered_set<std::string> following_ids_{};
  std::unordered_map<std::string, std::string> keys_of_heads_{};
  std::uint64_t bytes_ = 0;
  check_report report_{};
};

check_report redis_backend::check(std::size_t lane, bool repair) {
  return checker(*this, lane, repair).run();
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
