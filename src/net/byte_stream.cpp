#include "net/byte_stream.hpp"

#include "net/address.hpp"
#include "net/dialer.hpp"
#include "net/socket_io.hpp"
#include "net/tls.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::net {

namespace {

void set_option(int socket, int level, int name, int value) {
  ::setsockopt(socket, level, name, &value, sizeof value);
}

void set_keep_alive(int socket, std::chrono::seconds idle) {
  const int seconds =
      static_cast<int>(std::clamp<std::chrono::seconds::rep>(idle.count(), 1, 32'000));
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, seconds);
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, std::max(1, seconds / 3));
  set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, 3);
}

}  // namespace

byte_stream::byte_stream(const std::string& address, const stream_options& options,
                         steady::time_point deadline)
    : address_(address),
      peer_(std::string(options.service) + " at " + address),
      keep_alive_(options.keep_alive),
      tls_context_(options.tls),
      deadline_(deadline),
      dialer_(std::make_unique<dialer>(peer_, resolve(address, peer_), deadline)) {}

void byte_stream::use_socket(int socket) {
  socket_ = socket;
  dialer_.reset();
  if (!is_socket_path(address_)) {
    set_option(socket_, IPPROTO_TCP, TCP_NODELAY, 1);
    if (keep_alive_.count() > 0) set_keep_alive(socket_, keep_alive_);
  }
  if (tls_context_ == nullptr) return;
  tls_ = std::make_unique<tls_session>(*tls_context_, socket_, address_, peer_);
  handshake_events_ = POLLOUT;
}

bool byte_stream::set_up() {
  if (dialer_) {
    const int socket = dialer_->advance();
    if (socket < 0) return false;
    use_socket(socket);
  }
  if (handshake_events_ != 0) {
    handshake_events_ = tls_->handshake();
    if (handshake_events_ != 0 && steady::now() >= deadline_)
      throw error(errc::timeout,
                  "cannot connect to " + peer_ + " with TLS: it did not answer in time",
                  {.transient = true});
  }
  return handshake_events_ == 0;
}

void byte_stream::add_polls(std::vector<pollfd>& polls) const {
  if (dialer_) dialer_->add_polls(polls);
  else polls.push_back({socket_, handshake_events_, 0});
}

steady::time_point byte_stream::wake_at() const noexcept {
  return dialer_ ? dialer_->wake_at() : deadline_;
}

byte_stream::~byte_stream() {
  tls_.reset();
  if (socket_ >= 0) ::close(socket_);
}

void byte_stream::abandon() noexcept {
  if (socket_ >= 0) ::close(std::exchange(socket_, -1));
}

io_result byte_stream::write(std::string_view bytes) {
  if (!tls_) return write_socket(socket_, bytes, close_reason_);
  const auto result = tls_->write(bytes);
  if (result.status == io_status::closed) close_reason_ = tls_->close_reason();
  return result;
}

io_result byte_stream::read(std::span<char> buffer) {
  if (!tls_) return read_socket(socket_, buffer, close_reason_);
  const auto result = tls_->read(buffer);
  if (result.status == io_status::closed) close_reason_ = tls_->close_reason();
  return result;
}

bool byte_stream::is_idle() noexcept {
  char byte = 0;
  const ssize_t count = ::recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  // Bytes are data that was not asked for. Under TLS they may also be a message of TLS itself, such
  // as a session ticket or its close notification.
  if (tls_ && count != 0) return tls_->is_idle();
  return count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
}

}  // namespace HOLDFAST_NAMESPACE::detail::net
