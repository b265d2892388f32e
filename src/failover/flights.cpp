#include "failover/flights.hpp"

#include <utility>

namespace HOLDFAST_NAMESPACE {

flights::seat flights::join(const std::string& id) {
  auto& at = shard_of(id);
  const std::scoped_lock lock(at.mutex);
  const auto [found, made] = at.under_way.try_emplace(id);
  if (made) {
    try {
      found->second = std::make_shared<flight>();
    } catch (...) {
      at.under_way.erase(found);
      throw;
    }
  }
  return {.on = found->second, .leader = made};
}

void flights::land(const std::string& id, const std::shared_ptr<flight>& which, landing how) {
  {
    auto& at = shard_of(id);
    const std::scoped_lock lock(at.mutex);
    const auto found = at.under_way.find(id);
    if (found != at.under_way.end() && found->second == which) at.under_way.erase(found);
  }
  {
    const std::scoped_lock lock(which->mutex);
    which->how = std::move(how);
  }
  which->landed.notify_all();
}

}  // namespace HOLDFAST_NAMESPACE
