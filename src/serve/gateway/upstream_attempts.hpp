#pragma once

/// \file
/// The servers that a request was sent to, and whether it may be sent again (rule 17).

#include <holdfast/version.hpp>

#include "failover/retry.hpp"
#include "serve/gateway/shared_requests.hpp"
#include "serve/gateway/upstream_group.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace HOLDFAST_NAMESPACE::detail::serve::gateway {

/// Thread-safety: used on the thread of its loop only.
class upstream_attempts {
 public:
  /// `retry` may be null: no retries. `repeatable`: repeating the request changes nothing.
  upstream_attempts(upstream_group& servers, failover::retry_plan* retry, bool repeatable) noexcept
      : servers_(servers), retry_(retry), repeatable_(repeatable) {}

  /// The next server.
  [[nodiscard]] upstream& begin();
  /// The outcome of the last attempt.
  void report(bool success) noexcept { servers_.report(server_, success); }
  /// How long to wait before the next attempt; empty: no further attempt. `sent`: the failed
  /// attempt has sent something.
  [[nodiscard]] std::optional<std::chrono::microseconds> pause_after(const upstream_failure& reason,
                                                                     bool sent);

 private:
  [[nodiscard]] bool has_other() const noexcept;

  upstream_group& servers_;
  failover::retry_plan* retry_;
  bool repeatable_;
  std::uint64_t tried_ = 0;  // bit i: server i
  std::size_t server_ = 0;
  unsigned attempts_ = 0;
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve::gateway
