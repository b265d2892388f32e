#pragma once

/// \file
/// A TCP connection to a host that may have several addresses, or to a Unix socket. It never blocks, but for looking up a name.

#include "redis/wire.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <cstddef>
#include <string>
#include <vector>

namespace HOLDFAST_NAMESPACE::redis {

/// One address of a host.
struct target {
  sockaddr_storage address{};
  socklen_t size = 0;
};

/// All addresses of `host:port` or of the path of a socket. Throws errc::unavailable (transient). Looking up a name blocks, for as long as
/// the system likes.
[[nodiscard]] HOLDFAST_API std::vector<target> look_up(const std::string& address);

/// Tries the addresses in their order. One that says nothing is not waited for: the next is tried beside it after a while, at once when it
/// refuses, and the first to answer is taken (RFC 8305 calls it happy eyeballs). Thread-safety: none.
class HOLDFAST_API dialer {
 public:
  /// `name` is for messages.
  dialer(std::string name, std::vector<target> to, steady::time_point deadline);
  ~dialer();
  dialer(const dialer&) = delete;
  dialer& operator=(const dialer&) = delete;

  /// A look at all that are under way. The connected socket, which is the caller's from now on, or -1 while there is none. Throws
  /// errc::unavailable or errc::timeout (transient) when all have failed, or the deadline has come.
  [[nodiscard]] int advance();
  /// What to wait for, until when at the latest.
  void add_waits(std::vector<pollfd>& to) const;
  [[nodiscard]] steady::time_point wake_at() const noexcept;

 private:
  [[nodiscard]] int start_next();
  [[nodiscard]] int finished();
  [[noreturn]] void fail(int problem) const;

  std::string name_;
  std::vector<target> to_;
  steady::time_point deadline_;
  steady::duration apart_{};
  std::size_t next_ = 0;  // to be tried
  steady::time_point next_at_{};
  std::vector<int> under_way_{};
  int last_problem_ = 0;
};

}  // namespace HOLDFAST_NAMESPACE::redis
