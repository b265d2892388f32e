#include "commands/redis/findings.hpp"

#include <holdfast/key/redis.hpp>

#include "base/local_host.hpp"
#include "net/address.hpp"
#include "terminal/text.hpp"

#include <utility>

namespace holdfast::cli {

namespace {

constexpr std::size_t slot_count = 16384;

void examine_transport(const redis::server_report& report, std::vector<finding>& findings) {
  if (report.encrypted || detail::is_local_host(detail::net::host_of(report.address))) return;
  findings.push_back({severity::warn,
                      "the connection to another machine is not encrypted: others can read the "
                      "password and the data",
                      "enable TLS on the server, and use rediss://"});
}

void examine_role(const redis::server_report& report, bool cluster,
                  std::vector<finding>& findings) {
  if (report.loading)
    findings.push_back({severity::bad, "it is loading its data and does not answer yet",
                        "wait until it has finished"});
  if (report.mode == "sentinel")
    findings.push_back({severity::bad, "this is a Sentinel, which keeps no data",
                        "use redis+sentinel://host:26379/mymaster"});
  if (report.mode == "cluster" && !cluster)
    findings.push_back({severity::bad, "it is a node of a Cluster and serves only its own slots",
                        "use redis+cluster://"});
  if (report.role == "slave") {
    if (!cluster)
      findings.push_back({severity::bad, "it is a replica and accepts no writes",
                          "use the address of its master"});
    if (!report.master_link)
      findings.push_back(
          {severity::bad, "it is not connected to its master and falls behind", "check its log"});
    else findings.push_back({severity::ok, "replica, connected to its master"});
  } else if (report.replicas == 0) {
    findings.push_back({severity::warn, "it has no replica: its data is lost if its machine is",
                        "add a replica, and confirm writes with WAIT"});
  } else {
    findings.push_back(
        {severity::ok, std::to_string(report.replicas) +
                           (report.replicas == 1 ? " replica in step" : " replicas in step")});
  }
  if (cluster && !report.cluster_ok)
    findings.push_back(
        {severity::bad, "it reports that its Cluster is down", "run CLUSTER INFO on it"});
  if (cluster && report.slots_covered != slot_count) {
    findings.push_back(
        {severity::bad,
         "only " + std::to_string(report.slots_covered) + " of 16384 slots are served",
         "bring the missing masters back, or assign their slots"});
  }
}

void examine_disk(const redis::server_report& report, std::vector<finding>& findings) {
  if (!report.aof) {
    findings.push_back({severity::bad,
                        "it writes no append-only file: a restart loses acknowledged writes",
                        "CONFIG SET appendonly yes"});
  } else if (report.appendfsync == "always") {
    findings.push_back(
        {severity::ok,
         "every write is synced to disk before it is acknowledged (appendfsync always)"});
  } else if (report.appendfsync.empty()) {
    findings.push_back({severity::warn,
                        "it writes an append-only file, but does not tell how often it is synced",
                        "allow CONFIG GET appendfsync"});
  } else {
    findings.push_back(
        {severity::warn,
         "a power failure may lose the latest writes (appendfsync " + report.appendfsync + ")",
         "set appendfsync to always, or confirm writes with WAIT"});
  }
  findings.push_back(
      {severity::ok, report.can_wait_disk
                         ? "it supports WAITAOF"
                         : "no WAITAOF (needs Redis 7.2): WAIT confirms replicas only"});
}

void examine_memory(const redis::server_report& report, std::vector<finding>& findings) {
  // The outbox refuses every policy but noeviction, and sequences refuse allkeys-*.
  if (!report.eviction.empty() && report.eviction != "noeviction") {
    const std::string keys =
        report.eviction.starts_with("allkeys") ? "any key" : "keys with expiry";
    findings.push_back({severity::bad,
                        (report.max_memory != 0 ? "it evicts " + keys
                                                : "with a maxmemory it would evict " + keys) +
                            " when its memory is full (maxmemory-policy " + report.eviction +
                            "), and the outbox refuses it",
                        "CONFIG SET maxmemory-policy noeviction"});
  } else {
    findings.push_back(
        {severity::ok, "it keeps keys without expiry (maxmemory-policy " + report.eviction + ")"});
  }
  if (report.evicted != 0)
    findings.push_back({severity::warn,
                        grouped(report.evicted) + " keys were evicted since it started",
                        "raise maxmemory"});
  if (report.max_memory != 0 && report.used_memory > report.max_memory / 10 * 9) {
    findings.push_back({severity::warn,
                        "it uses " + grouped(report.used_memory >> 20U) + " of " +
                            grouped(report.max_memory >> 20U) + " MiB",
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
  std::vector<finding> findings;
  examine_transport(report, findings);
  examine_role(report, cluster, findings);
  examine_disk(report, findings);
  examine_memory(report, findings);
  return findings;
}

std::optional<finding> examine_slots(const redis::client& client,
                                     const redis::server_report& report) {
  if (report.mode != "cluster") return std::nullopt;
  std::vector<std::string> keys{"123456789", "{identity:outbox}:entries",
                                "{}",        "foo{}{bar}",
                                "{{a}}",     "foo{bar}{zap}",
                                "foo{bar",   "{ }"};
  std::vector<redis::command> commands;
  commands.reserve(keys.size());
  for (const auto& key : keys)
    commands.push_back(redis::command("CLUSTER").arg("KEYSLOT").arg(key).idempotent());
  const auto replies = client.pipeline(commands, {.node = report.address});
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (!replies[i].is_integer())
      return finding{severity::warn, "it does not report the slots of keys",
                     "allow CLUSTER KEYSLOT"};
    if (replies[i].integer() == key::redis_slot(keys[i])) continue;
    return finding{severity::bad,
                   "it puts the key '" + keys[i] + "' into slot " +
                       std::to_string(replies[i].integer()) + ", not " +
                       std::to_string(key::redis_slot(keys[i])),
                   "disable the setting or proxy that changes hash tags"};
  }
  return finding{severity::ok, "it computes the same slots"};
}

std::vector<examined_server> examine_servers(const redis::client& client) {
  std::vector<examined_server> servers;
  for (auto& report : client.probe()) {
    auto& server = servers.emplace_back(examined_server{.report = std::move(report)});
    server.findings = examine(server.report, client.is_cluster());
    if (auto slots = examine_slots(client, server.report))
      server.findings.push_back(std::move(*slots));
  }
  return servers;
}

}  // namespace holdfast::cli
