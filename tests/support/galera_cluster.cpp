#include "support/galera_cluster.hpp"

#include "support/child_process.hpp"
#include "support/eventually.hpp"
#include "support/free_port.hpp"

#include <fstream>
#include <iterator>
#include <stdexcept>

namespace holdfast::test {
namespace {

constexpr std::size_t node_count = 3;
constexpr auto provider = "/usr/lib/galera/libgalera_smm.so";
std::string port_text(std::uint16_t port) { return "127.0.0.1:" + std::to_string(port); }

std::string read_all(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

galera_node::galera_node(galera_cluster& cluster, std::size_t index)
    : mariadb_endpoint(0),
      cluster_(cluster),
      index_(index),
      place_("galera", mariadb_user, medium::memory) {
  const auto data = place_.path() / "data";
  make_mariadb_data(data);
  prepare({.name = "MariaDB with Galera",
           .user = mariadb_user,
           .data = data,
           .log = place_.path() / "mariadb.log",
           .command = [this](std::uint16_t port) { return command(port); },
           .ready =
               [](pid_t, const std::string& log) {
                 return log.find("Synchronized with group, ready for connections") !=
                            std::string::npos &&
                        log.find("mariadbd: ready for connections") != std::string::npos;
               },
           .port_taken =
               [](const std::string& log) {
                 return log.find("Can't start server: Bind on TCP/IP port") != std::string::npos ||
                        log.find("Address already in use") != std::string::npos;
               },
           .before_start = [this] { recover_position(); },
           .stop_signal = SIGTERM,
           .start_timeout = std::chrono::seconds(600)},
          [this](std::uint16_t port) { move_to(port); });
}

galera_node::~galera_node() { kill9(); }  // before the directory goes

std::string galera_node::group_address() const {
  return port() == 0 ? std::string() : port_text(ports_.messages);
}

std::vector<std::string> galera_node::command(std::uint16_t port) {
  // Another port for SQL means that the last start failed because a port was in use.
  if (ports_.sql != port)
    ports_ = {.sql = port,
              .messages = free_port(),
              .missed_transactions = free_port(),
              .all_data = free_port()};
  const auto data = data_directory();
  const auto suspect = cluster_.options_.suspect_timeout.count();
  const auto others = cluster_.addresses_without(index_);
  std::vector<std::string> argv{
      "mariadbd",
      "--no-defaults",
      "--datadir=" + data.string(),
      "--bind-address=127.0.0.1",
      "--port=" + std::to_string(port),
      "--socket=" + (data / "m.sock").string(),
      "--pid-file=" + (data / "m.pid").string(),
      "--tmpdir=" + data.string(),  // TMPDIR may be closed to its user
      "--skip-name-resolve",
      "--character-set-server=utf8mb4",
      "--max-connections=500",
      "--binlog-format=ROW",
      "--innodb-autoinc-lock-mode=2",
      "--innodb-flush-log-at-trx-commit=1",
      "--debug-no-sync",
      "--wsrep-on=ON",
      std::string("--wsrep-provider=") + provider,
      "--wsrep-cluster-name=holdfast",
      "--wsrep-cluster-address=gcomm://" + others,
      "--wsrep-node-name=node" + std::to_string(index_),
      "--wsrep-node-address=" + port_text(ports_.messages),
      "--wsrep-sst-method=rsync",
      "--wsrep-sst-receive-address=" + port_text(ports_.all_data),
      "--wsrep-slave-threads=2",
      "--wsrep-provider-options=base_port=" + std::to_string(ports_.messages) +
          ";gmcast.listen_addr=tcp://" + port_text(ports_.messages) +
          ";ist.recv_addr=" + port_text(ports_.missed_transactions) + ";evs.suspect_timeout=PT" +
          std::to_string(suspect) + "S;evs.inactive_timeout=PT" + std::to_string(2 * suspect) +
          "S;pc.recovery=FALSE;gcache.size=64M"};
  if (others.empty()) argv.emplace_back("--wsrep-new-cluster");
  if (!position_.empty()) argv.push_back("--wsrep-start-position=" + position_);
  for (const auto& setting : mariadb_data_settings()) argv.push_back(setting);
  return argv;
}

void galera_node::recover_position() {
  position_.clear();
  const auto data = data_directory();
  // Missing at the first start. Has the position if the server was told to stop.
  if (read_all(data / "grastate.dat").find("seqno:   -1") == std::string::npos) return;
  std::vector<std::string> argv{"mariadbd",
                                "--no-defaults",
                                "--datadir=" + data.string(),
                                "--tmpdir=" + data.string(),
                                "--skip-networking",
                                "--socket=" + (data / "r.sock").string(),
                                "--pid-file=" + (data / "r.pid").string(),
                                "--binlog-format=ROW",
                                "--wsrep-on=ON",
                                std::string("--wsrep-provider=") + provider,
                                "--wsrep-cluster-address=gcomm://",
                                "--wsrep-recover"};
  for (const auto& setting : mariadb_data_settings()) argv.push_back(setting);
  const auto result = run_program({.argv = argv, .directory = data, .user = mariadb_user},
                                  std::chrono::seconds(120));
  const auto& text = result.error;
  constexpr std::string_view before = "WSREP: Recovered position: ";
  const auto position = text.rfind(before);
  if (!result.status.success() || position == std::string::npos)
    throw std::runtime_error("mariadbd --wsrep-recover: " + result.status.describe() + "\n" + text);
  const auto begin = position + before.size();
  position_ = text.substr(begin, text.find_first_of(" ,\n", begin) - begin);
}

galera_cluster::galera_cluster(options chosen) : options_(chosen) {
  for (std::size_t i = 0; i < node_count; ++i)
    nodes_.push_back(std::make_unique<galera_node>(*this, i));
  for (std::size_t i = 0; i < node_count; ++i) {
    node(i).start();
    wait_for_members(i, i + 1);
  }
  for (std::size_t i = 0; i < node_count; ++i) wait_for_members(i, node_count);
}

std::string galera_cluster::url_from(std::size_t first, std::string_view database) {
  std::string hosts;
  for (std::size_t i = 0; i < size(); ++i)
    hosts += (i == 0 ? "" : ",") + port_text(node((first + i) % size()).port());
  return "mysql://holdfast:secret@" + hosts + "/" + std::string(database);
}

void galera_cluster::wait_for_members(std::size_t index, std::size_t count) {
  const auto expected = "Synced\t" + std::to_string(count) + "\n";
  std::string state;
  const auto is_well = [&] {
    try {
      state = node(index).run(
          "SELECT (SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE "
          "VARIABLE_NAME = 'WSREP_LOCAL_STATE_COMMENT'), (SELECT VARIABLE_VALUE FROM "
          "information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'WSREP_CLUSTER_SIZE')",
          "information_schema");
    } catch (const std::runtime_error& problem) {
      state = problem.what();
    }
    return state == expected;
  };
  if (!eventually(is_well, std::chrono::seconds(600)))
    throw std::runtime_error("node " + std::to_string(index) + " of the cluster is not one of " +
                             std::to_string(count) + ": " + state);
}

std::string galera_cluster::addresses_without(std::size_t index) const {
  std::string addresses;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const auto address = i == index ? std::string() : nodes_[i]->group_address();
    if (!address.empty()) addresses += (addresses.empty() ? "" : ",") + address;
  }
  return addresses;
}

}  // namespace holdfast::test
