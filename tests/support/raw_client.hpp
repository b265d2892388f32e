#pragma once

/// \file
/// A blocking connection for tests: sends any bytes, and reads what comes.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast::test {

class raw_client {
 public:
  /// `127.0.0.1:port`, or the path of a Unix socket.
  explicit raw_client(const std::string& address) {
    if (address.starts_with('/')) {
      socket_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
      sockaddr_un target{};
      target.sun_family = AF_UNIX;
      std::strncpy(target.sun_path, address.c_str(), sizeof target.sun_path - 1);
      connect(reinterpret_cast<const sockaddr*>(&target), sizeof target);
      return;
    }
    socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in target{};
    target.sin_family = AF_INET;
    target.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    target.sin_port =
        htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
    connect(reinterpret_cast<const sockaddr*>(&target), sizeof target);
  }
  raw_client(raw_client&& other) noexcept : socket_(std::exchange(other.socket_, -1)) {}
  raw_client& operator=(raw_client&&) = delete;
  ~raw_client() {
    if (socket_ >= 0) ::close(socket_);
  }

  /// Returns false if the server has closed the connection.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto count = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
  }
  void finish_sending() { ::shutdown(socket_, SHUT_WR); }
  /// Closes with a reset.
  void reset() {
    const linger now{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    ::close(std::exchange(socket_, -1));
  }
  /// Reads until the text contains `end`, or the connection ends.
  std::string read_until(std::string_view end) {
    std::string text;
    while (text.find(end) == std::string::npos) {
      const auto piece = read_some();
      if (piece.empty()) break;
      text += piece;
    }
    return text;
  }
  std::string read_to_end() { return read_until(std::string_view("\0\0\0\0never", 9)); }
  /// Empty at the end of the connection, or after a minute.
  std::string read_some() {
    pollfd polled{socket_, POLLIN, 0};
    if (::poll(&polled, 1, 60'000) <= 0) return {};
    char buffer[65536];
    const auto count = ::recv(socket_, buffer, sizeof buffer, 0);
    return count > 0 ? std::string(buffer, static_cast<std::size_t>(count)) : std::string{};
  }
  /// The server has closed the connection, or sent something.
  [[nodiscard]] bool is_readable() const {
    pollfd polled{socket_, POLLIN, 0};
    return ::poll(&polled, 1, 0) > 0;
  }
  [[nodiscard]] int descriptor() const { return socket_; }

 private:
  void connect(const sockaddr* target, socklen_t size) {
    if (::connect(socket_, target, size) != 0) {
      ::close(socket_);
      throw std::runtime_error("cannot connect");
    }
  }
  int socket_ = -1;
};

}  // namespace holdfast::test
