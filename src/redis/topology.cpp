#include "redis/topology.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::redis {

namespace {

/// Limit of a refresh while there is an old map to work with.
constexpr auto max_refresh_time = std::chrono::seconds(4);
constexpr auto unresponsive_time = std::chrono::seconds(10);
constexpr std::size_t max_unresponsive = 1'000;

error no_slots_error() {
  return {
      errc::timeout, "no node of the Cluster returned the slot map in time", {.transient = true}};
}

}  // namespace

topology::topology(const settings& configured, slots_query query, counters& counted)
    : settings_(configured), query_(std::move(query)), counters_(counted) {}

std::shared_ptr<const slot_map> topology::last_known() {
  const std::scoped_lock lock(mutex_);
  return map_;
}

std::shared_ptr<const slot_map> topology::current(steady::time_point deadline) {
  std::uint64_t seen_version = 0;
  {
    const std::scoped_lock lock(mutex_);
    if (map_ && (!stale_ || steady::now() < next_refresh_)) return map_;
    seen_version = version_;
  }
  const std::unique_lock refresh_lock(refreshing_, deadline);
  std::shared_ptr<const slot_map> old;
  {
    const std::scoped_lock lock(mutex_);
    // The thread that refreshed before may have refreshed the map, or found that no node
    // answers.
    if (map_ &&
        (version_ != seen_version || !refresh_lock.owns_lock() || steady::now() < next_refresh_))
      return map_;
    old = map_;
  }
  if (!refresh_lock.owns_lock()) throw no_slots_error();
  try {
    return query(old ? std::min(deadline, steady::now() + max_refresh_time) : deadline);
  } catch (const error&) {
    if (!old) throw;
    // The old map may still be right. It stays stale, so the next refresh is soon.
    const std::scoped_lock lock(mutex_);
    delay_next_refresh();
    return old;
  }
}

std::shared_ptr<const slot_map> topology::refresh(steady::time_point deadline) {
  const std::unique_lock refresh_lock(refreshing_, deadline);
  if (!refresh_lock.owns_lock()) throw no_slots_error();
  return query(deadline);
}

/// Avoids that a client asks again and again, and that all clients ask at the same time. Requires
/// the lock.
void topology::delay_next_refresh() {
  next_refresh_ = steady::now() + std::chrono::milliseconds(50 + random_() % 50);
}

/// Returns all nodes in random order, so that many clients do not all ask the same one.
/// Unresponsive nodes come last.
std::vector<std::string> topology::nodes_to_ask() {
  const std::scoped_lock lock(mutex_);
  std::vector<std::string> nodes;
  if (map_) {
    for (const auto& node : map_->nodes()) nodes.push_back(node.address);
  }
  for (const auto& address : settings_.addresses) {
    if (std::ranges::find(nodes, address) == nodes.end()) nodes.push_back(address);
  }
  std::shuffle(nodes.begin(), nodes.end(), random_);
  const auto now = steady::now();
  std::erase_if(unresponsive_, [&](const auto& entry) { return entry.second < now; });
  std::partition(nodes.begin(), nodes.end(),
                 [this](const std::string& address) { return !unresponsive_.contains(address); });
  return nodes;
}

/// Throws if the reply is an error, or not a slot map.
std::shared_ptr<const slot_map> topology::read_slots(const reply& answer,
                                                     const std::string& node) const {
  if (answer.is_error() &&
      answer.problem().message().find("cluster support disabled") != std::string::npos)
    throw error(errc::invalid_argument,
                "Redis at " + node +
                    " is not part of a Cluster; write redis:// instead of redis+cluster://");
  auto map = std::make_shared<const slot_map>(answer, node, settings_.options.translate);
  if (map->nodes().empty())
    throw error(errc::unavailable,
                "Redis at " + node + " knows no slots; its Cluster is not formed yet",
                {.transient = true});
  return map;
}

std::shared_ptr<const slot_map> topology::query(steady::time_point deadline) {
  std::shared_ptr<const slot_map> map;
  std::optional<error> last_problem;
  query_(nodes_to_ask(), deadline, [&](const std::string& node, const reply& answer) {
    try {
      map = read_slots(answer, node);
      return true;
    } catch (const error& problem) {
      if (!problem.transient()) throw;
      mark_unresponsive(node);
      last_problem = problem;
      return false;
    }
  });
  if (!map) throw last_problem ? *last_problem : no_slots_error();
  ++counters_.refreshes;
  const std::scoped_lock lock(mutex_);
  map_ = map;
  stale_ = false;
  ++version_;
  delay_next_refresh();
  return map;
}

void topology::mark_stale() noexcept {
  const std::scoped_lock lock(mutex_);
  stale_ = true;
}

void topology::move_slot(std::uint16_t slot, const std::string& address) {
  const auto& translate = settings_.options.translate;
  const std::string target = translate ? translate(address) : address;
  const std::scoped_lock lock(mutex_);
  if (!map_) return;
  const auto* master = map_->master_of(slot);
  if (master != nullptr && *master == target) return;
  auto changed = std::make_shared<slot_map>(*map_);
  changed->move(slot, target);
  map_ = std::move(changed);
}

void topology::mark_unresponsive(const std::string& node) {
  const std::scoped_lock lock(mutex_);
  if (unresponsive_.size() >= max_unresponsive) unresponsive_.clear();
  unresponsive_[node] = steady::now() + unresponsive_time;
}

}  // namespace HOLDFAST_NAMESPACE::detail::redis
