#include "redis/wire.hpp"

#include "redis/address.hpp"
#include "redis/tls.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

namespace HOLDFAST_NAMESPACE::redis {

namespace {

std::string text_of(int number) { return std::generic_category().message(number); }

[[noreturn]] void fail(const std::string& address, const std::string& why, bool late = false) {
  throw error(late ? errc::timeout : errc::unavailable, "cannot connect to Redis at " + address + ": " + why, {.transient = true});
}

/// Closes it unless it is released.
class owned_socket {
 public:
  explicit owned_socket(int held) : held_(held) {}
  owned_socket(const owned_socket&) = delete;
  owned_socket& operator=(const owned_socket&) = delete;
  ~owned_socket() {
    if (held_ >= 0) ::close(held_);
  }
  [[nodiscard]] int get() const noexcept { return held_; }
  int release() noexcept { return std::exchange(held_, -1); }

 private:
  int held_;
};

/// 0, or why not.
int connect_within(int socket, const sockaddr* to, socklen_t size, steady::time_point deadline) {
  if (::connect(socket, to, size) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  if (!wait_for(socket, POLLOUT, deadline)) return ETIMEDOUT;
  int problem = 0;
  socklen_t length = sizeof problem;
  if (::getsockopt(socket, SOL_SOCKET, SO_ERROR, &problem, &length) != 0) return errno;
  return problem;
}

int connect_to_path(const std::string& path, steady::time_point deadline) {
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  if (path.size() >= sizeof to.sun_path) fail(path, "the path of the socket is too long");
  std::memcpy(to.sun_path, path.data(), path.size());
  owned_socket made(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (made.get() < 0) fail(path, text_of(errno));
  const int problem = connect_within(made.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to, deadline);
  if (problem != 0) fail(path, text_of(problem), problem == ETIMEDOUT);
  return made.release();
}

void set(int socket, int level, int name, int value) { ::setsockopt(socket, level, name, &value, sizeof value); }

int connect_to_host(const std::string& address, std::chrono::seconds keep_alive, steady::time_point deadline) {
  const std::string host(host_of(address));
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(port_of(address));
  int wrong = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
  if (wrong != 0) {  // a machine without a network has only its own addresses, which AI_ADDRCONFIG leaves out
    hints.ai_flags = AI_NUMERICSERV;
    wrong = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
  }
  if (wrong != 0) fail(address, wrong == EAI_SYSTEM ? text_of(errno) : ::gai_strerror(wrong));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> list(found, &::freeaddrinfo);

  int problem = EADDRNOTAVAIL;
  for (const addrinfo* each = list.get(); each != nullptr; each = each->ai_next) {
    owned_socket made(::socket(each->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, each->ai_protocol));
    if (made.get() < 0) {
      problem = errno;
      continue;
    }
    problem = connect_within(made.get(), each->ai_addr, each->ai_addrlen, deadline);
    if (problem != 0) continue;
    set(made.get(), IPPROTO_TCP, TCP_NODELAY, 1);
    if (keep_alive.count() > 0) {
      const int seconds = static_cast<int>(std::clamp<std::chrono::seconds::rep>(keep_alive.count(), 1, 32'000));
      set(made.get(), SOL_SOCKET, SO_KEEPALIVE, 1);
      set(made.get(), IPPROTO_TCP, TCP_KEEPIDLE, seconds);
      set(made.get(), IPPROTO_TCP, TCP_KEEPINTVL, std::max(1, seconds / 3));
      set(made.get(), IPPROTO_TCP, TCP_KEEPCNT, 3);
    }
    return made.release();
  }
  fail(address, text_of(problem), problem == ETIMEDOUT);
}

}  // namespace

int milliseconds_until(steady::time_point deadline) noexcept {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - steady::now()).count();
  return static_cast<int>(std::clamp<decltype(left)>(left, 0, 3'600'000));
}

bool wait_for(int descriptor, short events, steady::time_point deadline) {
  for (;;) {
    pollfd what{descriptor, events, 0};
    const int ready = ::poll(&what, 1, milliseconds_until(deadline));
    if (ready > 0) return true;
    if (ready == 0 && steady::now() >= deadline) return false;
    if (ready < 0 && errno != EINTR) return true;  // whoever asked will see it
  }
}

wire::wire(const std::string& address, const wire_options& options, steady::time_point deadline) {
  owned_socket made(is_socket_path(address) ? connect_to_path(address, deadline) : connect_to_host(address, options.keep_alive, deadline));
  if (options.tls != nullptr) tls_ = std::make_unique<tls_session>(*options.tls, made.get(), address, deadline);
  socket_ = made.release();
}

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
    return closed(text_of(errno));
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
    return closed(text_of(errno));
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
