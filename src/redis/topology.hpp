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
#include <string>
#include <vector>

namespace HOLDFAST_NAMESPACE::redis {

/// Thread-safety: every function may be called from any thread.
class HOLDFAST_API topology {
 public:
  /// Asks a node for the slots, within the deadline.
  using question = std::function<reply(const std::string& node, steady::time_point deadline)>;

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

  const settings& from_;
  const question ask_;
  counters& count_;

  std::timed_mutex asking_;  // one asks, the others wait for what it finds
  std::mutex mutex_;         // of everything below
  std::shared_ptr<const slot_map> map_{};
  bool stale_ = false;
  std::uint64_t version_ = 0;
  steady::time_point not_before_{};
  std::chrono::milliseconds patience_{};  // with each node, when nobody answered; 0: as usual
  std::map<std::string, steady::time_point> suspects_{};
  std::minstd_rand random_{std::random_device{}()};
};

}  // namespace HOLDFAST_NAMESPACE::redis
