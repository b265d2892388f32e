#pragma once

/// \file
/// Counters on Redis: their keys, and the replies of the scripts that change them.

#include <holdfast/redis.hpp>
#include <holdfast/sequence/block_store.hpp>
#include <holdfast/version.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::sequence {

/// The counters with one prefix. Each is the key {prefix}holdfast:seq:{name}; the braces make the
/// name the hash tag, so that a Cluster spreads the counters over its nodes.
///
/// Thread-safety: every function may be called from any thread.
class HOLDFAST_API redis_counters {
 public:
  /// Throws errc::invalid_argument for an invalid prefix.
  redis_counters(std::shared_ptr<const holdfast::redis::client> client, const std::string& prefix);

  [[nodiscard]] const holdfast::redis::client& client() const noexcept { return *client_; }

  /// Runs a script on a counter, without arguments yet.
  [[nodiscard]] holdfast::redis::command command(const holdfast::redis::script& script,
                                                 std::string_view name) const;

  /// The node of a counter, as far as the client knows it without asking; empty outside a Cluster.
  [[nodiscard]] std::string node_of(std::string_view name) const;
  /// The key of a counter.
  [[nodiscard]] std::string key(std::string_view name) const;

  /// The names of all counters, sorted.
  [[nodiscard]] std::vector<std::string> names() const;

 private:
  std::shared_ptr<const holdfast::redis::client> client_;
  std::string key_begin_;
};

/// The state in a reply that begins with {last, epoch}.
[[nodiscard]] counter_state counter_state_of(const holdfast::redis::reply& reply);

/// The grant in the reply of an allocate script. Throws errc::unavailable (transient) for 'wait',
/// and errc::invalid_argument for 'differs'; `definition`: that of the request.
[[nodiscard]] block_grant block_grant_of(const holdfast::redis::reply& reply, std::string_view name,
                                         std::string_view definition);

/// Runs an action that returns a grant; an error becomes the problem of the grant. A node of a
/// Cluster that is down affects only the counters on it.
template <class Action>
[[nodiscard]] block_grant grant_or_problem(Action action) {
  try {
    return action();
  } catch (const error& problem) {
    block_grant failed;
    failed.problem = problem;
    return failed;
  }
}

}  // namespace HOLDFAST_NAMESPACE::detail::sequence
