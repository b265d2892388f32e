#include "outbox/redis/backend.hpp"

#include <holdfast/error.hpp>

#include <utility>

namespace HOLDFAST_NAMESPACE::detail::outbox {
namespace {

/// Throws an error in doubt unless the reply of WAIT or WAITAOF confirms what is required.
void check_confirmation(const redis::reply& reply, const durability& required) {
  const auto unconfirmed = [](const std::string& reason) {
    return error(errc::timeout,
                 reason + ": it may be lost in a failover; publish it again with the same id",
                 {.transient = true, .in_doubt = true});
  };
  if (reply.is_error())
    throw unconfirmed("the server did not confirm that its replicas have it (" +
                      std::string(reply.problem().what()) + ")");
  const auto replicas = static_cast<std::int64_t>(required.replicas);
  if (required.level == durability::kind::fsynced) {
    const auto& parts = reply.elements();
    if (parts.at(0).integer() < 1) throw unconfirmed("it is not synced to the server's disk yet");
    if (parts.at(1).integer() < replicas)
      throw unconfirmed("it is not synced on enough replicas yet");
  } else if (reply.integer() < replicas) {
    throw unconfirmed(std::to_string(reply.integer()) + " of " + std::to_string(replicas) +
                      " replicas have it");
  }
}

}  // namespace

const redis_lane& redis_backend::lane_at(std::size_t lane) const {
  if (chooses_prefix_) (void)client();
  if (lane >= lane_count_)
    throw error(errc::invalid_argument, "there is no lane " + std::to_string(lane));
  return lanes_[lane];
}

redis::command redis_backend::command_for(std::size_t lane, const redis::script& script) const {
  redis::command command(script);
  for (const auto& key : lane_at(lane).keys) command.key(key);
  return command;
}

redis::reply redis_backend::run_durably(redis::command command, const durability& required) const {
  const bool waits_for_disk = required.level == durability::kind::fsynced;
  if (!waits_for_disk && required.level != durability::kind::replicated)
    return client().call(command);
  std::vector<redis::command> commands;
  commands.push_back(std::move(command));
  commands.push_back(waits_for_disk
                         ? redis::wait_for_disk(1, required.replicas, required.timeout)
                         : redis::wait_for_replicas(required.replicas, required.timeout));
  auto replies =
      client().pipeline(commands, {.timeout = required.timeout + std::chrono::seconds(5)});
  auto result = std::move(replies.at(0));
  (void)result.checked();
  check_confirmation(replies.at(1), required);
  return result;
}

bool redis_backend::wait(std::size_t lane, std::chrono::milliseconds longest) {
  const auto& list = lane_at(lane)[redis_lane::wake];
  if (longest.count() < 1) return !client().call(redis::command("LPOP").key(list)).is_nil();
  auto fraction = std::to_string(longest.count() % 1000);
  fraction.insert(0, 3 - fraction.size(), '0');
  const auto seconds = std::to_string(longest.count() / 1000) + '.' + fraction;
  const auto reply = client().call(redis::command("BLPOP").key(list).arg(seconds),
                                   {.timeout = longest + std::chrono::seconds(5)});
  return !reply.is_nil();
}

// The timeout is short: a worker that waits claims again by itself soon.
void redis_backend::wake(std::size_t lane) {
  // No thread waits before the first use.
  if (chooses_prefix_ && !first_use_.done()) return;
  (void)client_->call(redis::command("RPUSH").key(lane_at(lane)[redis_lane::wake]).arg("1"),
                      {.timeout = std::chrono::seconds(1)});
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
