#pragma once

/// \file
/// Finds out that a server does not speak TLS. A Redis without TLS reads the first bytes of a
/// handshake as an unfinished command and waits for its end, so the handshake would only end with
/// its time limit. The check opens a second connection and sends PING without TLS.

#include "net/byte_stream.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::redis {

using net::steady;

/// Thread-safety: none.
class plaintext_check {
 public:
  /// Begins when the handshake is silent for a while; `deadline` is that of the handshake.
  plaintext_check(std::string address, steady::time_point deadline);

  /// Proceeds without blocking, except to resolve the host. Throws errc::unavailable (not
  /// transient) if the server answers without TLS. Everything else ends the check.
  void advance();
  void add_polls(std::vector<pollfd>& polls) const;
  [[nodiscard]] steady::time_point wake_at() const noexcept;

 private:
  void read_answer();

  std::string address_;
  steady::time_point start_at_;
  steady::time_point deadline_;
  std::optional<net::byte_stream> stream_{};
  bool sent_ = false;
  bool ended_ = false;
};

}  // namespace HOLDFAST_NAMESPACE::detail::redis
