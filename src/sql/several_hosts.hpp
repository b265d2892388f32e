#pragma once

/// \file
/// Connects to one of the hosts that a URL names.

#include <holdfast/version.hpp>

#include "sql/public_names.hpp"

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

namespace HOLDFAST_NAMESPACE::detail::sql {

/// The hosts that did not answer in time. For a while the next connections try them last, so that
/// each of them does not wait for the same host. All connections of a URL share the object.
/// Thread-safety: every function may be called from any thread.
class HOLDFAST_API silent_hosts {
 public:
  void add(const std::string& address);
  void remove(const std::string& address);
  [[nodiscard]] bool contains(const std::string& address);

 private:
  std::mutex mutex_{};
  std::map<std::string, std::chrono::steady_clock::time_point> silent_since_{};
};

struct connect_limits {
  std::chrono::milliseconds all;  ///< for all hosts together
  /// For each host, if the URL sets it. Then `all` does not apply.
  std::optional<std::chrono::milliseconds> each{};
};

/// Tries to connect to a host, by its index, within a limit. Throws if it cannot be used.
using connect_attempt =
    std::function<std::unique_ptr<connection>(std::size_t host, std::chrono::milliseconds limit)>;

/// Tries the hosts in order and returns the first connection. `addresses` tells the hosts apart; it
/// must not be empty.
///
/// Without a limit for each host, every host but the last gets an equal share of the remaining
/// time, and not more than two seconds.
///
/// With one host, throws what the attempt throws. With several, throws one error with the reasons
/// of all; it is transient if one of them is.
[[nodiscard]] HOLDFAST_API std::unique_ptr<connection> connect_to_first(
    std::span<const std::string> addresses, const connect_limits& limits, silent_hosts& silent,
    const connect_attempt& attempt);

}  // namespace HOLDFAST_NAMESPACE::detail::sql
