// The workers of an outbox in memory.

#include "outbox/memory/backend.hpp"

namespace HOLDFAST_NAMESPACE::detail::outbox {

std::vector<std::string> memory_backend::announce(std::string_view worker,
                                                  std::chrono::milliseconds ttl) {
  const std::scoped_lock guard(mutex_);
  const auto now = now_ms();
  workers_.insert_or_assign(std::string(worker), now + ttl.count());
  std::erase_if(workers_, [&](const auto& entry) { return entry.second <= now; });
  std::vector<std::string> names;
  names.reserve(workers_.size());
  for (const auto& [name, until] : workers_) names.push_back(name);
  return names;
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
