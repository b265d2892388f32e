#include "sequence/redis_fitness.hpp"

#include <chrono>
#include <map>
#include <utility>

namespace HOLDFAST_NAMESPACE {

namespace {

using namespace std::chrono_literals;

void about_disk(const redis::server_report& server, bool confirmed_elsewhere, std::vector<std::string>& reasons) {
  if (!server.aof)
    reasons.emplace_back(
        "it keeps no append-only file, so a restart forgets what it granted; say CONFIG SET appendonly yes, or choose super_blocks");
  else if (server.appendfsync == "no")
    reasons.emplace_back("it leaves it to the system when its file is synced; say CONFIG SET appendfsync always");
  else if (server.appendfsync.empty() && !confirmed_elsewhere)
    reasons.emplace_back("it does not tell when its file is synced; allow CONFIG GET appendfsync");
  else if (server.appendfsync == "everysec" && !confirmed_elsewhere)
    reasons.emplace_back(
        "it syncs its file once a second, so a power failure forgets what it granted in that second; say CONFIG SET appendfsync always");
}

void about_memory(const redis::server_report& server, std::vector<std::string>& reasons) {
  if (server.eviction.starts_with("allkeys"))
    reasons.push_back("it throws away any key when its memory is full (maxmemory-policy " + server.eviction +
                      "), counters too; say CONFIG SET maxmemory-policy noeviction");
}

void about_replicas(const redis::server_report& server, const wait_fence& fence, std::vector<std::string>& reasons) {
  if (server.replicas < fence.replicas)
    reasons.push_back("it has " + std::to_string(server.replicas) + " of the " + std::to_string(fence.replicas) +
                      " replicas that must confirm a block; connect them, or choose another fence");
  if (fence.on_disk && !server.can_wait_disk)
    reasons.emplace_back("it has no WAITAOF, which came with Redis 7.2; choose a fence without on_disk");
}

/// How far the server's clock is from ours, at least: the way there and back is taken off.
std::chrono::microseconds clock_difference(const redis::client& redis, const std::string& node) {
  const auto before = std::chrono::system_clock::now();
  const auto answer = redis.call(redis::command("TIME").idempotent(), {.node = node}).elements();
  const auto after = std::chrono::system_clock::now();
  const std::chrono::sys_time<std::chrono::microseconds> there{std::chrono::seconds(std::stoll(answer.at(0).text())) +
                                                               std::chrono::microseconds(std::stoll(answer.at(1).text()))};
  if (there < before) return std::chrono::duration_cast<std::chrono::microseconds>(before - there);
  if (there > after) return std::chrono::duration_cast<std::chrono::microseconds>(there - after);
  return 0us;
}

}  // namespace

std::vector<std::string> reasons_against(const redis::server_report& server, const sequence_fence& fence) {
  std::vector<std::string> reasons;
  if (const auto* wait = std::get_if<wait_fence>(&fence)) {
    about_disk(server, true, reasons);
    about_memory(server, reasons);
    if (server.role == "master") about_replicas(server, *wait, reasons);
  } else if (std::holds_alternative<no_fence>(fence)) {
    about_disk(server, false, reasons);
    about_memory(server, reasons);
  }
  return reasons;
}

std::vector<std::string> reasons_against(const redis::client& redis, const sequence_fence& fence) {
  // What Redis forgets does not matter where the large blocks come from a store that forgets nothing.
  if (const auto* super = std::get_if<super_blocks>(&fence)) return super->from->unsafe_settings();
  std::map<std::string, std::vector<std::string>> found;  // a reason, and who gives it
  for (const auto& node : redis.nodes()) {
    try {
      for (auto& reason : reasons_against(redis.probe(node.address), fence)) found[std::move(reason)].push_back(node.address);
      const auto* clock = std::get_if<clock_fence>(&fence);
      if (clock == nullptr) continue;
      const auto apart = clock_difference(redis, node.address);
      if (apart > clock->max_skew)
        found["its clock is " + std::to_string(apart / 1ms) + " ms from the clock here, more than max_skew; set the clocks, or raise it"]
            .push_back(node.address);
    } catch (const error& problem) {
      // A replica that is down is not the one that grants; it is looked at when it is back and somebody opens a sequence.
      if (node.master) throw;
    }
  }
  std::vector<std::string> reasons;
  for (const auto& [reason, nodes] : found) {
    const auto others = nodes.size() - 1;
    std::string line = "Redis ";
    line.append(nodes.front());
    if (others != 0) line.append(" and ").append(std::to_string(others)).append(others == 1 ? " other" : " others");
    reasons.push_back(std::move(line.append(": ").append(reason)));
  }
  return reasons;
}

}  // namespace HOLDFAST_NAMESPACE
