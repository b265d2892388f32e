#include "serve/gateway/shared_requests.hpp"

#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve::gateway {

bool shared_requests::lead_or_follow(const std::string& key, follower waiting) {
  const std::scoped_lock lock(mutex_);
  const auto [entry, is_first] = running_.try_emplace(key);
  if (!is_first) entry->second.push_back(std::move(waiting));
  return is_first;
}

void shared_requests::finish(const std::string& key, const shared_result& result) {
  std::vector<follower> followers;
  {
    const std::scoped_lock lock(mutex_);
    const auto entry = running_.find(key);
    if (entry == running_.end()) return;
    followers = std::move(entry->second);
    running_.erase(entry);
  }
  for (const auto& waiting : followers) waiting(result);
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve::gateway
