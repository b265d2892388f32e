#pragma once

/// \file
/// Finds the master: Sentinels name it, or it is one of several addresses. Keeps its address, and
/// decides when to ask again.
///
/// Sentinels may disagree during a failover, and a Sentinel that is cut off knows only the old
/// master. Each of them tells the epoch of its configuration, which grows with every failover. The
/// locator asks until a majority has answered, or no other answers soon, and believes the highest
/// epoch. Answers of a minority that are older than the configuration it knows are not used.

#include <holdfast/redis.hpp>

#include "net/poll_timeout.hpp"
#include "redis/counters.hpp"
#include "redis/settings.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::redis {

using net::steady;

/// What to do after the answer of a node.
enum class next_question : std::uint8_t {
  ask,    ///< the answer is of no use: ask the next node
  more,   ///< it is of use, and another one would be better: wait for it a short time only
  enough  ///< ask no other node
};
/// Receives the replies of a node; the first one is an error if the node did not answer.
using answer_handler =
    std::function<next_question(const std::string& node, std::span<const reply> replies)>;

/// What one Sentinel knows about a master.
struct HOLDFAST_API sentinel_view {
  /// Reads the replies to `sentinel_questions`. Throws errc::invalid_argument if the Sentinel does
  /// not monitor the master, errc::malformed, or the error that a reply holds.
  sentinel_view(std::span<const reply> replies, const std::string& node,
                const std::string& master_name);

  std::string master{};  ///< `host:port`
  std::int64_t epoch = 0;
  std::vector<std::string> others{};  ///< addresses of the other Sentinels
};
[[nodiscard]] HOLDFAST_API std::vector<command> sentinel_questions(const std::string& master_name);

/// Thread-safety: every function may be called from any thread.
class HOLDFAST_API master_locator {
 public:
  /// Sends the question to nodes in their order, until the handler has enough or the deadline has
  /// passed. Must not wait for a silent node before it asks the next one. Passes exceptions of the
  /// handler on.
  using node_query =
      std::function<void(std::span<const std::string> nodes, steady::time_point deadline,
                         const answer_handler& handler)>;

  /// Keeps references to the settings and the counters.
  master_locator(const settings& configured, node_query query, counters& counted);

  /// Returns the address of the master. Asks for it first if it is not known, if it is stale, or,
  /// with Sentinels, if it was not confirmed for a second. Throws if it is not known and no node
  /// answers.
  [[nodiscard]] std::shared_ptr<const std::string> current(steady::time_point deadline);
  /// The server at this address failed, or is a replica.
  void mark_stale(const std::string& address);
  /// Asks this node last for a while.
  void mark_unresponsive(const std::string& node);

 private:
  [[nodiscard]] std::vector<std::string> nodes_to_ask();
  [[nodiscard]] std::string find(steady::time_point deadline);
  [[nodiscard]] std::string ask_sentinels(steady::time_point deadline);
  [[nodiscard]] std::string ask_servers(steady::time_point deadline);
  [[nodiscard]] std::string reachable(const std::string& announced) const;

  const settings& settings_;
  const node_query query_;
  counters& counters_;

  std::timed_mutex refreshing_;  // one thread asks
  std::mutex mutex_;             // guards everything below
  std::shared_ptr<const std::string> master_{};
  bool stale_ = false;
  std::int64_t epoch_ = -1;            // of the Sentinels' configuration
  steady::time_point next_refresh_{};  // not earlier, even if it is stale
  steady::time_point confirm_at_ = steady::time_point::max();
  std::vector<std::string> learned_{};  // Sentinels that other Sentinels named
  std::map<std::string, steady::time_point> unresponsive_{};  // node, and until when
  std::minstd_rand random_{std::random_device{}()};
};

}  // namespace HOLDFAST_NAMESPACE::detail::redis
