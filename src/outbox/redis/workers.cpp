// The workers of an outbox on Redis. They are in the slot of its first lane.

#include "outbox/redis/backend.hpp"

#include <algorithm>

namespace HOLDFAST_NAMESPACE::detail::outbox {

std::vector<std::string> redis_backend::announce(std::string_view worker,
                                                 std::chrono::milliseconds ttl) {
  auto command = command_for(0, scripts_.workers);
  command.key(lane_at(0).prefix + ":workers");
  command.arg(worker).arg(ttl.count()).idempotent();
  std::vector<std::string> names;
  for (const auto& name : client().call(command).elements()) names.push_back(name.text());
  std::ranges::sort(names);
  return names;
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
