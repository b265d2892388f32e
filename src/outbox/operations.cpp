#include <holdfast/outbox/operations.hpp>

#include <algorithm>

namespace HOLDFAST_NAMESPACE {

outbox_stats& outbox_stats::operator+=(const outbox_stats& other) noexcept {
  events += other.events;
  pending += other.pending;
  following += other.following;
  parked += other.parked;
  stuck += other.stuck;
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
