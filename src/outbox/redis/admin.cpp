// Parked events, tickets, the pause and the lock of an outbox on Redis.

#include "outbox/entry.hpp"
#include "outbox/redis/backend.hpp"
#include "outbox/redis/wire.hpp"

#include <algorithm>

namespace HOLDFAST_NAMESPACE::detail::outbox {

std::vector<bool> redis_backend::run_on_ids(std::size_t lane, const redis::script& script,
                                            std::span<const std::string> ids) const {
  auto command = command_for(lane, script);
  for (const auto& id : ids) command.arg(id);
  return read_flags(client().call(command));
}

std::vector<bool> redis_backend::replay(std::size_t lane, std::span<const std::string> ids) {
  return run_on_ids(lane, scripts_.replay, ids);
}

std::vector<bool> redis_backend::discard(std::size_t lane, std::span<const std::string> ids) {
  return run_on_ids(lane, scripts_.discard, ids);
}

void redis_backend::pause(std::size_t lane, bool paused) {
  auto command = command_for(lane, scripts_.pause);
  command.arg(paused ? 1 : 0).idempotent();
  (void)client().call(command);
}

scheduled redis_backend::schedule(std::size_t lane, std::string_view ticket,
                                  std::optional<timestamp> expires_at,
                                  std::chrono::milliseconds delay, const event& becomes,
                                  const publish_terms& terms) {
  auto command = command_for(lane, scripts_.schedule);
  add_quota(command, terms.quota);
  const auto expires_ms =
      expires_at ? std::to_string(std::chrono::floor<std::chrono::milliseconds>(*expires_at)
                                      .time_since_epoch()
                                      .count())
                 : std::string();
  command.arg(ticket).arg(expires_ms).arg(delay.count());
  command.arg(becomes.key).arg(entry_body(becomes));
  command.idempotent(expires_at.has_value());
  const auto reply = run_durably(std::move(command), terms.durability);
  const auto& parts = reply.elements();
  if (is_over_quota(parts)) throw quota_error(parts);
  scheduled result{.expires_at = read_timestamp(parts.at(1).text())};
  if (!parts.at(2).text().empty()) result.before = read_timestamp(parts.at(2).text());
  return result;
}

cancel_status redis_backend::cancel(std::size_t lane, std::string_view ticket) {
  auto command = command_for(lane, scripts_.cancel);
  command.arg(ticket);
  const auto status = client().call(command).text();
  if (status == "cancelled") return cancel_status::cancelled;
  return status == "fired" ? cancel_status::fired : cancel_status::unknown;
}

drained redis_backend::drain(std::size_t lane, std::size_t most, const publish_terms& terms) {
  auto command = command_for(lane, scripts_.drain);
  command.arg(most).arg(terms.dedup_window.count()).arg(terms.dedup_limit);
  const auto reply = client().call(command);
  const auto& parts = reply.elements();
  return {.tickets = static_cast<std::size_t>(parts.at(0).integer()),
          .next = read_duration(parts.at(1))};
}

lock_grant redis_backend::update_lock(std::size_t lane, std::string_view owner,
                                      std::chrono::milliseconds ttl, bool takes_free_lock) const {
  auto command = command_for(lane, scripts_.lock);
  command.arg(owner).arg(ttl.count()).arg(takes_free_lock ? 1 : 0).idempotent();
  const auto reply = client().call(command);
  const auto& parts = reply.elements();
  return {.held = parts.at(0).integer() == 1,
          .fence = read_number(parts.at(1)),
          .holder = parts.at(2).text(),
          .remaining = std::chrono::milliseconds(std::max<std::int64_t>(parts.at(3).integer(), 0))};
}

lock_grant redis_backend::lock(std::size_t lane, std::string_view owner,
                               std::chrono::milliseconds ttl) {
  return update_lock(lane, owner, ttl, true);
}

lock_grant redis_backend::renew(std::size_t lane, std::string_view owner,
                                std::chrono::milliseconds ttl) {
  return update_lock(lane, owner, ttl, false);
}

bool redis_backend::unlock(std::size_t lane, std::string_view owner) {
  auto command = command_for(lane, scripts_.unlock);
  command.arg(owner);
  return client().call(command).integer() == 1;
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
