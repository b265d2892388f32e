#include "redis_findings.hpp"

#include <holdfast/key/redis.hpp>

#include "base/local_host.hpp"
#include "redis/address.hpp"
#include "text.hpp"

#include <utility>

namespace holdfast::cli {

namespace {

constexpr std::size_t all_slots = 16384;

void examine_transport(const redis::server_report& report, std::vector<finding>& findings) {
  if (report.encrypted || is_local_host(redis::host_of(report.address))) return;
  findings.push_back({severity::warn,
                      "the connection to another machine is not encrypted: the password and the data can be read on the way",
                      "set up TLS on it, and use rediss://"});
}

void examine_role(const redis::server_report& r, bool cluster, std::vector<finding>& found) {
  if (r.loading) found.push_back({severity::bad, "it is reading its data and answers nothing yet", "wait until it has"});
  if (r.mode == "sentinel")
    found.push_back({severity::bad, "this is a Sentinel, which is not supported", "give the address of the master"});
  if (r.mode == "cluster" && !cluster)
    found.push_back({severity::bad, "it is a node of a Cluster, and serves only its own slots", "use redis+cluster://"});
  if (r.role == "slave") {
    if (!cluster) found.push_back({severity::bad, "it is a replica and takes no writes", "give the address of its master"});
    if (!r.master_link) found.push_back({severity::bad, "it is not connected to its master, and falls behind", "look at its log"});
    else found.push_back({severity::ok, "replica, connected to its master"});
  } else if (r.replicas == 0) {
    found.push_back({severity::warn, "it has no replica: when its machine is lost, so is its data", "add one, and confirm with WAIT"});
  } else {
    found.push_back({severity::ok, std::to_string(r.replicas) + (r.replicas == 1 ? " replica in step" : " replicas in step")});
  }
  if (cluster && !r.cluster_ok) found.push_back({severity::bad, "it says that its Cluster is down", "see CLUSTER INFO on it"});
  if (cluster && r.slots_covered != all_slots) {
    found.push_back({severity::bad, "only " + std::to_string(r.slots_covered) + " of 16384 slots are served",
                     "bring the missing masters back, or assign their slots"});
  }
}

void examine_disk(const redis::server_report& r, std::vector<finding>& found) {
  if (!r.aof) {
    found.push_back(
        {severity::bad, "it writes no append-only file: what it acknowledged is gone when it restarts", "CONFIG SET appendonly yes"});
  } else if (r.appendfsync == "always") {
    found.push_back({severity::ok, "every write is on the disk before it is acknowledged (appendfsync always)"});
  } else if (r.appendfsync.empty()) {
    found.push_back({severity::warn, "it writes an append-only file, but does not tell when it is synced", "allow CONFIG GET appendfsync"});
  } else {
    found.push_back({severity::warn, "a power failure may lose the last moments (appendfsync " + r.appendfsync + ")",
                     "appendfsync always, or confirm with WAIT"});
  }
  found.push_back({severity::ok, r.can_wait_disk ? "WAITAOF is there" : "no WAITAOF (Redis 7.2 has it): WAIT confirms replicas only"});
}

void examine_memory(const redis::server_report& r, std::vector<finding>& found) {
  const bool all_keys = r.eviction.starts_with("allkeys");
  if (all_keys && r.max_memory != 0) {
    found.push_back({severity::bad, "when its memory is full it throws away any key (maxmemory-policy " + r.eviction + ")",
                     "CONFIG SET maxmemory-policy noeviction"});
  } else if (all_keys) {
    found.push_back({severity::warn, "maxmemory-policy is " + r.eviction + ": with a maxmemory it would throw away any key",
                     "CONFIG SET maxmemory-policy noeviction"});
  } else {
    found.push_back({severity::ok, "it keeps what has no expiry (maxmemory-policy " + r.eviction + ")"});
  }
  if (r.evicted != 0) found.push_back({severity::warn, grouped(r.evicted) + " keys were thrown away since it started", "raise maxmemory"});
  if (r.max_memory != 0 && r.used_memory > r.max_memory / 10 * 9) {
    found.push_back({severity::warn, "it uses " + grouped(r.used_memory >> 20U) + " of " + grouped(r.max_memory >> 20U) + " MiB",
                     "raise maxmemory before writes are refused"});
  }
}

}  // namespace

std::string_view to_string(severity level) noexcept {
  switch (level) {
    case severity::ok:
      return "ok";
    case severity::warn:
      return "warn";
    default:
      return "bad";
  }
}

std::vector<finding> examine(const redis::server_report& report, bool cluster) {
  std::vector<finding> found;
  examine_transport(report, found);
  examine_role(report, cluster, found);
  examine_disk(report, found);
  examine_memory(report, found);
  return found;
}

std::optional<finding> examine_slots(const redis::client& with, const redis::server_report& report) {
  if (report.mode != "cluster") return std::nullopt;
  std::vector<std::string> keys{"123456789", "{identity:outbox}:entries", "{}", "foo{}{bar}", "{{a}}", "foo{bar}{zap}", "foo{bar", "{ }"};
  std::vector<redis::command> questions;
  questions.reserve(keys.size());
  for (const auto& each : keys) questions.push_back(redis::command("CLUSTER").arg("KEYSLOT").arg(each).idempotent());
  const auto replies = with.pipeline(questions, {.node = report.address});
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (!replies[i].is_integer()) return finding{severity::warn, "it does not tell the slots of keys", "allow CLUSTER KEYSLOT"};
    if (replies[i].integer() == key::redis_slot(keys[i])) continue;
    return finding{severity::bad,
                   "it puts the key '" + keys[i] + "' into the slot " + std::to_string(replies[i].integer()) + ", not " +
                       std::to_string(key::redis_slot(keys[i])),
                   "switch off what changes its hash tags"};
  }
  return finding{severity::ok, "it computes slots as we do"};
}

}  // namespace holdfast::cli
