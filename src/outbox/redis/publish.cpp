// Publishing on Redis, and commits of events together with the caller's keys.

#include <holdfast/error.hpp>

#include "outbox/redis/backend.hpp"
#include "outbox/redis/wire.hpp"

#include <algorithm>
#include <array>

namespace HOLDFAST_NAMESPACE::detail::outbox {
namespace {

/// In the order of their enumerators.
constexpr std::array<std::string_view, 4> condition_names{"exists", "absent", "equals", "missing"};
constexpr std::array<std::string_view, 6> write_names{"set",         "erase", "set_field",
                                                      "erase_field", "add",   "add_to_field"};

/// The caller's keys, each once. In KEYS of the script they follow those of the lane.
class caller_keys {
 public:
  /// Index in KEYS, which begins with 1.
  std::size_t index_of(std::string_view key) {
    const auto position = std::find(keys_.begin(), keys_.end(), key);
    const auto index = static_cast<std::size_t>(position - keys_.begin());
    if (position == keys_.end()) keys_.push_back(key);
    return redis_lane::key_count + 1 + index;
  }
  [[nodiscard]] const std::vector<std::string_view>& list() const noexcept { return keys_; }

 private:
  std::vector<std::string_view> keys_{};
};

void add_commit_arguments(redis::command& command, const commit_request& request,
                          const publish_terms& terms) {
  caller_keys keys;
  for (const auto& condition : request.conditions) (void)keys.index_of(condition.key);
  for (const auto& write : request.writes) (void)keys.index_of(write.key);
  for (const auto key : keys.list()) command.key(key);
  add_quota(command, terms.quota);
  command.arg(terms.dedup_window.count()).arg(terms.dedup_limit);
  command.arg(request.once).arg(request.fence).arg(request.once_key);
  command.arg(request.conditions.size()).arg(request.writes.size()).arg(request.events.size());
  for (const auto& condition : request.conditions) {
    command.arg(condition_names.at(static_cast<std::size_t>(condition.test)))
        .arg(keys.index_of(condition.key))
        .arg(condition.field)
        .arg(condition.value);
  }
  for (const auto& write : request.writes) {
    const bool adds =
        write.action == commit_write::kind::add || write.action == commit_write::kind::add_to_field;
    command.arg(write_names.at(static_cast<std::size_t>(write.action)))
        .arg(keys.index_of(write.key))
        .arg(write.field)
        .arg(adds ? std::to_string(write.number) : write.value);
  }
  for (const auto& event : request.events) add_event(command, event);
}

}  // namespace

std::vector<receipt> redis_backend::publish(std::size_t lane, std::span<const event> events,
                                            const publish_terms& terms) {
  auto command = command_for(lane, scripts_.publish);
  add_quota(command, terms.quota);
  command.arg(terms.dedup_window.count());
  for (const auto& event : events) add_event(command, event);
  // Sent again, the script finds its own ids: in the entries, or among the remembered ones if the
  // events were delivered in between.
  command.idempotent(terms.dedup_window.count() > 0);
  const auto same_for_all = [&](publish_status status, const error& problem) {
    std::vector<receipt> receipts;
    receipts.reserve(events.size());
    for (const auto& event : events)
      receipts.push_back({.id = event.id, .status = status, .problem = problem});
    return receipts;
  };
  try {
    const auto reply = run_durably(std::move(command), terms.durability);
    const auto& parts = reply.elements();
    if (is_over_quota(parts)) return same_for_all(publish_status::refused, quota_error(parts));
    return read_receipts(events, parts.at(1));
  } catch (const error& problem) {
    return same_for_all(problem.in_doubt() ? publish_status::in_doubt : publish_status::refused,
                        problem);
  }
}

committed redis_backend::commit(std::size_t lane, const commit_request& request,
                                const publish_terms& terms) {
  if (!request.once.empty() && terms.dedup_window.count() == 0)
    throw error(errc::invalid_argument, "effect_once requires dedup_window > 0");
  auto command = command_for(lane, scripts_.commit);
  add_commit_arguments(command, request, terms);
  const auto reply = run_durably(std::move(command), terms.durability);
  const auto& parts = reply.elements();
  const auto& status = parts.at(0).text();
  if (is_over_quota(parts)) throw quota_error(parts);
  if (status == "wrong") {
    throw error(errc::invalid_argument,
                "the key '" + parts.at(1).text() +
                    "' has another type than the commit expects; nothing was written");
  }
  if (status == "number") {
    throw error(errc::invalid_argument,
                "the value of '" + parts.at(1).text() +
                    "' is not a whole number of at most 15 digits; nothing was written");
  }
  if (status == "applied") return {.status = commit_status::applied};
  if (status == "stale") return {.status = commit_status::stale};
  if (status == "failed") {
    return {.status = commit_status::condition_failed,
            .failed = static_cast<std::size_t>(parts.at(1).integer())};
  }
  return {.receipts = read_receipts(request.events, parts.at(1))};
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
