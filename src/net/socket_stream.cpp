#include "net/socket_stream.hpp"

#include "net/socket_io.hpp"
#include "net/tls.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace HOLDFAST_NAMESPACE::detail::net {

namespace {

/// Closes the socket if a constructor throws.
struct socket_guard {
  int socket;
  ~socket_guard() {
    if (socket >= 0) ::close(socket);
  }
};

}  // namespace

socket_stream::socket_stream(int socket) noexcept : socket_(socket) {}

socket_stream::socket_stream(int socket, const tls_server_context& context) : socket_(socket) {
  socket_guard guard{socket};
  tls_ = std::make_unique<tls_session>(context, socket, "the client");
  handshaking_ = true;
  guard.socket = -1;
}

socket_stream::socket_stream(int socket, const tls_context& context, const std::string& address,
                             const std::string& peer)
    : socket_(socket) {
  socket_guard guard{socket};
  tls_ = std::make_unique<tls_session>(context, socket, address, peer);
  handshaking_ = true;
  guard.socket = -1;
}

socket_stream::~socket_stream() {
  tls_.reset();
  ::close(socket_);
}

std::uint32_t socket_stream::handshake() {
  if (!handshaking_) return 0;
  const short events = tls_->handshake();
  handshaking_ = events != 0;
  if (!handshaking_) return 0;
  return events == POLLIN ? std::uint32_t{EPOLLIN} : std::uint32_t{EPOLLOUT};
}

std::unique_ptr<const peer_certificate> socket_stream::client_certificate() const {
  return tls_ ? tls_->client_certificate() : nullptr;
}

io_result socket_stream::write(std::string_view bytes) {
  if (!tls_) return write_socket(socket_, bytes, close_reason_);
  const auto result = tls_->write(bytes);
  if (result.status == io_status::closed) close_reason_ = tls_->close_reason();
  return result;
}

io_result socket_stream::read(std::span<char> buffer) {
  if (!tls_) return read_socket(socket_, buffer, close_reason_);
  const auto result = tls_->read(buffer);
  if (result.status == io_status::closed) close_reason_ = tls_->close_reason();
  return result;
}

bool socket_stream::is_idle() noexcept {
  char byte = 0;
  const ssize_t count = ::recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (tls_ && count != 0) return tls_->is_idle();
  return count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
}

void socket_stream::shut_down_writing() noexcept {
  if (tls_ && !handshaking_) tls_->send_close();
  (void)::shutdown(socket_, SHUT_WR);
}

void socket_stream::reset_on_close() noexcept {
  const linger abort{.l_onoff = 1, .l_linger = 0};
  (void)::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &abort, sizeof abort);
}

}  // namespace HOLDFAST_NAMESPACE::detail::net
