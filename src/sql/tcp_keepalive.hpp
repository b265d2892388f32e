#pragma once

#include <holdfast/version.hpp>

#include "sql/public_names.hpp"

#include <algorithm>
#include <chrono>

namespace HOLDFAST_NAMESPACE::detail::sql {

/// How the system probes an idle TCP connection, see pool_options::keepalive.
struct tcp_keepalive {
  explicit tcp_keepalive(std::chrono::milliseconds idle_time)
      : idle(std::clamp(std::chrono::ceil<std::chrono::seconds>(idle_time), std::chrono::seconds(1),
                        std::chrono::seconds(std::chrono::hours(2)))) {}

  std::chrono::seconds idle;
  std::chrono::seconds interval{10};
  int count = 3;

  /// After this time without an acknowledgement the connection is dead. Used as TCP_USER_TIMEOUT,
  /// which replaces the count of probes, and also holds for data that was sent.
  [[nodiscard]] std::chrono::milliseconds longest_silence() const {
    return idle + interval * count;
  }
};

/// Enables the probes on a socket, and TCP_USER_TIMEOUT. Does nothing on a socket that is not TCP.
void enable_keepalive(int socket, const tcp_keepalive& probes) noexcept;

}  // namespace HOLDFAST_NAMESPACE::detail::sql
