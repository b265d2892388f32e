#pragma once

/// \file
/// Requests that several clients wait for (rule 14).

#include <holdfast/failover/answer.hpp>
#include <holdfast/version.hpp>

#include "serve/gateway/stored_response.hpp"

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve::gateway {

/// Why there is no good answer.
struct upstream_failure {
  cause_code cause = cause_code::failed;
  /// Status of the upstream, or the one that stands for its failure.
  int status = 502;
  /// `late`, `unreachable`, `cut`, `malformed`; empty if the upstream answered with `status`.
  std::string_view detail{};
  /// The upstream was asked.
  bool asked = true;
  /// There was no connection.
  bool unreachable = false;
};

/// What the first client's request gave, for the others.
struct shared_outcome {
  std::optional<stored_response> response{};
  std::optional<upstream_failure> failure{};
};
/// Null: each of them asks for itself.
using shared_result = std::shared_ptr<const shared_outcome>;

/// Thread-safety: may be called from any thread.
class shared_requests {
 public:
  /// Called once, on the thread that finishes the request. Must not wait.
  using follower = std::function<void(const shared_result&)>;

  /// Returns true for the first caller of a key, which must call `finish`. The follower of another
  /// one is called at the end.
  [[nodiscard]] bool lead_or_follow(const std::string& key, follower waiting);
  void finish(const std::string& key, const shared_result& result);

 private:
  std::mutex mutex_{};
  std::unordered_map<std::string, std::vector<follower>> running_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve::gateway
