#include <holdfast/outbox/backend.hpp>
#include <holdfast/outbox/options.hpp>

#include "base/uuid.hpp"

#include <array>
#include <string>

namespace HOLDFAST_NAMESPACE {
namespace {

template <std::size_t N>
std::string_view word(const std::array<std::string_view, N>& words, std::size_t index) noexcept {
  return index < N ? words[index] : "unknown";
}

}  // namespace

outbox_backend::~outbox_backend() = default;
payload_store::~payload_store() = default;

std::string new_event_id() { return uuid_v7(); }

std::string expiry_event_id(std::string_view ticket, timestamp expires_at) {
  const auto ms = std::chrono::floor<std::chrono::milliseconds>(expires_at).time_since_epoch().count();
  return uuid_v5(uuid_namespace_oid, std::string(ticket) + ':' + std::to_string(ms));
}

std::string_view to_string(durability::kind level) noexcept {
  return word<4>({"memory", "aof", "replicated", "fsynced"}, static_cast<std::size_t>(level));
}
std::string_view to_string(publish_status status) noexcept {
  return word<4>({"added", "duplicate", "in_doubt", "refused"}, static_cast<std::size_t>(status));
}
std::string_view to_string(park_policy policy) noexcept { return word<3>({"skip", "block", "park"}, static_cast<std::size_t>(policy)); }
std::string_view to_string(cancel_status status) noexcept {
  return word<3>({"cancelled", "fired", "unknown"}, static_cast<std::size_t>(status));
}
std::string_view to_string(event_state state) noexcept {
  return word<6>({"due", "waiting", "claimed", "following", "parked", "blocking"}, static_cast<std::size_t>(state));
}
std::string_view to_string(commit_status status) noexcept {
  return word<4>({"done", "applied", "condition_failed", "stale"}, static_cast<std::size_t>(status));
}

outbox_stats& outbox_stats::operator+=(const outbox_stats& other) noexcept {
  events += other.events;
  pending += other.pending;
  following += other.following;
  parked += other.parked;
  tickets += other.tickets;
  remembered += other.remembered;
  bytes += other.bytes;
  paused = paused || other.paused;
  at_least = at_least || other.at_least;
  overdue = std::max(overdue, other.overdue);
  published += other.published;
  duplicates += other.duplicates;
  claims += other.claims;
  acked += other.acked;
  retried += other.retried;
  parkings += other.parkings;
  stale += other.stale;
  fired += other.fired;
  orphans += other.orphans;
  return *this;
}

check_report& check_report::operator+=(const check_report& other) noexcept {
  events += other.events;
  without_entry += other.without_entry;
  without_place += other.without_place;
  without_head += other.without_head;
  bytes_off += other.bytes_off;
  bad_fields += other.bad_fields;
  return *this;
}

}  // namespace HOLDFAST_NAMESPACE
