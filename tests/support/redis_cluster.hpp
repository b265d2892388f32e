#pragma once

#include "support/redis_server.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::test {

/// A Redis Cluster on 127.0.0.1, known by one of its nodes.
/// Thread-safety: every function may be called from any thread.
class redis_cluster_endpoint : public redis_endpoint {
 public:
  static constexpr std::string_view kind = "redis-cluster";

  explicit redis_cluster_endpoint(std::uint16_t port) : redis_endpoint(port) {}
  [[nodiscard]] std::string url() const { return "redis+cluster://" + address(); }
};

/// A private Cluster: three masters and a replica of each, nodes 0 to 5. Started by the
/// constructor, gone after the destructor. Thread-safety: one thread at a time; clients may come
/// from anywhere.
class redis_cluster : public redis_cluster_endpoint {
 public:
  using endpoint = redis_cluster_endpoint;

  struct options {
    /// Long: a busy machine must not look like a dead node. A test of a failover says a short one.
    std::chrono::milliseconds node_timeout = std::chrono::seconds(15);
    std::vector<std::string> settings{};  ///< of every node, as in redis.conf
  };
  explicit redis_cluster(options how);
  redis_cluster() : redis_cluster(options{}) {}

  [[nodiscard]] std::size_t size() const noexcept { return nodes_.size(); }
  [[nodiscard]] redis_server& node(std::size_t index) { return *nodes_.at(index); }
  /// All nodes as seeds.
  [[nodiscard]] std::string url_of_all() const;
  [[nodiscard]] std::chrono::milliseconds node_timeout() const noexcept {
    return how_.node_timeout;
  }

  /// Which node serves a slot, in the eyes of those that run: the first of them that knows.
  [[nodiscard]] std::size_t master_of(std::uint16_t slot);
  /// A replica of that master.
  [[nodiscard]] std::size_t replica_of(std::size_t master);
  /// The id of a node.
  [[nodiscard]] std::string id_of(std::size_t index);

  /// Waits until every running node says that all is well, and every master has its replica in
  /// step.
  void wait_until_well();
  /// A manual failover of this master; returns the node that took over, when it has.
  std::size_t fail_over(std::size_t master);

  /// Moves a slot with its keys from its master to another one: begin, then keys, then end. The
  /// keys go a few at a time.
  void begin_migration(std::uint16_t slot, std::size_t to);
  /// Moves up to so many keys; returns how many there were to move.
  std::size_t migrate_keys(std::uint16_t slot, std::size_t from, std::size_t to, std::size_t most);
  void end_migration(std::uint16_t slot, std::size_t to);

 private:
  struct line {
    std::string id, address, flags, master;
    std::vector<std::string> slots;
  };
  [[nodiscard]] std::vector<line> look(std::size_t through);
  [[nodiscard]] std::vector<line> look();
  [[nodiscard]] std::size_t index_of(const std::string& address) const;

  options how_;
  std::vector<std::unique_ptr<redis_server>> nodes_{};
};

}  // namespace holdfast::test
