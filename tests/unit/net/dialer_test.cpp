// Connecting to hosts with several addresses, some of them silent. Uses loopback addresses only.

#include "net/dialer.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <string>
#include <vector>

namespace {

using namespace holdfast;
using namespace holdfast::detail::net;
using namespace std::chrono_literals;

/// 127.0.0.x
socket_address loopback(unsigned last, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(0x7F000000U + last);
  socket_address result{.size = sizeof address};
  std::memcpy(&result.storage, &address, sizeof address);
  return result;
}

int connect_to(int socket, const socket_address& address) {
  return ::connect(socket, reinterpret_cast<const sockaddr*>(&address.storage), address.size);
}

int bind_to(int socket, const socket_address& address) {
  return ::bind(socket, reinterpret_cast<const sockaddr*>(&address.storage), address.size);
}

/// A socket that listens on 127.0.0.x.
class listener {
 public:
  explicit listener(unsigned last, int backlog = 16)
      : last_(last), socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    EXPECT_EQ(bind_to(socket_, loopback(last, 0)), 0);
    EXPECT_EQ(::listen(socket_, backlog), 0);
    sockaddr_in bound{};
    socklen_t size = sizeof bound;
    EXPECT_EQ(::getsockname(socket_, reinterpret_cast<sockaddr*>(&bound), &size), 0);
    port_ = ntohs(bound.sin_port);
  }
  listener(const listener&) = delete;
  listener& operator=(const listener&) = delete;
  ~listener() { ::close(socket_); }
  [[nodiscard]] socket_address address() const { return loopback(last_, port_); }

 private:
  unsigned last_;
  int socket_;
  std::uint16_t port_ = 0;
};

/// Behaves like a machine behind a firewall that drops all packets: the queue of a listener that
/// never accepts is full, so the kernel does not answer.
class black_hole {
 public:
  black_hole() {
    for (int i = 0; i < 4; ++i) {
      const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
      EXPECT_LE(connect_to(socket, server_.address()), 0);
      pollfd polled{socket, POLLOUT, 0};
      fillers_.push_back(socket);
      if (::poll(&polled, 1, 100) == 0) return;
    }
  }
  black_hole(const black_hole&) = delete;
  black_hole& operator=(const black_hole&) = delete;
  ~black_hole() {
    for (const int socket : fillers_) ::close(socket);
  }
  [[nodiscard]] socket_address address() const { return server_.address(); }

 private:
  listener server_{2, 0};
  std::vector<int> fillers_{};
};

/// Returns the port of the server that answered.
std::uint16_t dial(std::vector<socket_address> addresses, std::chrono::milliseconds timeout) {
  dialer dialing("the server at test", std::move(addresses), steady::now() + timeout);
  for (;;) {
    const int socket = dialing.advance();
    if (socket >= 0) {
      sockaddr_in peer{};
      socklen_t size = sizeof peer;
      EXPECT_EQ(::getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &size), 0);
      ::close(socket);
      return ntohs(peer.sin_port);
    }
    std::vector<pollfd> polls;
    dialing.add_polls(polls);
    ::poll(polls.data(), polls.size(), poll_timeout(dialing.wake_at()));
  }
}

std::uint16_t port_number(const socket_address& address) {
  sockaddr_in internet{};
  std::memcpy(&internet, &address.storage, sizeof internet);
  return ntohs(internet.sin_port);
}

TEST(Dialer, SilentAddressesAreNotWaitedFor) {
  const black_hole first;
  const black_hole second;
  const listener third(3);
  const auto began = steady::now();
  EXPECT_EQ(dial({first.address(), second.address(), third.address()}, 60s),
            port_number(third.address()));
  EXPECT_LT(steady::now() - began, 30s);  // half a second on an idle machine
}

TEST(Dialer, ShortTimeIsDividedAmongTheAddresses) {
  const black_hole first;
  dialer dialing("test", std::vector<socket_address>(300, first.address()), steady::now() + 60s);
  EXPECT_EQ(dialing.advance(), -1);
  EXPECT_LE(dialing.wake_at() - steady::now(), 200ms)
      << "1/301 of the time; 250 ms without the division";
}

TEST(Dialer, RefusingAddressesCostNoTime) {
  std::vector<socket_address> addresses(400, loopback(4, 1));
  const listener last(3);
  addresses.push_back(last.address());
  const auto began = steady::now();
  EXPECT_EQ(dial(addresses, 600s), port_number(last.address()));
  EXPECT_LT(steady::now() - began, 50s);  // 400 delays of 250 ms are 100 s
}

TEST(Dialer, FirstAddressThatAnswersIsUsed) {
  const listener first(2);
  const listener second(3);
  EXPECT_EQ(dial({first.address(), second.address()}, 60s), port_number(first.address()));
}

TEST(Dialer, ErrorSaysWhyNoAddressAnswered) {
  const black_hole silent;
  try {
    (void)dial({loopback(4, 1), silent.address()}, 200ms);
    FAIL();
  } catch (const error& late) {
    EXPECT_EQ(late.code(), errc::timeout);
    EXPECT_TRUE(late.transient());
  }
  try {
    (void)dial({loopback(4, 1), loopback(5, 1)}, 60s);
    FAIL();
  } catch (const error& refused) {
    EXPECT_EQ(refused.code(), errc::unavailable);
    EXPECT_EQ(refused.message(), "cannot connect to the server at test: Connection refused");
  }
}

/// Returns a free port of the range from which the kernel takes source ports. It takes even ones
/// first.
std::uint16_t free_even_port() {
  for (std::uint16_t port = 60'000; port > 40'000; port -= 2) {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool free = bind_to(socket, loopback(1, port)) == 0;
    ::close(socket);
    if (free) return port;
  }
  return 0;
}

// The kernel tries source ports in turn, and sooner or later takes the port that is dialed. The
// socket is then connected to itself, which must count as refused.
TEST(Dialer, SelfConnectionIsRefused) {
  const auto port = free_even_port();
  const auto end = steady::now() + 3s;
  for (int i = 0; i < 20'000 && steady::now() < end; ++i) {
    try {
      (void)dial({loopback(1, port)}, 60s);
      FAIL() << "after " << i;
    } catch (const error& refused) {
      ASSERT_EQ(refused.message(), "cannot connect to the server at test: Connection refused");
    }
  }
}

TEST(Dialer, ResolvesNumbersNamesAndPaths) {
  EXPECT_EQ(resolve("127.0.0.1:6379", "the server").size(), 1U);
  EXPECT_EQ(resolve("::1:6379", "the server").front().storage.ss_family, AF_INET6);
  EXPECT_FALSE(resolve("localhost:1", "the server").empty());
  EXPECT_EQ(resolve("/run/x.sock", "the server").front().storage.ss_family, AF_UNIX);
  EXPECT_THROW((void)resolve("/" + std::string(200, 'x'), "the server"), error);
  EXPECT_THROW((void)resolve("no.such.host.invalid:1", "the server"), error);
}

}  // namespace
