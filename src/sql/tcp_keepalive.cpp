#include "sql/tcp_keepalive.hpp"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace HOLDFAST_NAMESPACE::detail::sql {

void enable_keepalive(int socket, const tcp_keepalive& probes) noexcept {
  const auto set = [socket](int level, int option, std::chrono::milliseconds::rep value) {
    const auto number = static_cast<int>(value);
    (void)::setsockopt(socket, level, option, &number, sizeof number);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, probes.idle.count());
  set(IPPROTO_TCP, TCP_KEEPINTVL, probes.interval.count());
  set(IPPROTO_TCP, TCP_KEEPCNT, probes.count);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, probes.longest_silence().count());
}

}  // namespace HOLDFAST_NAMESPACE::detail::sql
