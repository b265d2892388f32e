// Statistics, search and consistency check of an outbox in memory.

#include "outbox/memory/backend.hpp"

#include <algorithm>
#include <set>

namespace HOLDFAST_NAMESPACE::detail::outbox {
namespace {

scan_page scan_memory_tickets(const memory_lane& lane, std::string_view after, std::size_t most) {
  scan_page page;
  auto ticket = lane.tickets.upper_bound(after);
  for (; ticket != lane.tickets.end() && page.records.size() < most; ++ticket) {
    const auto& [name, becomes] = *ticket;
    outbox_record record{.state = event_state::waiting,
                         .until = timestamp_at(lane.expiry_due.score(name).value_or(0))};
    record.details.event = becomes;
    record.details.event.id = name;
    record.details.lane = lane.number;
    record.details.deliveries = 0;
    page.records.push_back(std::move(record));
    page.after = name;
  }
  if (ticket == lane.tickets.end()) page.after.clear();
  return page;
}

}  // namespace

outbox_stats memory_backend::stats(std::size_t lane_number) {
  const std::scoped_lock guard(mutex_);
  auto& lane = lane_at(lane_number);
  outbox_stats result = lane.counters;
  result.events = lane.entries.size();
  result.pending = lane.pending.size();
  for (const auto& [key, queue] : lane.followers) result.following += queue.size();
  result.parked = lane.parked.size();
  result.tickets = lane.tickets.size();
  result.remembered = lane.done.size();
  result.bytes = lane.bytes;
  result.paused = lane.paused;
  const auto now = now_ms();
  for (const auto first : {lane.pending.first_score(), lane.expiry_due.first_score()}) {
    if (first) result.overdue = std::max(result.overdue, std::chrono::milliseconds(now - *first));
  }
  return result;
}

std::optional<outbox_record> memory_backend::find(std::size_t lane_number, std::string_view id) {
  const std::scoped_lock guard(mutex_);
  auto& lane = lane_at(lane_number);
  const auto entry = lane.entries.find(id);
  if (entry == lane.entries.end()) return std::nullopt;
  return lane.record_of(entry->second, now_ms());
}

scan_page memory_backend::scan(std::size_t lane_number, scan_what kind, std::string_view after,
                               std::size_t most) {
  const std::scoped_lock guard(mutex_);
  auto& lane = lane_at(lane_number);
  if (kind == scan_what::tickets) return scan_memory_tickets(lane, after, most);
  const auto now = now_ms();
  scan_page page;
  auto entry = lane.entries.upper_bound(after);
  for (; entry != lane.entries.end() && page.records.size() < most; ++entry) {
    page.after = entry->first;
    if (kind == scan_what::parked && !lane.parked.score(entry->first)) continue;
    page.records.push_back(lane.record_of(entry->second, now));
  }
  if (entry == lane.entries.end()) page.after.clear();
  return page;
}

check_report memory_backend::check(std::size_t lane_number, bool /*repair*/) {
  const std::scoped_lock guard(mutex_);
  auto& lane = lane_at(lane_number);
  check_report report{.events = lane.entries.size()};
  std::set<std::string> reachable;
  const auto visit = [&](const std::string& id) {
    reachable.insert(id);
    if (!lane.entries.contains(id)) ++report.without_entry;
  };
  for (const auto& [score, id] : lane.pending.members()) visit(id);
  for (const auto& [score, id] : lane.parked.members()) visit(id);
  for (const auto& [key, queue] : lane.followers) {
    if (!lane.heads.contains(key)) ++report.without_head;
    for (const auto& [sequence, follower] : queue) visit(follower.id);
  }
  std::uint64_t bytes = 0;
  for (const auto& [id, stored] : lane.entries) {
    bytes += stored.bytes;
    if (!reachable.contains(id)) ++report.without_place;
  }
  report.bytes_off = static_cast<std::int64_t>(lane.bytes) - static_cast<std::int64_t>(bytes);
  return report;
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
