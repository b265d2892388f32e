#include "failover/single_flight.hpp"

namespace HOLDFAST_NAMESPACE::detail::failover {

single_flight::membership single_flight::join(const std::string& id) {
  auto& calls = shard_of(id);
  const std::scoped_lock lock(calls.mutex);
  if (const auto running = calls.running.find(id); running != calls.running.end())
    return {.call = running->second, .leader = false};
  auto call = std::make_shared<shared_call>();
  calls.running.emplace(id, call);
  return {.call = std::move(call), .leader = true};
}

void single_flight::give_up(const std::string& id, const std::shared_ptr<shared_call>& call) {
  auto& calls = shard_of(id);
  const std::scoped_lock lock(calls.mutex);
  const auto running = calls.running.find(id);
  if (running != calls.running.end() && running->second == call) calls.running.erase(running);
}

void single_flight::finish(const std::string& id, const std::shared_ptr<shared_call>& call,
                           shared_result result) {
  give_up(id, call);
  {
    const std::scoped_lock lock(call->mutex);
    call->result = std::move(result);
  }
  call->finished.notify_all();
}

}  // namespace HOLDFAST_NAMESPACE::detail::failover
