#include "sequence/redis/unsafe_settings.hpp"

#include <chrono>
#include <map>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::sequence {

namespace {

using namespace std::chrono_literals;
using holdfast::redis::server_report;

/// `replicated`: replicas have confirmed every block, so that a loss of the last second does no
/// harm.
void check_disk(const server_report& server, bool replicated, std::vector<std::string>& reasons) {
  if (!server.aof)
    reasons.emplace_back(
        "it keeps no append-only file, so a restart forgets what it granted; run CONFIG SET "
        "appendonly yes, or choose super_blocks");
  else if (server.appendfsync == "no")
    reasons.emplace_back(
        "it leaves it to the system when its file is synced; run CONFIG SET appendfsync always");
  else if (server.appendfsync.empty() && !replicated)
    reasons.emplace_back("it does not tell when its file is synced; allow CONFIG GET appendfsync");
  else if (server.appendfsync == "everysec" && !replicated)
    reasons.emplace_back(
        "it syncs its file once a second, so a power failure forgets what it granted in that "
        "second; run CONFIG SET appendfsync always");
}

void check_eviction(const server_report& server, std::vector<std::string>& reasons) {
  if (server.eviction.starts_with("allkeys"))
    reasons.push_back("it may evict any key when its memory is full (maxmemory-policy " +
                      server.eviction +
                      "), including counters; run CONFIG SET maxmemory-policy noeviction");
}

void check_replicas(const server_report& server, const wait_fence& fence,
                    std::vector<std::string>& reasons) {
  if (server.replicas < fence.replicas)
    reasons.push_back("it has " + std::to_string(server.replicas) + " of the " +
                      std::to_string(fence.replicas) +
                      " replicas that must confirm a block; connect them, or choose another fence");
  if (fence.on_disk && !server.can_wait_disk)
    reasons.emplace_back(
        "it has no WAITAOF, which came with Redis 7.2; choose a fence without on_disk");
}

/// The least possible difference between the server's clock and ours: the time of the round trip is
/// not counted.
std::chrono::microseconds clock_difference(const holdfast::redis::client& client,
                                           const std::string& node) {
  const auto before = std::chrono::system_clock::now();
  const auto time =
      client.call(holdfast::redis::command("TIME").idempotent(), {.node = node}).elements();
  const auto after = std::chrono::system_clock::now();
  const std::chrono::sys_time<std::chrono::microseconds> server_time{
      std::chrono::seconds(std::stoll(time.at(0).text())) +
      std::chrono::microseconds(std::stoll(time.at(1).text()))};
  if (server_time < before)
    return std::chrono::duration_cast<std::chrono::microseconds>(before - server_time);
  if (server_time > after)
    return std::chrono::duration_cast<std::chrono::microseconds>(server_time - after);
  return 0us;
}

/// "Redis 10.0.0.1:6379 and 2 others: reason"
std::string describe(const std::vector<std::string>& nodes, const std::string& reason) {
  std::string line = "Redis " + nodes.front();
  if (const auto others = nodes.size() - 1; others != 0)
    line += " and " + std::to_string(others) + (others == 1 ? " other" : " others");
  return line + ": " + reason;
}

}  // namespace

std::vector<std::string> unsafe_redis_settings(const server_report& server,
                                               const sequence_fence& fence) {
  std::vector<std::string> reasons;
  if (const auto* wait = std::get_if<wait_fence>(&fence)) {
    check_disk(server, true, reasons);
    check_eviction(server, reasons);
    if (server.role == "master") check_replicas(server, *wait, reasons);
  } else if (std::holds_alternative<no_fence>(fence)) {
    check_disk(server, false, reasons);
    check_eviction(server, reasons);
  }
  return reasons;
}

std::vector<std::string> unsafe_redis_settings(const holdfast::redis::client& client,
                                               const sequence_fence& fence) {
  // With super_blocks only the source must not forget.
  if (const auto* super = std::get_if<super_blocks>(&fence))
    return super->source->unsafe_settings();
  const auto* clock = std::get_if<clock_fence>(&fence);
  std::map<std::string, std::vector<std::string>> nodes_by_reason;
  for (const auto& node : client.nodes()) {
    try {
      for (const auto& reason : unsafe_redis_settings(client.probe(node.address), fence))
        nodes_by_reason[reason].push_back(node.address);
      if (clock == nullptr) continue;
      const auto difference = clock_difference(client, node.address);
      if (difference > clock->max_skew)
        nodes_by_reason["its clock is " + std::to_string(difference / 1ms) +
                        " ms from the clock here, more than max_skew; set the clocks, or raise it"]
            .push_back(node.address);
    } catch (const error&) {
      // A replica that is down grants nothing. It is checked when another sequence is opened.
      if (node.master) throw;
    }
  }
  std::vector<std::string> reasons;
  reasons.reserve(nodes_by_reason.size());
  for (const auto& [reason, nodes] : nodes_by_reason) reasons.push_back(describe(nodes, reason));
  return reasons;
}

}  // namespace HOLDFAST_NAMESPACE::detail::sequence
