#include "net/dialer.hpp"

#include "net/address.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::net {

namespace {

/// Time that a silent address gets before the next one is tried in parallel.
constexpr auto next_address_delay = std::chrono::milliseconds(250);
constexpr std::size_t max_addresses = 64;

[[noreturn]] void throw_cannot_connect(errc code, const std::string& peer,
                                       const std::string& reason) {
  throw error(code, "cannot connect to " + peer + ": " + reason, {.transient = true});
}

socket_address socket_path_address(const std::string& path, const std::string& peer) {
  sockaddr_un unix_address{};
  unix_address.sun_family = AF_UNIX;
  if (path.size() >= sizeof unix_address.sun_path)
    throw_cannot_connect(errc::unavailable, peer, "the path of the socket is too long");
  std::memcpy(unix_address.sun_path, path.data(), path.size());
  socket_address result{.size = sizeof unix_address};
  std::memcpy(&result.storage, &unix_address, sizeof unix_address);
  return result;
}

/// When a client dials a local port without a listener, the kernel may choose the same port as the
/// source port. The socket is then connected to itself.
bool is_self_connected(int socket) {
  sockaddr_storage local{};
  sockaddr_storage remote{};
  socklen_t local_size = sizeof local;
  socklen_t remote_size = sizeof remote;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&local), &local_size) != 0) return false;
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&remote), &remote_size) != 0) return false;
  return local.ss_family != AF_UNIX && local_size == remote_size &&
         std::memcmp(&local, &remote, local_size) == 0;
}

}  // namespace

std::vector<socket_address> resolve(const std::string& address, const std::string& peer) {
  if (is_socket_path(address)) return {socket_path_address(address, peer)};
  const std::string host(host_of(address));
  const std::string port = std::to_string(port_of(address));
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG | AI_NUMERICSERV;
  addrinfo* first = nullptr;
  int status = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &first);
  if (status != 0) {
    // On a machine without a network, AI_ADDRCONFIG hides the loopback addresses.
    hints.ai_flags = AI_NUMERICSERV;
    status = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &first);
  }
  if (status != 0)
    throw_cannot_connect(
        errc::unavailable, peer,
        status == EAI_SYSTEM ? std::generic_category().message(errno) : ::gai_strerror(status));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> list(first, &::freeaddrinfo);
  std::vector<socket_address> addresses;
  for (const addrinfo* entry = list.get(); entry != nullptr && addresses.size() < max_addresses;
       entry = entry->ai_next) {
    socket_address& added = addresses.emplace_back();
    added.size = entry->ai_addrlen;
    std::memcpy(&added.storage, entry->ai_addr, entry->ai_addrlen);
  }
  return addresses;
}

dialer::dialer(std::string peer, std::vector<socket_address> addresses, steady::time_point deadline)
    : peer_(std::move(peer)),
      addresses_(std::move(addresses)),
      deadline_(deadline),
      last_error_(EADDRNOTAVAIL) {
  // If the time is short, every address gets an equal share of it.
  const auto share =
      (deadline - steady::now()) / static_cast<steady::duration::rep>(addresses_.size() + 1);
  delay_ = std::clamp<steady::duration>(share, steady::duration::zero(), next_address_delay);
  pending_.reserve(addresses_.size());
}

dialer::~dialer() {
  for (const int socket : pending_) ::close(socket);
}

void dialer::fail(int error_number) const {
  throw_cannot_connect(error_number == ETIMEDOUT ? errc::timeout : errc::unavailable, peer_,
                       std::generic_category().message(error_number));
}

/// Returns the socket if it connected at once; otherwise -1, and the attempt is pending or failed.
int dialer::start_next() {
  const socket_address& target = addresses_[next_++];
  const int socket =
      ::socket(target.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket < 0) {
    last_error_ = errno;
    return -1;
  }
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&target.storage), target.size) == 0) {
    if (!is_self_connected(socket)) return socket;
    errno = ECONNREFUSED;
  }
  if (errno == EINPROGRESS || errno == EINTR) {
    pending_.push_back(socket);
    next_at_ = steady::now() + delay_;
  } else {
    last_error_ = errno;
    ::close(socket);
  }
  return -1;
}

/// Returns a pending socket that is connected, or -1. Closes those that failed.
int dialer::find_connected() {
  if (pending_.empty()) return -1;
  std::vector<pollfd> polls;
  add_polls(polls);
  if (::poll(polls.data(), polls.size(), 0) <= 0) return -1;
  for (const auto& polled : polls) {
    if (polled.revents == 0) continue;
    std::erase(pending_, polled.fd);
    int error_number = 0;
    socklen_t length = sizeof error_number;
    if (::getsockopt(polled.fd, SOL_SOCKET, SO_ERROR, &error_number, &length) != 0)
      error_number = errno;
    if (error_number == 0 && is_self_connected(polled.fd)) error_number = ECONNREFUSED;
    if (error_number == 0) return polled.fd;
    last_error_ = error_number;
    ::close(polled.fd);
  }
  return -1;
}

int dialer::advance() {
  if (const int socket = find_connected(); socket >= 0) return socket;
  while (next_ < addresses_.size() && (pending_.empty() || steady::now() >= next_at_)) {
    if (const int socket = start_next(); socket >= 0) return socket;
  }
  if (pending_.empty()) fail(last_error_);
  if (steady::now() >= deadline_) fail(ETIMEDOUT);
  return -1;
}

void dialer::add_polls(std::vector<pollfd>& polls) const {
  for (const int socket : pending_) polls.push_back({socket, POLLOUT, 0});
}

steady::time_point dialer::wake_at() const noexcept {
  return next_ < addresses_.size() ? std::min(next_at_, deadline_) : deadline_;
}

}  // namespace HOLDFAST_NAMESPACE::detail::net
