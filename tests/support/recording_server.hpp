#pragma once

/// \file
/// A server that the tests script byte by byte, for what only a hostile server would do. It keeps
/// everything that its clients send.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

namespace holdfast::test {

/// Listens on 127.0.0.1 and serves one client after the other, each with the same script.
class recording_server {
 public:
  /// One client, while the script runs.
  class client {
   public:
    client(recording_server& server, int socket) : server_(server), socket_(socket) {}

    /// Returns whether all of it was sent.
    bool send(const std::string& bytes) const {
      return ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
             static_cast<ssize_t>(bytes.size());
    }
    /// Reads exactly so many bytes; fewer when the client hangs up.
    std::string receive(std::size_t count) {
      std::string bytes;
      std::array<char, 4096> buffer{};
      while (bytes.size() < count) {
        const auto got =
            ::recv(socket_, buffer.data(), std::min(buffer.size(), count - bytes.size()), 0);
        if (got <= 0) break;
        bytes.append(buffer.data(), static_cast<std::size_t>(got));
      }
      server_.record(bytes);
      return bytes;
    }
    /// For scripts that do more than send and receive: another protocol on top, or a reset.
    [[nodiscard]] int socket() const noexcept { return socket_; }
    void record(const std::string& bytes) { server_.record(bytes); }

   private:
    recording_server& server_;
    int socket_;
  };
  using script = std::function<void(client&)>;

  explicit recording_server(script each_client)
      : each_client_(std::move(each_client)),
        listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    if (::bind(listener_, generic, length) != 0 || ::listen(listener_, 8) != 0 ||
        ::getsockname(listener_, generic, &length) != 0)
      throw std::runtime_error("cannot listen on 127.0.0.1");
    port_ = ntohs(address.sin_port);
    thread_ = std::jthread([this] { serve(); });
  }
  ~recording_server() {
    {
      const std::scoped_lock lock(mutex_);
      stopping_ = true;
      ::shutdown(listener_, SHUT_RDWR);
      if (current_ >= 0) ::shutdown(current_, SHUT_RDWR);
    }
    thread_.join();
    ::close(listener_);
  }
  recording_server(const recording_server&) = delete;
  recording_server& operator=(const recording_server&) = delete;

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  /// All bytes of all clients so far.
  [[nodiscard]] std::string received() const {
    const std::scoped_lock lock(mutex_);
    return received_;
  }

 private:
  void serve() {
    for (;;) {
      const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (socket < 0) return;
      {
        const std::scoped_lock lock(mutex_);
        if (stopping_) {
          ::close(socket);
          return;
        }
        current_ = socket;
      }
      client one(*this, socket);
      each_client_(one);
      const std::scoped_lock lock(mutex_);
      current_ = -1;
      ::close(socket);
    }
  }
  void record(const std::string& bytes) {
    const std::scoped_lock lock(mutex_);
    received_ += bytes;
  }

  script each_client_;
  int listener_;
  std::uint16_t port_ = 0;
  mutable std::mutex mutex_{};
  std::string received_{};
  int current_ = -1;
  bool stopping_ = false;
  std::jthread thread_{};
};

}  // namespace holdfast::test
