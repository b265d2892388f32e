// Statistics and search of an outbox on Redis.

#include "outbox/entry.hpp"
#include "outbox/redis/backend.hpp"
#include "outbox/redis/check.hpp"
#include "outbox/redis/records.hpp"
#include "outbox/redis/wire.hpp"

#include <charconv>
#include <optional>
#include <string>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::outbox {
namespace {

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
    std::size_t lane, const std::vector<raw_entry>& entries) const {
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
    const auto claim = parse_claim_record(parts.at(1 + 5 * i).text()).value_or(claim_record{});
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
  auto page = read_scan_page(client(), "HSCAN", lane_at(lane)[redis_lane::entries], after, most);
  std::vector<raw_entry> entries;
  entries.reserve(page.pairs.size());
  for (auto& [id, text] : page.pairs)
    entries.push_back({.id = std::move(id), .text = std::move(text)});
  return {.records = read_records(lane, entries), .after = std::move(page.next)};
}

scan_page redis_backend::scan_parked(std::size_t lane, std::string_view after,
                                     std::size_t most) const {
  const auto& keys = lane_at(lane);
  auto page = read_scan_page(client(), "ZSCAN", keys[redis_lane::parked], after, most);
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
  auto page = read_scan_page(client(), "ZSCAN", keys[redis_lane::expiry_due], after, most);
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

check_report redis_backend::check(std::size_t lane, bool repair) {
  auto report = redis_lane_checker(client(), lane_at(lane), scripts_.repair,
                                   {.lane = lane, .lanes = lanes(), .repair = repair})
                    .run();
  if (lane == 0) report.bad_fields += check_layout_fields(repair);
  return report;
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
