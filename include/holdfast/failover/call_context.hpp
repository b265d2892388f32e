#pragma once

/// \file
/// What an upstream may know about the call it serves, and how it says that it gave up because it was told to.

#include <holdfast/version.hpp>

#include <chrono>
#include <exception>
#include <optional>
#include <stop_token>
#include <string_view>

namespace HOLDFAST_NAMESPACE {

/// Thrown by an upstream that stopped because it was asked to. It is never recovered from: whoever cancels wants no answer.
class HOLDFAST_API cancelled : public std::exception {
 public:
  cancelled() noexcept;
  ~cancelled() override;
  [[nodiscard]] const char* what() const noexcept override;
};

/// Given to a callable whose first parameter is `const holdfast::call_context&`.
struct call_context {
  std::string_view point{};  ///< its name
  /// When the caller stops waiting, a moment of std::chrono::steady_clock whatever clock the engine has. The answer is stored all the same.
  std::optional<std::chrono::steady_clock::time_point> deadline{};
  std::stop_token stop{};  ///< asked to stop: the engine closes, or the caller left and the point says late_call::cancel
  unsigned attempt = 1;    ///< 2 for the first retry

  /// Throws `cancelled` when a stop was requested.
  void throw_if_stopped() const {
    if (stop.stop_requested()) throw cancelled();
  }
};

}  // namespace HOLDFAST_NAMESPACE
