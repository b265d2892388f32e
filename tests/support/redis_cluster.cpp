#include "support/redis_cluster.hpp"

#include "support/eventually.hpp"
#include "support/process_state.hpp"

#include <algorithm>
#include <sstream>
#include <stdexcept>

namespace holdfast::test {
namespace {

constexpr std::size_t masters = 3;

// While it is formed: how long nodes hold back before they serve depends on it.
constexpr auto forming_timeout = std::chrono::milliseconds(2'000);

bool covers(const std::vector<std::string>& ranges, std::uint16_t slot) {
  return std::any_of(ranges.begin(), ranges.end(), [&](const std::string& range) {
    if (range.starts_with('[')) return false;  // a slot that moves
    const auto dash = range.find('-');
    const auto first = std::stoul(range.substr(0, dash));
    const auto last = dash == std::string::npos ? first : std::stoul(range.substr(dash + 1));
    return first <= slot && slot <= last;
  });
}

}  // namespace

redis_cluster::redis_cluster(options how) : redis_cluster_endpoint(0), how_(std::move(how)) {
  redis_options each{.durable = false};
  each.settings = {"cluster-enabled yes",
                   "cluster-config-file nodes.conf",
                   "cluster-node-timeout " + std::to_string(forming_timeout.count()),
                   "cluster-announce-ip 127.0.0.1",
                   "cluster-replica-validity-factor 0",
                   "repl-ping-replica-period 1",
                   "repl-diskless-sync-delay 0"};
  each.settings.insert(each.settings.end(), how_.settings.begin(), how_.settings.end());
  for (std::size_t i = 0; i < 2 * masters; ++i)
    nodes_.push_back(std::make_unique<redis_server>(each));
  move_to(node(0).port());

  // As `redis-cli --cluster create` does it, without its waits.
  constexpr unsigned slots = 16384;
  for (std::size_t i = 0; i < masters; ++i) {
    node(i).run({"CLUSTER", "ADDSLOTSRANGE", std::to_string(slots * i / masters),
                 std::to_string(slots * (i + 1) / masters - 1)});
  }
  for (std::size_t i = 0; i < size(); ++i) {
    node(i).run({"CLUSTER", "SET-CONFIG-EPOCH", std::to_string(i + 1)});
    if (i > 0) node(i).run({"CLUSTER", "MEET", "127.0.0.1", std::to_string(node(0).port())});
  }
  // A node that was held up for the whole of forming_timeout forgets whom it was told to meet; one
  // that knows everybody is told in vain.
  auto told = std::chrono::steady_clock::now();
  const auto all_know_all = [&] {
    for (std::size_t i = 0; i < size(); ++i) {
      if (look(i).size() == size()) continue;
      if (std::chrono::steady_clock::now() - told > 2 * forming_timeout) {
        for (std::size_t other = 1; other < size(); ++other)
          node(other).run({"CLUSTER", "MEET", "127.0.0.1", std::to_string(node(0).port())});
        told = std::chrono::steady_clock::now();
      }
      return false;
    }
    return true;
  };
  if (!eventually(all_know_all, std::chrono::seconds(60)))
    throw std::runtime_error("the nodes of the Redis Cluster did not meet");
  for (std::size_t i = 0; i < masters; ++i)
    node(masters + i).run({"CLUSTER", "REPLICATE", id_of(i)});
  wait_until_well();
  const auto timeout = std::to_string(how_.node_timeout.count());
  for (const auto& each_node : nodes_) {
    each_node->run({"CONFIG", "SET", "cluster-node-timeout", timeout});
    each_node->configure("cluster-node-timeout " + timeout);
  }
}

std::string redis_cluster::url_of_all() const {
  std::string url = "redis+cluster://";
  for (const auto& each : nodes_) url.append(url.ends_with('/') ? "" : ",").append(each->address());
  return url;
}

std::vector<redis_cluster::line> redis_cluster::look(std::size_t through) {
  std::vector<line> lines;
  std::istringstream in(node(through).run({"CLUSTER", "NODES"}));
  for (std::string text; std::getline(in, text);) {
    std::istringstream words(text);
    line each;
    std::string skipped;
    if (!(words >> each.id >> each.address >> each.flags >> each.master >> skipped >> skipped >>
          skipped >> skipped))
      continue;
    each.address = each.address.substr(0, each.address.find('@'));
    if (each.flags.find("handshake") != std::string::npos) continue;
    for (std::string range; words >> range;) each.slots.push_back(range);
    lines.push_back(std::move(each));
  }
  return lines;
}

std::vector<redis_cluster::line> redis_cluster::look() {
  for (std::size_t i = 0; i < size(); ++i) {
    if (!node(i).running() || process_state(node(i).pid()) == 'T') continue;
    try {
      return look(i);
    } catch (const std::runtime_error&) {
      continue;
    }
  }
  throw std::runtime_error("no node of the Redis Cluster answers");
}

std::size_t redis_cluster::index_of(const std::string& address) const {
  const auto found = std::find_if(nodes_.begin(), nodes_.end(),
                                  [&](const auto& each) { return each->address() == address; });
  if (found == nodes_.end()) throw std::runtime_error("the Redis Cluster has no node " + address);
  return static_cast<std::size_t>(found - nodes_.begin());
}

std::size_t redis_cluster::master_of(std::uint16_t slot) {
  for (const auto& each : look()) {
    if (each.flags.find("master") != std::string::npos && covers(each.slots, slot))
      return index_of(each.address);
  }
  throw std::runtime_error("nobody serves the slot " + std::to_string(slot));
}

std::string redis_cluster::id_of(std::size_t index) { return node(index).run({"CLUSTER", "MYID"}); }

std::size_t redis_cluster::replica_of(std::size_t master) {
  const auto lines = look();
  const auto address = node(master).address();
  const auto self = std::find_if(lines.begin(), lines.end(),
                                 [&](const line& each) { return each.address == address; });
  for (const auto& each : lines) {
    if (self != lines.end() && each.master == self->id) return index_of(each.address);
  }
  throw std::runtime_error("node " + std::to_string(master) + " has no replica");
}

void redis_cluster::wait_until_well() {
  const auto well = [this] {
    for (std::size_t i = 0; i < size(); ++i) {
      if (!node(i).running()) continue;
      if (node(i).run({"CLUSTER", "INFO"}).find("cluster_state:ok") == std::string::npos)
        return false;
      const auto lines = look(i);
      const auto replicas = std::count_if(lines.begin(), lines.end(), [](const line& each) {
        return each.flags.find("slave") != std::string::npos;
      });
      if (replicas != static_cast<std::ptrdiff_t>(size() - masters)) return false;
      // A replica is told to clients when it has received something.
      const auto told = '\n' + node(i).run({"CLUSTER", "SLOTS"}) + '\n';
      for (const auto& each : nodes_) {
        if (each->running() &&
            told.find('\n' + std::to_string(each->port()) + '\n') == std::string::npos)
          return false;
      }
      const auto said = node(i).run({"INFO", "replication"});
      if (said.find("role:master") != std::string::npos
              ? said.find("state=online") == std::string::npos
              : said.find("master_link_status:up") == std::string::npos)
        return false;
    }
    return true;
  };
  if (!eventually(well, std::chrono::seconds(60)))
    throw std::runtime_error("the Redis Cluster did not get well:\n" +
                             node(0).run({"CLUSTER", "NODES"}));
}

std::size_t redis_cluster::fail_over(std::size_t master) {
  const auto heir = replica_of(master);
  node(heir).run({"CLUSTER", "FAILOVER"});
  const auto address = node(heir).address();
  // In the eyes of all: gossip takes its time.
  const auto done = [&] {
    for (std::size_t i = 0; i < size(); ++i) {
      if (!node(i).running() || process_state(node(i).pid()) == 'T') continue;
      const auto lines = look(i);
      const auto found = std::find_if(lines.begin(), lines.end(),
                                      [&](const line& each) { return each.address == address; });
      if (found == lines.end() || found->slots.empty()) return false;
    }
    return true;
  };
  if (!eventually(done, std::chrono::seconds(60)))
    throw std::runtime_error("the manual failover did not happen");
  return heir;
}

void redis_cluster::begin_migration(std::uint16_t slot, std::size_t to) {
  const auto from = master_of(slot);
  const auto text = std::to_string(slot);
  node(to).run({"CLUSTER", "SETSLOT", text, "IMPORTING", id_of(from)});
  node(from).run({"CLUSTER", "SETSLOT", text, "MIGRATING", id_of(to)});
}

std::size_t redis_cluster::migrate_keys(std::uint16_t slot, std::size_t from, std::size_t to,
                                        std::size_t most) {
  std::istringstream in(
      node(from).run({"CLUSTER", "GETKEYSINSLOT", std::to_string(slot), std::to_string(most)}));
  std::vector<std::string> words{"MIGRATE", "127.0.0.1", std::to_string(node(to).port()), "", "0",
                                 "10000",   "KEYS"};
  const auto before = words.size();
  for (std::string key; std::getline(in, key);) {
    if (!key.empty()) words.push_back(key);
  }
  const auto count = words.size() - before;
  if (count > 0) node(from).run(words);
  return count;
}

void redis_cluster::end_migration(std::uint16_t slot, std::size_t to) {
  const auto owner = id_of(to);
  node(to).run({"CLUSTER", "SETSLOT", std::to_string(slot), "NODE", owner});
  for (std::size_t i = 0; i < size(); ++i) {
    if (i == to || node(i).run({"INFO", "replication"}).find("role:master") == std::string::npos)
      continue;
    node(i).run({"CLUSTER", "SETSLOT", std::to_string(slot), "NODE", owner});
  }
}

}  // namespace holdfast::test
