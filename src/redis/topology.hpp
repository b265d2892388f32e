#pragma once

/// \file
/// The client's view of a Cluster: the current slot map, and when to ask for a new one.

#include "net/poll_timeout.hpp"
#include "redis/counters.hpp"
#include "redis/settings.hpp"
#include "redis/slot_map.hpp"

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::redis {

using net::steady;

/// Thread-safety: every function may be called from any thread.
class HOLDFAST_API topology {
 public:
  /// Receives the reply of a node to CLUSTER SLOTS, or an error. Returns true to accept it.
  using reply_handler = std::function<bool(const std::string& node, const reply& answer)>;
  /// Sends CLUSTER SLOTS to nodes in their order, until the handler accepts a reply or the deadline
  /// has passed. Must not wait for a silent node before it asks the next one. Passes exceptions of
  /// the handler on.
  using slots_query =
      std::function<void(std::span<const std::string> nodes, steady::time_point deadline,
                         const reply_handler& handler)>;

  /// Keeps references to the settings and the counters.
  topology(const settings& configured, slots_query query, counters& counted);

  /// Returns the slot map. Refreshes it first if there is none, or if it is stale and was not
  /// refreshed a moment ago. Throws if there is no map and no node answers.
  [[nodiscard]] std::shared_ptr<const slot_map> current(steady::time_point deadline);
  /// Returns the slot map without asking; null before the first answer of the Cluster.
  [[nodiscard]] std::shared_ptr<const slot_map> last_known();
  /// Asks the Cluster for the slot map.
  std::shared_ptr<const slot_map> refresh(steady::time_point deadline);

  void mark_stale() noexcept;
  /// Makes a node the master of a slot, after a MOVED redirect.
  void move_slot(std::uint16_t slot, const std::string& address);
  /// Asks this node last for a while.
  void mark_unresponsive(const std::string& node);

 private:
  [[nodiscard]] std::vector<std::string> nodes_to_ask();
  std::shared_ptr<const slot_map> query(steady::time_point deadline);
  [[nodiscard]] std::shared_ptr<const slot_map> read_slots(const reply& answer,
                                                           const std::string& node) const;
  void delay_next_refresh();

  const settings& settings_;
  const slots_query query_;
  counters& counters_;

  std::timed_mutex refreshing_;  // one thread asks; the others wait for its result
  std::mutex mutex_;             // guards everything below
  std::shared_ptr<const slot_map> map_{};
  bool stale_ = false;
  std::uint64_t version_ = 0;  // number of refreshes
  steady::time_point next_refresh_{};
  std::map<std::string, steady::time_point> unresponsive_{};  // node, and until when
  std::minstd_rand random_{std::random_device{}()};
};

}  // namespace HOLDFAST_NAMESPACE::detail::redis
