#pragma once

#include <holdfast/redis.hpp>

#include "base/process_mark.hpp"
#include "redis/node_pool.hpp"
#include "redis/settings.hpp"
#include "redis/tls.hpp"
#include "redis/topology.hpp"

#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::redis {

/// What the copies of a client share.
class client::state {
 public:
  explicit state(settings from);
  /// The end of one. In a child made by fork it only closes the child's copies of idle sockets and leaves all else as it is: locks may be
  /// held by threads that the child does not have, and what the other end knows of the connections is the parent's.
  static void end(state* held) noexcept;

  [[nodiscard]] std::vector<reply> run(std::span<const command> commands, const call_options& how);
  [[nodiscard]] const settings& configured() const noexcept { return settings_; }
  [[nodiscard]] std::vector<node> nodes();
  [[nodiscard]] numbers count() const noexcept { return counters_.read(); }

 private:
  /// Chains for one node.
  struct batch {
    const std::string* node = nullptr;
    std::vector<std::size_t> chains{};
  };

  /// The way of the chains for one node: waiting for a connection, setting it up, sending, reading, and what came of it.
  struct trip {
    delivery* of = nullptr;
    std::string node{};
    std::vector<std::size_t> chains{};
    std::unique_ptr<node_pool::ticket> seat{};  ///< while it waits for a connection
    std::unique_ptr<node_pool::lease> over{};
    std::unique_ptr<flight> what{};
    leg way{};
    bool ended = false;
  };

  void check_process() const;
  void warn_of_plaintext() const;
  void abandon() noexcept;
  [[nodiscard]] std::vector<batch> split(delivery& what, const slot_map* map);
  void dispatch(delivery& what, std::list<trip>& trips, carrier& with, steady::time_point deadline);
  void begin(delivery& what, std::vector<batch> batches, std::list<trip>& trips, carrier& with, steady::time_point deadline);
  void depart(trip& t, carrier& with, steady::time_point deadline);
  void suspect(const std::string& node);
  void refuse(trip& t, const error& why);
  void arrive(trip& t);
  bool end_done(std::list<trip>& trips);
  void travel(std::list<trip>& trips, carrier& with, steady::time_point deadline, steady::time_point wake);
  [[nodiscard]] std::shared_ptr<node_pool> pool_of(const std::string& node);
  void ask_slots(std::span<const std::string> nodes, steady::time_point deadline, const topology::listener& take);
  [[nodiscard]] double jitter();
  void close_strangers(const slot_map& map);
  void add_up(const delivery& what, const std::vector<reply>& replies) noexcept;

  const settings settings_;
  const std::unique_ptr<const tls_context> tls_;
  const process_mark process_{};
  counters counters_;
  const logger log_;
  std::optional<topology> topology_{};

  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<node_pool>, std::less<>> pools_{};
  std::uint64_t refreshes_seen_ = 0;
  std::minstd_rand random_{std::random_device{}()};
};

}  // namespace HOLDFAST_NAMESPACE::redis
