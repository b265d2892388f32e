#include "redis/topology.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace HOLDFAST_NAMESPACE::redis {

namespace {

constexpr auto longest_question = std::chrono::seconds(4);  // where there is an old map to go on with
constexpr auto suspicion = std::chrono::seconds(10);
constexpr std::size_t most_suspects = 1'000;

}  // namespace

topology::topology(const settings& from, question ask, counters& count) : from_(from), ask_(std::move(ask)), count_(count) {}

std::shared_ptr<const slot_map> topology::current(steady::time_point deadline) {
  std::uint64_t seen = 0;
  {
    const std::scoped_lock lock(mutex_);
    if (map_ && (!stale_ || steady::now() < not_before_)) return map_;
    seen = version_;
  }
  const std::unique_lock turn(asking_, deadline);
  std::shared_ptr<const slot_map> old;
  {
    const std::scoped_lock lock(mutex_);
    // Whoever had the turn before has asked, or found that nobody answers.
    if (map_ && (version_ != seen || !turn.owns_lock() || steady::now() < not_before_)) return map_;
    old = map_;
  }
  if (!turn.owns_lock()) throw error(errc::timeout, "no node of the Cluster said in time where its slots are", {.transient = true});
  try {
    return ask(old ? std::min(deadline, steady::now() + longest_question) : deadline);
  } catch (const error&) {
    if (!old) throw;
    // An old map is better than none: it is still out of date, and asked for again soon.
    const std::scoped_lock lock(mutex_);
    not_before_ = steady::now() + std::chrono::milliseconds(50 + random_() % 50);
    return old;
  }
}

std::shared_ptr<const slot_map> topology::ask_again(steady::time_point deadline) {
  const std::unique_lock turn(asking_, deadline);
  if (!turn.owns_lock()) throw error(errc::timeout, "no node of the Cluster said in time where its slots are", {.transient = true});
  return ask(deadline);
}

/// Any node will do. They are asked in a random order, so that many clients do not all ask the same one; those that did not answer
/// lately come last.
std::vector<std::string> topology::candidates() {
  const std::scoped_lock lock(mutex_);
  std::vector<std::string> all;
  if (map_) {
    for (const auto& each : map_->nodes()) all.push_back(each.address);
  }
  for (const auto& each : from_.seeds) {
    if (std::find(all.begin(), all.end(), each) == all.end()) all.push_back(each);
  }
  std::shuffle(all.begin(), all.end(), random_);
  const auto now = steady::now();
  std::erase_if(suspects_, [&](const auto& each) { return each.second < now; });
  const auto trusted = [this](const std::string& each) { return !suspects_.contains(each); };
  std::partition(all.begin(), all.end(), trusted);
  return all;
}

/// Throws what is wrong with the answer.
std::shared_ptr<const slot_map> topology::read(const reply& answer, const std::string& node) const {
  if (answer.is_error() && answer.problem().message().find("cluster support disabled") != std::string::npos)
    throw error(errc::invalid_argument, "Redis at " + node + " is not part of a Cluster; write redis:// instead of redis+cluster://");
  auto made = std::make_shared<const slot_map>(answer, node, from_.how.translate);
  if (made->nodes().empty())
    throw error(errc::unavailable, "Redis at " + node + " knows no slots; its Cluster is not formed yet", {.transient = true});
  return made;
}

std::shared_ptr<const slot_map> topology::ask(steady::time_point deadline) {
  std::shared_ptr<const slot_map> made;
  std::optional<error> last;
  ask_(candidates(), deadline, [&](const std::string& node, const reply& answer) {
    try {
      made = read(answer, node);
      return true;
    } catch (const error& failed) {
      if (!failed.transient()) throw;
      suspect(node);
      last = failed;
      return false;
    }
  });
  if (!made) {
    if (last) throw error(*last);
    throw error(errc::timeout, "no node of the Cluster said in time where its slots are", {.transient = true});
  }
  ++count_.refreshes;
  const std::scoped_lock lock(mutex_);
  map_ = made;
  stale_ = false;
  ++version_;
  // Not all clients at the same time, and none again and again.
  not_before_ = steady::now() + std::chrono::milliseconds(50 + random_() % 50);
  return made;
}

void topology::set_stale() noexcept {
  const std::scoped_lock lock(mutex_);
  stale_ = true;
}

void topology::learn(std::uint16_t slot, const std::string& address) {
  const std::string where = from_.how.translate ? from_.how.translate(address) : address;
  const std::scoped_lock lock(mutex_);
  if (!map_) return;
  const auto* known = map_->master_of(slot);
  if (known != nullptr && *known == where) return;
  auto changed = std::make_shared<slot_map>(*map_);
  changed->move(slot, where);
  map_ = std::move(changed);
}

void topology::suspect(const std::string& node) {
  const std::scoped_lock lock(mutex_);
  if (suspects_.size() >= most_suspects) suspects_.clear();
  suspects_[node] = steady::now() + suspicion;
}

}  // namespace HOLDFAST_NAMESPACE::redis
