// Connecting to hosts with several addresses, some of which say nothing. On addresses of this machine.

#include "redis/dialer.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <string>
#include <vector>

namespace {

using namespace holdfast;
using namespace holdfast::redis;
using namespace std::chrono_literals;

target loopback(unsigned last, std::uint16_t port) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(0x7F000000U + last);
  target made{.size = sizeof to};
  std::memcpy(&made.address, &to, sizeof to);
  return made;
}

/// A socket that listens on 127.0.0.x.
class listening {
 public:
  explicit listening(unsigned last, int backlog = 16) : last_(last), held_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const auto any = loopback(last, 0);
    sockaddr_in got{};
    socklen_t size = sizeof got;
    EXPECT_EQ(::bind(held_, reinterpret_cast<const sockaddr*>(&any.address), any.size), 0);
    EXPECT_EQ(::listen(held_, backlog), 0);
    EXPECT_EQ(::getsockname(held_, reinterpret_cast<sockaddr*>(&got), &size), 0);
    port_ = ntohs(got.sin_port);
  }
  listening(const listening&) = delete;
  listening& operator=(const listening&) = delete;
  ~listening() { ::close(held_); }
  [[nodiscard]] target address() const { return loopback(last_, port_); }

 private:
  unsigned last_;
  int held_;
  std::uint16_t port_ = 0;
};

/// A machine behind a firewall that drops everything: nobody accepts, and the queue is full, so that the kernel answers no more.
class black_hole {
 public:
  black_hole() {
    for (int i = 0; i < 4; ++i) {
      const int each = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
      const auto to = server_.address();
      EXPECT_LE(::connect(each, reinterpret_cast<const sockaddr*>(&to.address), to.size), 0);
      pollfd wait{each, POLLOUT, 0};
      fillers_.push_back(each);
      if (::poll(&wait, 1, 100) == 0) return;
    }
  }
  black_hole(const black_hole&) = delete;
  black_hole& operator=(const black_hole&) = delete;
  ~black_hole() {
    for (const int each : fillers_) ::close(each);
  }
  [[nodiscard]] target address() const { return server_.address(); }

 private:
  listening server_{2, 0};
  std::vector<int> fillers_{};
};

/// The port of who answered.
std::uint16_t dial(std::vector<target> to, std::chrono::milliseconds within) {
  const auto deadline = steady::now() + within;
  dialer made("test", std::move(to), deadline);
  for (;;) {
    const int found = made.advance();
    if (found >= 0) {
      sockaddr_in peer{};
      socklen_t size = sizeof peer;
      EXPECT_EQ(::getpeername(found, reinterpret_cast<sockaddr*>(&peer), &size), 0);
      ::close(found);
      return ntohs(peer.sin_port);
    }
    std::vector<pollfd> waits;
    made.add_waits(waits);
    ::poll(waits.data(), waits.size(), milliseconds_until(made.wake_at()));
  }
}

std::uint16_t port_of(const target& of) {
  sockaddr_in seen{};
  std::memcpy(&seen, &of.address, sizeof seen);
  return ntohs(seen.sin_port);
}

TEST(RedisDialer, SilentAddressesAreNotWaitedFor) {
  const black_hole first;
  const black_hole second;
  const listening third(3);
  const auto began = steady::now();
  EXPECT_EQ(dial({first.address(), second.address(), third.address()}, 60s), port_of(third.address()));
  EXPECT_LT(steady::now() - began,
            30s);  // half a second, where nothing else runs
}

TEST(RedisDialer, LittleTimeIsDivided) {
  const black_hole first;
  dialer made("test", std::vector<target>(300, first.address()), steady::now() + 60s);
  EXPECT_EQ(made.advance(), -1);
  EXPECT_LE(made.wake_at() - steady::now(), 200ms) << "a part of 301; 250 ms where nothing is divided";
}

TEST(RedisDialer, RefusalsCostNothing) {
  std::vector<target> to(40, loopback(4, 1));
  const listening last(3);
  to.push_back(last.address());
  const auto began = steady::now();
  EXPECT_EQ(dial(to, 60s), port_of(last.address()));
  EXPECT_LT(steady::now() - began, 5s);  // 40 times the patience is 10 s
}

TEST(RedisDialer, FirstThatAnswersIsTaken) {
  const listening first(2);
  const listening second(3);
  EXPECT_EQ(dial({first.address(), second.address()}, 60s), port_of(first.address()));
}

TEST(RedisDialer, SaysWhyNobodyAnswered) {
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
    EXPECT_EQ(refused.message(), "cannot connect to Redis at test: Connection refused");
  }
}

/// A port that nobody has, of those that the kernel gives to who connects. It gives even ones first.
std::uint16_t free_even_port() {
  for (std::uint16_t port = 60'000; port > 40'000; port -= 2) {
    const int held = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const auto to = loopback(1, port);
    const bool mine = ::bind(held, reinterpret_cast<const sockaddr*>(&to.address), to.size) == 0;
    ::close(held);
    if (mine) return port;
  }
  return 0;
}

// The kernel walks through its ports, and sooner or later gives the one that is dialed: the socket is connected to itself. That is nobody.
TEST(RedisDialer, MeetingItselfIsMeetingNobody) {
  const auto port = free_even_port();
  const auto enough = steady::now() + 3s;
  for (int i = 0; i < 20'000 && steady::now() < enough; ++i) {
    try {
      (void)dial({loopback(1, port)}, 60s);
      FAIL() << "after " << i;
    } catch (const error& refused) {
      ASSERT_EQ(refused.message(), "cannot connect to Redis at test: Connection refused");
    }
  }
}

TEST(RedisDialer, LooksUpNumbersNamesAndPaths) {
  EXPECT_EQ(look_up("127.0.0.1:6379").size(), 1U);
  EXPECT_EQ(look_up("::1:6379").front().address.ss_family, AF_INET6);
  EXPECT_FALSE(look_up("localhost:1").empty());
  EXPECT_EQ(look_up("/run/x.sock").front().address.ss_family, AF_UNIX);
  EXPECT_THROW((void)look_up("/" + std::string(200, 'x')), error);
  EXPECT_THROW((void)look_up("no.such.host.invalid:1"), error);
}

}  // namespace
