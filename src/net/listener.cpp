#include "net/listener.hpp"

#include <holdfast/error.hpp>

#include "net/address.hpp"
#include "net/dialer.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::net {

namespace {

constexpr std::chrono::milliseconds accept_pause{100};
constexpr int accepts_per_event = 64;
/// The first descriptor that a service manager passes on.
constexpr int first_inherited = 3;

[[noreturn]] void throw_cannot_listen(const std::string& address, const std::string& reason) {
  throw error(errc::unavailable, "cannot listen on " + address + ": " + reason);
}

[[noreturn]] void throw_cannot_listen(const std::string& address) {
  const int number = errno;
  throw_cannot_listen(address, std::generic_category().message(number));
}

const sockaddr* as_sockaddr(const socket_address& address) {
  return reinterpret_cast<const sockaddr*>(&address.storage);
}

void enable(int socket, int level, int option) {
  const int one = 1;
  (void)::setsockopt(socket, level, option, &one, sizeof one);
}

/// Removes the file of a socket on which no process accepts.
void remove_stale_socket(const std::string& path, const socket_address& address) {
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0) return;
  if (!S_ISSOCK(status.st_mode)) throw_cannot_listen(path, "there is a file that is not a socket");
  const int probe = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const bool refused =
      ::connect(probe, as_sockaddr(address), address.size) != 0 && errno == ECONNREFUSED;
  ::close(probe);
  if (!refused) throw_cannot_listen(path, "another process accepts connections there");
  (void)::unlink(path.c_str());
}

/// The address that a socket is bound to, as text.
std::string bound_address(int socket) {
  socket_address bound;
  bound.size = sizeof bound.storage;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&bound.storage), &bound.size) != 0)
    return "?";
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (bound.storage.ss_family == AF_INET) {
    sockaddr_in address{};
    std::memcpy(&address, &bound.storage, sizeof address);
    ::inet_ntop(AF_INET, &address.sin_addr, text.data(), text.size());
    return std::string(text.data()) + ':' + std::to_string(ntohs(address.sin_port));
  }
  if (bound.storage.ss_family == AF_INET6) {
    sockaddr_in6 address{};
    std::memcpy(&address, &bound.storage, sizeof address);
    ::inet_ntop(AF_INET6, &address.sin6_addr, text.data(), text.size());
    return '[' + std::string(text.data()) + "]:" + std::to_string(ntohs(address.sin6_port));
  }
  sockaddr_un address{};
  std::memcpy(&address, &bound.storage, sizeof address);
  if (bound.size <= offsetof(sockaddr_un, sun_path)) return "/";
  return {address.sun_path, ::strnlen(address.sun_path, sizeof address.sun_path)};
}

/// Splits `host:port`; the host may be in brackets.
std::string numeric_address(const std::string& address) {
  const auto colon = address.rfind(':');
  const auto digits = colon == std::string::npos ? std::string{} : address.substr(colon + 1);
  unsigned port = 0;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  std::string host = address.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (failed != std::errc{} || end != digits.data() + digits.size() || port > 65535 || host.empty())
    throw error(errc::invalid_argument, "'" + address +
                                            "' is not an address to listen on; use host:port, "
                                            "[host]:port or the path of a socket");
  return host + ':' + digits;
}

unsigned environment_number(const char* name) {
  const char* const text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  unsigned number = 0;
  if (text == nullptr) return 0;
  const auto* const end = text + std::strlen(text);
  const auto parsed = std::from_chars(text, end, number);
  return parsed.ec == std::errc{} && parsed.ptr == end ? number : 0;
}

}  // namespace

listening_socket::listening_socket(int socket) : socket_(socket) {}

listening_socket::listening_socket(listening_socket&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)),
      address_(std::move(other.address_)),
      path_(std::exchange(other.path_, {})) {}

listening_socket::~listening_socket() {
  if (!path_.empty()) (void)::unlink(path_.c_str());
  if (socket_ >= 0) ::close(socket_);
}

listening_socket listening_socket::open(const std::string& address, const options& options) {
  const bool is_path = is_socket_path(address);
  const auto target = resolve(is_path ? address : numeric_address(address), "this machine").front();
  if (is_path) remove_stale_socket(address, target);
  listening_socket opened(
      ::socket(target.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (opened.socket_ < 0) throw_cannot_listen(address);
  if (!is_path) {
    enable(opened.socket_, SOL_SOCKET, SO_REUSEADDR);
    if (options.port == sharing::next) enable(opened.socket_, SOL_SOCKET, SO_REUSEPORT);
    if (target.storage.ss_family == AF_INET6) enable(opened.socket_, IPPROTO_IPV6, IPV6_V6ONLY);
  }
  if (::bind(opened.socket_, as_sockaddr(target), target.size) != 0) throw_cannot_listen(address);
  // Not before `bind`: it would succeed beside another server of the same user, and the system
  // would give each of the two a part of the connections.
  if (options.port == sharing::first) enable(opened.socket_, SOL_SOCKET, SO_REUSEPORT);
  if (is_path) {
    opened.path_ = address;
    // Before `listen`: until then no client can connect.
    if (::chmod(address.c_str(), options.mode) != 0) throw_cannot_listen(address);
  }
  if (::listen(opened.socket_, options.backlog) != 0) throw_cannot_listen(address);
  opened.address_ = is_path ? address : bound_address(opened.socket_);
  return opened;
}

std::vector<listening_socket> listening_socket::inherited() {
  std::vector<listening_socket> sockets;
  const bool for_this_process =
      environment_number("LISTEN_PID") == static_cast<unsigned>(::getpid());
  const unsigned count = for_this_process ? environment_number("LISTEN_FDS") : 0;
  for (const char* const name : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"})
    ::unsetenv(name);  // NOLINT(concurrency-mt-unsafe)
  for (unsigned i = 0; i < count; ++i) {
    const int descriptor = first_inherited + static_cast<int>(i);
    int listens = 0;
    socklen_t size = sizeof listens;
    if (::getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0)
      throw error(errc::invalid_argument, "descriptor " + std::to_string(descriptor) +
                                              " of LISTEN_FDS is not a socket that listens");
    (void)::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
    (void)::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) | O_NONBLOCK);
    listening_socket& added = sockets.emplace_back(listening_socket(descriptor));
    added.address_ = bound_address(descriptor);
  }
  return sockets;
}

acceptor::acceptor(event_loop& loop, const listening_socket& socket,
                   std::function<void(int)> accept)
    : loop_(loop), socket_(socket.descriptor()), accept_(std::move(accept)), pause_(loop) {
  pause_.set_callback([this] { registration_.change(EPOLLIN); });
  registration_.add(loop_, socket_, EPOLLIN, *this);
}

void acceptor::on_events(std::uint32_t /*events*/) {
  for (int i = 0; i < accepts_per_event; ++i) {
    const int accepted = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (accepted >= 0) {
      // Fails on a Unix socket, which has no such delay.
      enable(accepted, IPPROTO_TCP, TCP_NODELAY);
      accept_(accepted);
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      accept_(-1);
      registration_.change(0);
      pause_.set(loop_.now() + accept_pause);
    }
    return;
  }
}

}  // namespace HOLDFAST_NAMESPACE::detail::net
