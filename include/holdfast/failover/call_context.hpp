#pragma once

/// \file
/// What a callable can learn about the call it serves, and how it reports that it was cancelled.

#include <holdfast/version.hpp>

#include <chrono>
#include <exception>
#include <optional>
#include <stop_token>
#include <string_view>

namespace HOLDFAST_NAMESPACE {

/// Thrown by a callable that stopped because its stop token was triggered. It is never answered
/// from the store.
class HOLDFAST_API cancelled : public std::exception {
 public:
  cancelled() noexcept;
  ~cancelled() override;
  [[nodiscard]] const char* what() const noexcept override;
};

/// Passed to a callable whose first parameter is `const holdfast::call_context&`.
struct call_context {
  std::string_view point{};  ///< name of the point
  /// When the caller stops waiting, in terms of std::chrono::steady_clock even if the engine has
  /// another clock. A later answer is still stored.
  std::optional<std::chrono::steady_clock::time_point> deadline{};
  /// Triggered when the engine closes, or at the deadline of a point with late_call::cancel.
  std::stop_token stop{};
  unsigned attempt = 1;  ///< 2 for the first retry

  /// Throws `cancelled` if a stop was requested.
  void throw_if_stopped() const {
    if (stop.stop_requested()) throw cancelled();
  }
};

}  // namespace HOLDFAST_NAMESPACE
