#include "support/free_port.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <mutex>
#include <random>
#include <set>
#include <stdexcept>

namespace holdfast::test {
namespace {

bool can_bind(std::uint16_t port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return false;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool good =
      ::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      ::listen(socket, 1) == 0;
  ::close(socket);
  return good;
}

}  // namespace

std::uint16_t free_port() {
  static std::mutex mutex;
  static std::set<std::uint16_t> given;
  // Random, not counted up: test programs that run at the same time must not all try the same
  // ports.
  static std::mt19937 random{std::random_device{}()};
  const std::lock_guard lock(mutex);
  std::uniform_int_distribution<std::uint16_t> any(10'000, 22'767);
  for (int attempt = 0; attempt < 10'000; ++attempt) {
    const auto port = any(random);
    if (!given.contains(port) && can_bind(port)) {
      given.insert(port);
      return port;
    }
  }
  throw std::runtime_error("no free port between 10000 and 22767");
}

}  // namespace holdfast::test
