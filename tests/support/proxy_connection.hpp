#pragma once

/// \file
/// One connection of a cutting_proxy: two sockets and what is on its way between them. Used by the
/// proxy's thread alone.

#include <sys/types.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

namespace holdfast::test {

/// A socket, or none.
class proxy_socket {
 public:
  explicit proxy_socket(int number = -1) : number_(number) {}
  proxy_socket(proxy_socket&& other) noexcept;
  proxy_socket& operator=(proxy_socket&& other) noexcept;
  ~proxy_socket() { close(false); }

  [[nodiscard]] int get() const noexcept { return number_; }
  [[nodiscard]] bool open() const noexcept { return number_ >= 0; }
  /// With a reset the other side is told so at once; what was written before has reached it.
  void close(bool with_reset);

 private:
  int number_;
};

/// What the proxy does to one direction of all connections.
struct proxy_rules {
  std::chrono::milliseconds delay{};
  bool hold = false;
  bool drop = false;
  std::optional<std::uint64_t> budget{};  ///< bytes until a cut
  std::uint64_t bytes = 0;                ///< forwarded so far
};

/// One direction: where from, where to, and what is on its way.
struct proxy_stream {
  using clock = std::chrono::steady_clock;
  struct chunk {
    clock::time_point due{};
    std::string data{};
  };

  proxy_socket* from = nullptr;
  proxy_socket* to = nullptr;
  std::deque<chunk> queue{};
  std::size_t queued = 0;
  bool ended = false;     ///< the sender closed
  bool end_sent = false;  ///< the receiver knows
  bool lost = false;      ///< something was swallowed: nothing may follow

  /// From now on everything is swallowed.
  void discard() {
    lost = true;
    queue.clear();
    queued = 0;
  }
  [[nodiscard]] bool wants_to_read(const proxy_rules& rules) const;
  [[nodiscard]] bool wants_to_write(const proxy_rules& rules, clock::time_point now) const;
  /// When the next byte may leave.
  [[nodiscard]] std::optional<clock::time_point> next_due(const proxy_rules& rules) const;
  /// False: the connection broke.
  bool read(const proxy_rules& rules, clock::time_point now);
  bool write(proxy_rules& rules, clock::time_point now);
};

/// Both directions; index 0 is to the server.
struct proxy_connection {
  proxy_socket client{};
  proxy_socket server{};
  bool connecting = true;
  std::array<proxy_stream, 2> streams{};

  proxy_connection(proxy_socket from_client, proxy_socket to_server);
  proxy_connection(const proxy_connection&) = delete;
  proxy_connection& operator=(const proxy_connection&) = delete;

  [[nodiscard]] bool over() const;
};

}  // namespace holdfast::test
