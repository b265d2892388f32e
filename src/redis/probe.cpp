#include "redis/probe.hpp"

#include <charconv>
#include <map>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::redis {

namespace {

/// The lines `name:value` of INFO and CLUSTER INFO.
class info {
 public:
  explicit info(std::string_view text) {
    while (!text.empty()) {
      const auto end = text.find('\n');
      std::string_view line = text.substr(0, end);
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
      if (line.ends_with('\r')) line.remove_suffix(1);
      const auto colon = line.find(':');
      if (colon != std::string_view::npos) held_[std::string(line.substr(0, colon))] = line.substr(colon + 1);
    }
  }

  [[nodiscard]] std::string text(std::string_view name) const {
    const auto found = held_.find(name);
    return found == held_.end() ? std::string() : found->second;
  }
  [[nodiscard]] std::uint64_t number(std::string_view name) const {
    const auto found = text(name);
    std::uint64_t value = 0;
    std::from_chars(found.data(), found.data() + found.size(), value);
    return value;
  }
  /// slave0:ip=127.0.0.1,port=7001,state=online,offset=14,lag=0
  [[nodiscard]] std::size_t online_replicas() const {
    std::size_t count = 0;
    for (const auto& [name, value] : held_) {
      if (name.starts_with("slave") && value.find("state=online") != std::string::npos) ++count;
    }
    return count;
  }

 private:
  std::map<std::string, std::string, std::less<>> held_{};
};

bool at_least(std::string_view version, unsigned major, unsigned minor) {
  unsigned found_major = 0;
  unsigned found_minor = 0;
  const auto [dot, failed] = std::from_chars(version.data(), version.data() + version.size(), found_major);
  if (failed != std::errc{}) return false;
  if (dot != version.data() + version.size()) std::from_chars(dot + 1, version.data() + version.size(), found_minor);
  return found_major > major || (found_major == major && found_minor >= minor);
}

}  // namespace

std::vector<command> probe_questions(bool cluster) {
  std::vector<command> questions;
  questions.push_back(command("INFO").idempotent());
  questions.push_back(command("CONFIG").arg("GET").arg("appendfsync").idempotent());
  if (cluster) questions.push_back(command("CLUSTER").arg("INFO").idempotent());
  return questions;
}

server_report read_probe(std::span<const reply> replies) {
  const info said(replies.front().text());
  server_report report;
  report.version = said.text("redis_version");
  report.mode = said.text("redis_mode");
  report.role = said.text("role");
  report.replicas = said.online_replicas();
  report.master_link = report.role != "slave" || said.text("master_link_status") == "up";
  report.loading = said.number("loading") != 0;
  report.aof = said.number("aof_enabled") != 0;
  report.eviction = said.text("maxmemory_policy");
  report.max_memory = said.number("maxmemory");
  report.used_memory = said.number("used_memory");
  report.evicted = said.number("evicted_keys");
  report.can_wait_disk = at_least(report.version, 7, 2);
  if (replies.size() > 1 && replies[1].is_list() && replies[1].elements().size() == 2) report.appendfsync = replies[1].elements()[1].text();
  if (replies.size() > 2 && replies[2].is_text()) {
    const info cluster(replies[2].text());
    report.cluster_ok = cluster.text("cluster_state") == "ok";
    report.slots_covered = static_cast<std::size_t>(cluster.number("cluster_slots_ok"));
  }
  return report;
}

}  // namespace HOLDFAST_NAMESPACE::redis
