#pragma once

#include "support/mariadb_server.hpp"
#include "support/server_control.hpp"
#include "support/temporary_directory.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::test {

class galera_cluster;

/// A node of a galera_cluster. One that was killed or stopped rejoins with start(): with the
/// transactions that it missed, or with a copy of all data if the others do not have them any more.
class galera_node : public mariadb_endpoint, public server_control {
 public:
  galera_node(galera_cluster& cluster, std::size_t index);
  ~galera_node();

  /// `gcomm` address of this node for the others; empty before its first start.
  [[nodiscard]] std::string group_address() const;

 private:
  /// Ports for the messages of the cluster, and for the transfer of its data.
  struct group_ports {
    std::uint16_t sql = 0;  ///< the port of the start that they were chosen for
    std::uint16_t messages = 0, missed_transactions = 0, all_data = 0;
  };
  [[nodiscard]] std::vector<std::string> command(std::uint16_t port);
  /// The position of the data in the history of the cluster, after a crash.
  void recover_position();

  galera_cluster& cluster_;
  std::size_t index_;
  temporary_directory place_;
  group_ports ports_{};
  std::string position_{};
};

/// A private MariaDB cluster with Galera: three nodes on 127.0.0.1, all with the same data, each of
/// which takes writes. Started by the constructor, gone after the destructor. Thread-safety: one
/// thread at a time; clients may come from anywhere.
class galera_cluster {
 public:
  struct options {
    /// After this time without a message the others go on without a node. Long: a busy machine must
    /// not look like a dead node. A test that kills nodes says a shorter one.
    std::chrono::seconds suspect_timeout = std::chrono::seconds(20);
  };
  explicit galera_cluster(options chosen);
  galera_cluster() : galera_cluster(options{}) {}
  galera_cluster(const galera_cluster&) = delete;
  galera_cluster& operator=(const galera_cluster&) = delete;

  [[nodiscard]] std::size_t size() const noexcept { return nodes_.size(); }
  [[nodiscard]] galera_node& node(std::size_t index) { return *nodes_.at(index); }
  /// All nodes in their order, beginning with this one.
  [[nodiscard]] std::string url_from(std::size_t first, std::string_view database = "holdfast");
  /// Waits until a node that answers counts so many members, itself among them, and takes writes.
  void wait_for_members(std::size_t index, std::size_t count);

 private:
  friend class galera_node;

  /// The nodes that a node that starts may ask, without itself. Empty: it begins the cluster.
  [[nodiscard]] std::string addresses_without(std::size_t index) const;

  options options_;
  std::vector<std::unique_ptr<galera_node>> nodes_{};
};

}  // namespace holdfast::test
