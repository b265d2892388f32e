#include "redis/dialer.hpp"

#include "redis/address.hpp"

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

namespace HOLDFAST_NAMESPACE::redis {

namespace {

constexpr auto next_address_delay = std::chrono::milliseconds(250);  // with one address, before the next is tried beside it
constexpr std::size_t most_targets = 64;                             // that are tried for one connection

[[noreturn]] void cannot_connect(const std::string& name, const std::string& why, bool late) {
  throw error(late ? errc::timeout : errc::unavailable, "cannot connect to Redis at " + name + ": " + why, {.transient = true});
}

target socket_path(const std::string& path) {
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  if (path.size() >= sizeof to.sun_path) cannot_connect(path, "the path of the socket is too long", false);
  std::memcpy(to.sun_path, path.data(), path.size());
  target made{.size = sizeof to};
  std::memcpy(&made.address, &to, sizeof to);
  return made;
}

/// A port of this machine that nobody listens on may be given to who connects to it: both ends are the same socket then.
bool meets_itself(int socket) {
  sockaddr_storage here{};
  sockaddr_storage there{};
  socklen_t here_size = sizeof here;
  socklen_t there_size = sizeof there;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&here), &here_size) != 0) return false;
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&there), &there_size) != 0) return false;
  return here.ss_family != AF_UNIX && here_size == there_size && std::memcmp(&here, &there, here_size) == 0;
}

}  // namespace

std::vector<target> look_up(const std::string& address) {
  if (is_socket_path(address)) return {socket_path(address)};
  const std::string host(host_of(address));
  const std::string port = std::to_string(port_of(address));
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  int wrong = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
  if (wrong != 0) {  // a machine without a network has only its own addresses,
                     // which AI_ADDRCONFIG leaves out
    hints.ai_flags = AI_NUMERICSERV;
    wrong = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
  }
  if (wrong != 0) cannot_connect(address, wrong == EAI_SYSTEM ? std::generic_category().message(errno) : ::gai_strerror(wrong), false);
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> list(found, &::freeaddrinfo);
  std::vector<target> all;
  for (const addrinfo* each = list.get(); each != nullptr && all.size() < most_targets; each = each->ai_next) {
    target& made = all.emplace_back();
    made.size = each->ai_addrlen;
    std::memcpy(&made.address, each->ai_addr, each->ai_addrlen);
  }
  return all;
}

dialer::dialer(std::string name, std::vector<target> to, steady::time_point deadline)
    : name_(std::move(name)), to_(std::move(to)), deadline_(deadline), last_problem_(EADDRNOTAVAIL) {
  // Where there is little time, each gets its part of it.
  const auto share = (deadline - steady::now()) / static_cast<steady::duration::rep>(to_.size() + 1);
  apart_ = std::clamp<steady::duration>(share, steady::duration::zero(), next_address_delay);
  under_way_.reserve(to_.size());
}

dialer::~dialer() {
  for (const int each : under_way_) ::close(each);
}

void dialer::fail(int problem) const { cannot_connect(name_, std::generic_category().message(problem), problem == ETIMEDOUT); }

/// Connected at once: the socket. Otherwise -1, and it is under way, or failed.
int dialer::start_next() {
  const target& to = to_[next_++];
  const int made = ::socket(to.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (made < 0) {
    last_problem_ = errno;
    return -1;
  }
  if (::connect(made, reinterpret_cast<const sockaddr*>(&to.address), to.size) == 0) {
    if (!meets_itself(made)) return made;
    errno = ECONNREFUSED;
  }
  if (errno == EINPROGRESS || errno == EINTR) {
    under_way_.push_back(made);
    next_at_ = steady::now() + apart_;
  } else {
    last_problem_ = errno;
    ::close(made);
  }
  return -1;
}

/// One of those under way that is connected; those that failed are closed.
int dialer::finished() {
  if (under_way_.empty()) return -1;
  std::vector<pollfd> looks;
  add_waits(looks);
  if (::poll(looks.data(), looks.size(), 0) <= 0) return -1;
  for (const auto& each : looks) {
    if (each.revents == 0) continue;
    std::erase(under_way_, each.fd);
    int problem = 0;
    socklen_t length = sizeof problem;
    if (::getsockopt(each.fd, SOL_SOCKET, SO_ERROR, &problem, &length) != 0) problem = errno;
    if (problem == 0 && meets_itself(each.fd)) problem = ECONNREFUSED;
    if (problem == 0) return each.fd;
    last_problem_ = problem;
    ::close(each.fd);
  }
  return -1;
}

int dialer::advance() {
  if (const int made = finished(); made >= 0) return made;
  while (next_ < to_.size() && (under_way_.empty() || steady::now() >= next_at_)) {
    if (const int made = start_next(); made >= 0) return made;
  }
  if (under_way_.empty()) fail(last_problem_);
  if (steady::now() >= deadline_) fail(ETIMEDOUT);
  return -1;
}

void dialer::add_waits(std::vector<pollfd>& to) const {
  for (const int each : under_way_) to.push_back({each, POLLOUT, 0});
}

steady::time_point dialer::wake_at() const noexcept { return next_ < to_.size() ? std::min(next_at_, deadline_) : deadline_; }

}  // namespace HOLDFAST_NAMESPACE::redis
