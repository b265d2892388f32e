#include "support/redis_sentinels.hpp"

#include "support/eventually.hpp"
#include "support/process_state.hpp"

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace holdfast::test {
namespace {

constexpr auto sentinel_user = "redis";

/// The value after a name in the reply of SENTINEL MASTER, one word in a line.
std::string sentinel_field(const std::string& lines, const std::string& name) {
  std::istringstream in(lines);
  for (std::string label, value; std::getline(in, label) && std::getline(in, value);) {
    if (label == name) return value;
  }
  return {};
}

bool is_running(redis_endpoint& /*server*/, server_control& process) {
  return process.running() && process_state(process.pid()) != 'T';
}

}  // namespace

redis_sentinel::redis_sentinel(const std::vector<std::string>& configuration)
    : redis_endpoint(0), directory_("sentinel", sentinel_user, medium::memory) {
  const auto place = directory_.path();
  const auto file = place / "sentinel.conf";
  prepare({.name = "Sentinel",
           .user = sentinel_user,
           .data = place,
           .log = place / "sentinel.log",
           .command =
               [file, configuration](std::uint16_t port) {
                 if (!std::filesystem::exists(file)) {
                   std::ofstream out(file);
                   for (const auto& line : configuration) out << line << '\n';
                   out.close();
                   std::filesystem::permissions(file, std::filesystem::perms::all);
                 }
                 return std::vector<std::string>{"redis-server", file.string(),        "--sentinel",
                                                 "--port",       std::to_string(port), "--bind",
                                                 "127.0.0.1"};
               },
           .ready =
               [](pid_t, const std::string& log) {
                 return log.find("+monitor master") != std::string::npos;
               },
           .port_taken =
               [](const std::string& log) {
                 return log.find("Address already in use") != std::string::npos;
               },
           .before_start = {},
           .stop_signal = SIGTERM},
          [this](std::uint16_t port) { move_to(port); });
  start();
}

redis_sentinel::~redis_sentinel() { kill9(); }  // before the directory goes

redis_sentinels::redis_sentinels(options configured)
    : redis_sentinels_endpoint(0), options_(std::move(configured)) {
  redis_options each{.durable = false};
  each.settings = {"repl-ping-replica-period 1", "repl-diskless-sync-delay 0",
                   "replica-serve-stale-data yes"};
  each.settings.insert(each.settings.end(), options_.settings.begin(), options_.settings.end());
  for (std::size_t i = 0; i < 3; ++i) nodes_.push_back(std::make_unique<redis_server>(each));
  for (std::size_t i = 1; i < size(); ++i)
    node(i).run({"REPLICAOF", "127.0.0.1", std::to_string(node(0).port())});
  const auto in_step = [this] {
    const auto reported = node(0).run({"INFO", "replication"});
    return reported.find("slave0:") != std::string::npos &&
           reported.find("slave1:") != std::string::npos &&
           reported.find("state=wait_bgsave") == std::string::npos &&
           reported.find("state=send_bulk") == std::string::npos;
  };
  if (!eventually(in_step, std::chrono::seconds(60)))
    throw std::runtime_error("the replicas did not get in step");

  const std::string name(master_name);
  std::vector<std::string> configuration = options_.sentinel_settings;
  configuration.push_back("sentinel monitor " + name + " 127.0.0.1 " +
                          std::to_string(node(0).port()) + " 2");
  // Sentinels that all voted for themselves try again after twice this time.
  configuration.push_back("sentinel failover-timeout " + name + " 3000");
  for (std::size_t i = 0; i < 3; ++i) {
    auto lines = configuration;
    // The last one is slower: three Sentinels that vote for themselves at the same time elect none.
    const auto down_after = options_.down_after + std::chrono::seconds(i == 2 ? 2 : 0);
    lines.push_back("sentinel down-after-milliseconds " + name + ' ' +
                    std::to_string(down_after.count()));
    sentinels_.push_back(std::make_unique<redis_sentinel>(lines));
    // They say hello every 2 s, and ask the servers every 10 s; the tests cannot wait so long. A
    // replica that has not answered for three of the latter is not promoted.
    sentinels_.back()->run(
        {"SENTINEL", "DEBUG", "PUBLISH-PERIOD", "100", "INFO-PERIOD", "1000", "ASK-PERIOD", "100"});
  }
  move_to(sentinel(0).port());
  wait_until_well();
}

std::string redis_sentinels::url() const {
  std::string result = options_.scheme + "://";
  for (const auto& each : sentinels_)
    result.append(result.ends_with('/') ? "" : ",").append(each->address());
  return result.append("/").append(master_name);
}

std::string redis_sentinels::url_of(std::size_t sentinel) const {
  return options_.scheme + "://" + sentinels_.at(sentinel)->address() + "/" +
         std::string(master_name);
}

std::optional<std::size_t> redis_sentinels::master() {
  std::map<std::string, std::size_t> votes;
  for (const auto& each : sentinels_) {
    if (!is_running(*each, *each)) continue;
    try {
      const auto fields = each->run({"SENTINEL", "MASTER", std::string(master_name)});
      ++votes["127.0.0.1:" + sentinel_field(fields, "port")];
    } catch (const std::runtime_error&) {
      continue;
    }
  }
  for (const auto& [address, count] : votes) {
    if (2 * count <= sentinel_count()) continue;
    for (std::size_t i = 0; i < size(); ++i) {
      if (node(i).address() == address) return i;
    }
  }
  return std::nullopt;
}

std::optional<std::size_t> redis_sentinels::promoted(std::size_t old) {
  const auto named = master();
  if (!named || *named == old || !is_running(node(*named), node(*named))) return std::nullopt;
  const auto reported = node(*named).run({"INFO", "replication"});
  return reported.find("role:master") != std::string::npos ? named : std::nullopt;
}

bool redis_sentinels::is_well() {
  const auto current = master();
  if (!current || !is_running(node(*current), node(*current))) return false;
  for (const auto& each : sentinels_) {
    if (!is_running(*each, *each)) continue;
    const auto fields = each->run({"SENTINEL", "MASTER", std::string(master_name)});
    if (sentinel_field(fields, "port") != std::to_string(node(*current).port()) ||
        sentinel_field(fields, "flags") != "master" ||
        sentinel_field(fields, "num-slaves") != "2" ||
        sentinel_field(fields, "num-other-sentinels") != "2")
      return false;
    // A replica can be promoted when the Sentinel has asked it about itself.
    const auto replicas = each->run({"SENTINEL", "REPLICAS", std::string(master_name)});
    if (replicas.find("s_down") != std::string::npos ||
        replicas.find("disconnected") != std::string::npos ||
        replicas.find("master_link_status\nerr") != std::string::npos ||
        replicas.find("slave-master-link-status\nerr") != std::string::npos ||
        replicas.find("master-link-status\nerr") != std::string::npos)
      return false;
  }
  std::size_t replicas = 0;
  std::size_t running = 0;
  for (std::size_t i = 0; i < size(); ++i) {
    if (!is_running(node(i), node(i))) continue;
    ++running;
    const auto reported = node(i).run({"INFO", "replication"});
    if (i != *current && reported.find("master_link_status:up") != std::string::npos &&
        reported.find("master_port:" + std::to_string(node(*current).port())) != std::string::npos)
      ++replicas;
  }
  return replicas + 1 == running;
}

void redis_sentinels::wait_until_well() {
  if (!eventually([this] { return is_well(); }, std::chrono::seconds(60)))
    throw std::runtime_error("the Sentinels did not get well:\n" +
                             sentinel(0).run({"SENTINEL", "MASTER", std::string(master_name)}));
}

std::size_t redis_sentinels::fail_over() {
  const auto old = master();
  if (!old) throw std::runtime_error("the Sentinels do not agree on a master");
  // Refused while an earlier failover ends, and given up when a replica is slow: asks again.
  const auto ask = [this] {
    try {
      sentinel(0).run({"SENTINEL", "FAILOVER", std::string(master_name)});
    } catch (const std::runtime_error&) {
      return;
    }
  };
  std::optional<std::size_t> heir;
  const auto is_promoted = [&] { return (heir = promoted(*old)).has_value(); };
  for (int attempt = 0; !heir && attempt < 10; ++attempt) {
    ask();
    static_cast<void>(eventually(is_promoted, std::chrono::seconds(6)));
  }
  if (!heir) throw std::runtime_error("the failover did not happen:\n" + sentinel(0).log());
  return *heir;
}

}  // namespace holdfast::test
