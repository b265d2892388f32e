#pragma once

/// \file
/// What the client believes about a Cluster, and when it asks again.

#include "redis/node_pool.hpp"
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

namespace HOLDFAST_NAMESPACE::redis {

/// Thread-safety: every function may be called from any thread.
class HOLDFAST_API topology {
 public:
  /// Is told what a node said, an error among it. True: that will do.
  using listener = std::function<bool(const std::string& node, const reply& answer)>;
  /// Asks nodes for the slots, in this order, until the listener has what it needs, or the deadline has come. A silent node is not waited
  /// for: the next is asked beside it. What the listener throws passes through.
  using question = std::function<void(std::span<const std::string> nodes, steady::time_point deadline, const listener& take)>;

  topology(const settings& from, question ask, counters& count);

  /// The map; asks the Cluster when there is none, or when it is out of date and was not asked just now. Throws when there is none and
  /// no node answers.
  [[nodiscard]] std::shared_ptr<const slot_map> current(steady::time_point deadline);
  /// Asks now.
  std::shared_ptr<const slot_map> ask_again(steady::time_point deadline);

  void set_stale() noexcept;
  void learn(std::uint16_t slot, const std::string& address);
  /// This node did not answer: others are asked first for a while.
  void suspect(const std::string& node);

 private:
  [[nodiscard]] std::vector<std::string> candidates();
  std::shared_ptr<const slot_map> ask(steady::time_point deadline);
  [[nodiscard]] std::shared_ptr<const slot_map> read(const reply& answer, const std::string& node) const;

  const settings& from_;
  const question ask_;
  counters& count_;

  std::timed_mutex asking_;  // one asks, the others wait for what it finds
  std::mutex mutex_;         // of everything below
  std::shared_ptr<const slot_map> map_{};
  bool stale_ = false;
  std::uint64_t version_ = 0;
  steady::time_point not_before_{};
  std::map<std::string, steady::time_point> suspects_{};
  std::minstd_rand random_{std::random_device{}()};
};

}  // namespace HOLDFAST_NAMESPACE::redis
