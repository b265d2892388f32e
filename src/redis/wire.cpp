#include "redis/wire.hpp"

#include "redis/address.hpp"
#include "redis/dialer.hpp"
#include "redis/tls.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

namespace HOLDFAST_NAMESPACE::redis {

namespace {

void set(int socket, int level, int name, int value) { ::setsockopt(socket, level, name, &value, sizeof value); }

}  // namespace

int milliseconds_until(steady::time_point deadline) noexcept {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - steady::now()).count();
  return static_cast<int>(std::clamp<decltype(left)>(left, 0, 3'600'000));
}

wire::wire(std::string address, const wire_options& options, steady::time_point deadline)
    : address_(std::move(address)),
      options_(options),
      deadline_(deadline),
      dialing_(std::make_unique<dialer>(address_, look_up(address_), deadline)) {}

/// Connected: now it is ours.
void wire::take(int socket) {
  socket_ = socket;
  dialing_.reset();
  if (!is_socket_path(address_)) {
    set(socket_, IPPROTO_TCP, TCP_NODELAY, 1);
    if (options_.keep_alive.count() > 0) {
      const int seconds = static_cast<int>(std::clamp<std::chrono::seconds::rep>(options_.keep_alive.count(), 1, 32'000));
      set(socket_, SOL_SOCKET, SO_KEEPALIVE, 1);
      set(socket_, IPPROTO_TCP, TCP_KEEPIDLE, seconds);
      set(socket_, IPPROTO_TCP, TCP_KEEPINTVL, std::max(1, seconds / 3));
      set(socket_, IPPROTO_TCP, TCP_KEEPCNT, 3);
    }
  }
  if (options_.tls == nullptr) return;
  tls_ = std::make_unique<tls_session>(*options_.tls, socket_, address_);
  shaking_ = POLLOUT;
}

bool wire::set_up() {
  if (dialing_) {
    const int made = dialing_->advance();
    if (made < 0) return false;
    take(made);
  }
  if (shaking_ != 0) {
    shaking_ = tls_->shake();
    if (shaking_ != 0 && steady::now() >= deadline_)
      throw error(errc::timeout, "cannot connect to Redis at " + address_ + " by TLS: no answer in time", {.transient = true});
  }
  return shaking_ == 0;
}

void wire::add_waits(std::vector<pollfd>& to) const {
  if (dialing_) dialing_->add_waits(to);
  else to.push_back({socket_, shaking_, 0});
}

steady::time_point wire::wake_at() const noexcept { return dialing_ ? dialing_->wake_at() : deadline_; }

wire::~wire() {
  tls_.reset();
  if (socket_ >= 0) ::close(socket_);
}

void wire::abandon() noexcept {
  if (socket_ >= 0) ::close(std::exchange(socket_, -1));
}

step_result wire::closed(std::string why) {
  why_ = std::move(why);
  return {.what = step::closed};
}

step_result wire::write(std::string_view bytes) {
  if (tls_) {
    const auto result = tls_->write(bytes);
    return result.what == step::closed ? closed(tls_->why()) : result;
  }
  for (;;) {
    const ssize_t done = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (done >= 0) return {.what = step::done, .bytes = static_cast<std::size_t>(done)};
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return {.what = step::wait_write};
    return closed(std::generic_category().message(errno));
  }
}

step_result wire::read(std::span<char> into) {
  if (tls_) {
    const auto result = tls_->read(into);
    return result.what == step::closed ? closed(tls_->why()) : result;
  }
  for (;;) {
    const ssize_t done = ::recv(socket_, into.data(), into.size(), MSG_DONTWAIT);
    if (done > 0) return {.what = step::done, .bytes = static_cast<std::size_t>(done)};
    if (done == 0) return closed("the server closed it");
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return {.what = step::wait_read};
    return closed(std::generic_category().message(errno));
  }
}

bool wire::quiet() noexcept {
  char byte = 0;
  const ssize_t seen = ::recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  // Data is a reply that nobody asked for; under TLS it may be the protocol's own, or its goodbye.
  if (tls_ && seen != 0) return tls_->quiet();
  return seen < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
}

}  // namespace HOLDFAST_NAMESPACE::redis
