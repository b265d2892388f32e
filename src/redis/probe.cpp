#include "redis/probe.hpp"

#include <charconv>
#include <map>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::redis {

namespace {

/// The lines `name:value` of INFO and CLUSTER INFO.
class info_fields {
 public:
  explicit info_fields(std::string_view text) {
    while (!text.empty()) {
      const auto end = text.find('\n');
      std::string_view line = text.substr(0, end);
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
      if (line.ends_with('\r')) line.remove_suffix(1);
      const auto colon = line.find(':');
      if (colon != std::string_view::npos)
        fields_[std::string(line.substr(0, colon))] = line.substr(colon + 1);
    }
  }

  [[nodiscard]] std::string text(std::string_view name) const {
    const auto field = fields_.find(name);
    return field == fields_.end() ? std::string() : field->second;
  }
  [[nodiscard]] std::uint64_t number(std::string_view name) const {
    const auto digits = text(name);
    std::uint64_t value = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return value;
  }
  /// Counts lines like slave0:ip=127.0.0.1,port=7001,state=online,offset=14,lag=0
  [[nodiscard]] std::size_t online_replicas() const {
    std::size_t count = 0;
    for (const auto& [name, value] : fields_) {
      if (name.starts_with("slave") && value.find("state=online") != std::string::npos) ++count;
    }
    return count;
  }

 private:
  std::map<std::string, std::string, std::less<>> fields_{};
};

bool version_at_least(std::string_view version, unsigned major, unsigned minor) {
  unsigned actual_major = 0;
  unsigned actual_minor = 0;
  const char* const end = version.data() + version.size();
  const auto [dot, failed] =
      std::from_chars(version.data(), version.data() + version.size(), actual_major);
  if (failed != std::errc{}) return false;
  if (dot != end) std::from_chars(dot + 1, end, actual_minor);
  return actual_major > major || (actual_major == major && actual_minor >= minor);
}

}  // namespace

std::vector<command> probe_commands(bool cluster) {
  std::vector<command> commands;
  commands.push_back(command("INFO").idempotent());
  commands.push_back(command("CONFIG").arg("GET").arg("appendfsync").idempotent());
  if (cluster) commands.push_back(command("CLUSTER").arg("INFO").idempotent());
  return commands;
}

server_report read_probe(std::span<const reply> replies) {
  const info_fields info(replies.front().text());
  server_report report;
  report.version = info.text("redis_version");
  report.mode = info.text("redis_mode");
  report.role = info.text("role");
  report.replicas = info.online_replicas();
  report.master_link = report.role != "slave" || info.text("master_link_status") == "up";
  report.loading = info.number("loading") != 0;
  report.aof = info.number("aof_enabled") != 0;
  report.eviction = info.text("maxmemory_policy");
  report.max_memory = info.number("maxmemory");
  report.used_memory = info.number("used_memory");
  report.evicted = info.number("evicted_keys");
  report.can_wait_disk = version_at_least(report.version, 7, 2);
  if (replies.size() > 1 && replies[1].is_list() && replies[1].elements().size() == 2)
    report.appendfsync = replies[1].elements()[1].text();
  if (replies.size() > 2 && replies[2].is_text()) {
    const info_fields cluster(replies[2].text());
    report.cluster_ok = cluster.text("cluster_state") == "ok";
    report.slots_covered = static_cast<std::size_t>(cluster.number("cluster_slots_ok"));
  }
  return report;
}

}  // namespace HOLDFAST_NAMESPACE::detail::redis
