#pragma once

/// \file
/// Limits the attempts to connect to a server that cannot be reached. After a failure, callers get
/// its reason at once instead of an attempt of their own. After a pause, one caller may try; the
/// pauses grow with each failure, and end with the first success.
///
///     open      no failure since the last success: every caller may connect
///     paused    until `retry_at_`: every caller gets the reason
///     probing   one caller connects; the others get the reason

#include <holdfast/error.hpp>

#include "net/poll_timeout.hpp"

#include <optional>

namespace HOLDFAST_NAMESPACE::detail::redis {

using net::steady;

/// Every `enter` that returns must be followed by one call of `succeeded`, `failed` or `cancelled`.
/// Thread-safety: none.
class HOLDFAST_API connect_gate {
 public:
  /// The caller may connect. Throws the reason of the last failure if it must not.
  void enter(steady::time_point now);
  void succeeded() noexcept;
  /// `start` is the time of `enter`.
  void failed(const error& problem, steady::time_point start, steady::time_point now);
  /// The attempt ended without telling anything about the server.
  void cancelled(steady::time_point start, steady::time_point now) noexcept;

 private:
  unsigned failures_ = 0;  // in a row; attempts at the same time count once
  bool probing_ = false;
  steady::time_point failed_at_{};
  steady::time_point retry_at_{};
  std::optional<error> reason_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::redis
