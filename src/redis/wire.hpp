#pragma once

/// \file
/// A stream of bytes to a server: a TCP or Unix socket, with or without TLS. It never blocks: it says what to wait for.

#include <holdfast/redis.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::redis {

using steady = std::chrono::steady_clock;

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
  /// Connects, TLS included. Throws errc::unavailable, errc::timeout (both transient), or errc::permission for a certificate that is refused.
  /// Looking up a host's name is the system's business, and not ended by the deadline.
  wire(const std::string& address, const wire_options& options, steady::time_point deadline);
  ~wire();
  wire(const wire&) = delete;
  wire& operator=(const wire&) = delete;

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

  int socket_ = -1;
  std::unique_ptr<tls_session> tls_{};
  std::string why_{};
};

/// Waits for a socket; false when the deadline came first.
[[nodiscard]] bool wait_for(int descriptor, short events, steady::time_point deadline);
/// For poll: at least 0, rounded up so that it does not spin.
[[nodiscard]] int milliseconds_until(steady::time_point deadline) noexcept;

}  // namespace HOLDFAST_NAMESPACE::redis
