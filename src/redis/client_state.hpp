#pragma once

#include <holdfast/redis.hpp>

#include "base/process_mark.hpp"
#include "redis/node_pool.hpp"
#include "redis/settings.hpp"
#include "redis/tls.hpp"
#include "redis/topology.hpp"

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

  void check_process() const;
  void abandon() noexcept;
  void round(delivery& what, steady::time_point deadline);
  [[nodiscard]] std::vector<batch> split(delivery& what, const slot_map* map);
  void send(delivery& what, std::vector<batch>& batches, steady::time_point deadline);
  [[nodiscard]] std::shared_ptr<node_pool> pool_of(const std::string& node);
  [[nodiscard]] reply ask_slots(const std::string& node, steady::time_point deadline);
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
