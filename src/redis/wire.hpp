#pragma once

/// \file
/// A stream of bytes to a server: a TCP or Unix socket, with or without TLS. It never blocks: it says what to wait for.

#include <holdfast/redis.hpp>

#include <poll.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::redis {

using steady = std::chrono::steady_clock;

class dialer;
class tls_context;
class tls_session;

/// What came of a step.
enum class step : std::uint8_t {
  done,        ///< some bytes went over
  wait_read,   ///< when there is something to read
  wait_write,  ///< when there is room
  closed       ///< it is over; `why` says it
};

struct step_result {
  step what = step::done;
  std::size_t bytes = 0;
};

/// How sockets are made.
struct wire_options {
  std::chrono::seconds keep_alive{};
  const tls_context* tls = nullptr;  ///< null: none
};

/// Thread-safety: none.
class wire {
 public:
  /// Looks up the host, which is the system's business, and not ended by the deadline. Throws errc::unavailable (transient).
  wire(std::string address, const wire_options& options, steady::time_point deadline);
  ~wire();
  wire(const wire&) = delete;
  wire& operator=(const wire&) = delete;

  /// Goes on connecting, TLS included; true when that is done. Throws errc::unavailable, errc::timeout (both transient), or
  /// errc::permission for a certificate that is refused.
  [[nodiscard]] bool set_up();
  /// While it is not: what to wait for, until when at the latest.
  void add_waits(std::vector<pollfd>& to) const;
  [[nodiscard]] steady::time_point wake_at() const noexcept;

  [[nodiscard]] step_result write(std::string_view bytes);
  [[nodiscard]] step_result read(std::span<char> into);
  /// Why it was closed.
  [[nodiscard]] const std::string& why() const noexcept { return why_; }
  /// Is the other side still there, and silent? Asked before a connection is used again.
  [[nodiscard]] bool quiet() noexcept;
  [[nodiscard]] int descriptor() const noexcept { return socket_; }
  /// Closes this process's descriptor and says nothing to the other end, which is connected to the parent.
  void abandon() noexcept;

 private:
  step_result closed(std::string why);
  void take(int socket);

  std::string address_;
  wire_options options_;
  steady::time_point deadline_;
  std::unique_ptr<dialer> dialing_;  // until it is connected
  int socket_ = -1;
  std::unique_ptr<tls_session> tls_{};
  short shaking_ = 0;  // what TLS waits for, until it is through
  std::string why_{};
};

/// For poll: at least 0, rounded up so that it does not spin.
[[nodiscard]] int milliseconds_until(steady::time_point deadline) noexcept;

}  // namespace HOLDFAST_NAMESPACE::redis
