// The network that misbehaves on demand.

#include "support/child_process.hpp"
#include "support/cutting_proxy.hpp"
#include "support/eventually.hpp"
#include "support/free_port.hpp"
#include "support/postgres_server.hpp"
#include "support/shared_server.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

using namespace holdfast::test;
using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// A blocking socket with a deadline on every read.
class peer {
 public:
  explicit peer(int number = -1) : number_(number) {}
  peer(peer&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  peer& operator=(peer&&) = delete;
  ~peer() { close(); }

  static peer connect(std::uint16_t port) {
    peer result(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const auto address = loopback(port);
    if (::connect(result.number_, reinterpret_cast<const sockaddr*>(&address), sizeof address) !=
        0) {
      throw std::system_error(errno, std::generic_category(), "connect");
    }
    return result;
  }

  void send(const std::string& text) {
    if (::send(number_, text.data(), text.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(text.size())) {
      throw std::system_error(errno, std::generic_category(), "send");
    }
  }

  // What comes until the count is reached, the connection ends, or nothing comes any more. `error`
  // says how it ended.
  std::string receive(std::size_t count, std::chrono::milliseconds timeout = 20s) {
    std::string result;
    error = -1;
    while (result.size() < count) {
      pollfd ready{.fd = number_, .events = POLLIN, .revents = 0};
      if (::poll(&ready, 1, static_cast<int>(timeout.count())) == 0) return result;
      std::array<char, 4096> buffer{};
      const auto got =
          ::recv(number_, buffer.data(), std::min(buffer.size(), count - result.size()), 0);
      if (got <= 0) {
        error = got == 0 ? 0 : errno;
        return result;
      }
      result.append(buffer.data(), static_cast<std::size_t>(got));
    }
    return result;
  }

  void finish() { ::shutdown(number_, SHUT_WR); }
  void close() {
    if (number_ >= 0) ::close(std::exchange(number_, -1));
  }

  int error = -1;  // -1: open; 0: FIN; otherwise an errno

 private:
  int number_;
};

class listener {
 public:
  listener() : number_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), port_(free_port()) {
    const int on = 1;
    ::setsockopt(number_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    const auto address = loopback(port_);
    if (::bind(number_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(number_, 16) != 0) {
      throw std::system_error(errno, std::generic_category(), "listen");
    }
  }
  listener(const listener&) = delete;
  listener& operator=(const listener&) = delete;
  ~listener() { ::close(number_); }

  peer accept() { return peer(::accept4(number_, nullptr, nullptr, SOCK_CLOEXEC)); }
  [[nodiscard]] std::uint16_t port() const { return port_; }

 private:
  int number_;
  std::uint16_t port_;
};

// A client and a server with the proxy between them.
struct CuttingProxy : ::testing::Test {
  listener target{};
  cutting_proxy proxy{target.port()};
  peer client = peer::connect(proxy.port());
  peer server = target.accept();
};

TEST_F(CuttingProxy, ForwardsBothWaysAndCounts) {
  client.send("question");
  EXPECT_EQ(server.receive(8), "question");
  server.send("answer");
  EXPECT_EQ(client.receive(6), "answer");
  EXPECT_EQ(proxy.bytes(flow::to_server), 8U);
  EXPECT_EQ(proxy.bytes(flow::to_client), 6U);
  EXPECT_EQ(proxy.connections(), 1U);
  EXPECT_EQ(proxy.open_connections(), 1U);
}

TEST_F(CuttingProxy, ForwardsMoreThanItsBuffersHold) {
  const std::string much(8U << 20U, 'x');
  std::thread sender([&] { client.send(much); });
  std::this_thread::sleep_for(50ms);
  const auto received = server.receive(much.size());
  sender.join();
  EXPECT_EQ(received.size(), much.size());
}

TEST_F(CuttingProxy, ForwardsTheEndOfOneDirection) {
  client.send("last");
  client.finish();
  EXPECT_EQ(server.receive(100), "last");
  EXPECT_EQ(server.error, 0);
  server.send("still");
  EXPECT_EQ(client.receive(5), "still");
  server.close();
  EXPECT_EQ(client.receive(1), "");
  EXPECT_EQ(client.error, 0);
  EXPECT_TRUE(eventually([&] { return proxy.open_connections() == 0; }));
}

TEST_F(CuttingProxy, DelaysOneDirection) {
  proxy.delay(flow::to_client, 150ms);
  auto begin = steady::now();
  client.send("q");
  EXPECT_EQ(server.receive(1), "q");
  server.send("a");
  EXPECT_EQ(client.receive(1), "a");
  EXPECT_GE(steady::now() - begin, 150ms);
}

TEST_F(CuttingProxy, HoldsAndDeliversLater) {
  proxy.hold(flow::to_server);
  client.send("held");
  client.finish();
  EXPECT_EQ(server.receive(4, 100ms), "");
  EXPECT_EQ(server.error, -1);
  proxy.hold(flow::to_server, false);
  EXPECT_EQ(server.receive(100), "held");
  EXPECT_EQ(server.error, 0);
}

TEST_F(CuttingProxy, SwallowsAndStaysSilent) {
  proxy.drop(flow::to_server);
  proxy.drop(flow::to_client);
  client.send("gone");
  server.send("gone");
  EXPECT_EQ(server.receive(1, 100ms), "");
  EXPECT_EQ(client.receive(1, 1ms), "");
  client.close();
  EXPECT_EQ(server.receive(1, 100ms), "");
  EXPECT_EQ(server.error, -1) << "the server must not learn of it";
  proxy.drop(flow::to_server, false);
  proxy.drop(flow::to_client, false);
  auto next = peer::connect(proxy.port());
  auto served = target.accept();
  next.send("new");
  EXPECT_EQ(served.receive(3), "new");
}

TEST_F(CuttingProxy, KillsOneDirectionAndKeepsTheOther) {
  proxy.drop(flow::to_client);
  server.send("lost");
  EXPECT_EQ(client.receive(1, 500ms), "");
  proxy.drop(flow::to_client, false);
  server.send("after the hole");
  EXPECT_EQ(client.receive(1, 100ms), "") << "a stream with a hole in it must not go on";
  client.send("works");
  EXPECT_EQ(server.receive(5), "works");
}

TEST_F(CuttingProxy, CutsNowWithResetOrFin) {
  proxy.cut(ending::reset);
  EXPECT_EQ(client.receive(1), "");
  EXPECT_EQ(client.error, ECONNRESET);
  EXPECT_EQ(server.receive(1), "");
  EXPECT_EQ(server.error, ECONNRESET);
  auto next = peer::connect(proxy.port());
  auto served = target.accept();
  proxy.cut(ending::finish);
  EXPECT_EQ(next.receive(1), "");
  EXPECT_EQ(next.error, 0);
  EXPECT_EQ(proxy.cuts(), 2U);
  EXPECT_EQ(proxy.open_connections(), 0U);
}

TEST_F(CuttingProxy, CutsOneSideOnly) {
  proxy.cut(ending::reset, side::client);
  EXPECT_EQ(client.receive(1), "");
  EXPECT_EQ(client.error, ECONNRESET);
  EXPECT_EQ(server.receive(1, 100ms), "");
  EXPECT_EQ(server.error, -1) << "half-open";
  server.send("into the void");
  EXPECT_EQ(proxy.open_connections(), 1U);
  server.close();
  EXPECT_TRUE(eventually([&] { return proxy.open_connections() == 0; }));
}

TEST_F(CuttingProxy, CutsInTheMiddleOfAMessage) {
  for (const auto how : {ending::reset, ending::finish}) {
    auto asks = peer::connect(proxy.port());
    auto answers = target.accept();
    proxy.cut_after(flow::to_client, 3, how);
    asks.send("question");
    EXPECT_EQ(answers.receive(8), "question");
    EXPECT_FALSE(proxy.cut_done());
    answers.send("answer");
    EXPECT_EQ(asks.receive(6), "ans") << "exactly as many as asked, and they arrive";
    EXPECT_EQ(asks.error, how == ending::reset ? ECONNRESET : 0);
    EXPECT_TRUE(proxy.cut_done());
    EXPECT_EQ(answers.receive(1), "");
    EXPECT_GE(answers.error, 0);
  }
}

TEST_F(CuttingProxy, CutsAfterTheWholeRequestBeforeTheAnswer) {
  proxy.cut_after(flow::to_server, 6);
  client.send("COMMIT");
  EXPECT_EQ(server.receive(6), "COMMIT");
  EXPECT_EQ(client.receive(1), "");
  EXPECT_EQ(client.error, ECONNRESET);
}

TEST_F(CuttingProxy, CutsAtTheFirstByte) {
  proxy.cut_after(flow::to_server, 0);
  EXPECT_EQ(client.receive(1, 50ms), "");
  EXPECT_EQ(client.error, -1) << "nothing has been sent yet";
  client.send("x");
  EXPECT_EQ(client.receive(1), "");
  EXPECT_EQ(client.error, ECONNRESET);
  EXPECT_EQ(server.receive(1), "");
}

TEST_F(CuttingProxy, RefusesOrLetsHang) {
  proxy.refuse();
  EXPECT_THROW(peer::connect(proxy.port()), std::system_error);
  proxy.refuse(false);
  proxy.accept(false);
  auto hangs = peer::connect(proxy.port());
  hangs.send("hello");
  EXPECT_EQ(hangs.receive(1, 100ms), "");
  EXPECT_EQ(hangs.error, -1);
  EXPECT_EQ(proxy.connections(), 1U);
  proxy.accept();
  auto served = target.accept();
  EXPECT_EQ(served.receive(5), "hello");
  EXPECT_EQ(proxy.connections(), 2U);
}

TEST_F(CuttingProxy, ResetsWhenTheTargetIsNotThere) {
  proxy.retarget(free_port());
  auto lost = peer::connect(proxy.port());
  EXPECT_EQ(lost.receive(1), "");
  EXPECT_EQ(lost.error, ECONNRESET);
}

TEST(CuttingProxyInFrontOfPostgres, CutsAQuery) {
  const auto& server = shared_server<postgres_server>();
  cutting_proxy proxy(server.port());
  const postgres_endpoint through(proxy.port());
  EXPECT_EQ(through.run("SELECT 1"), "1\n");
  const auto usual = proxy.bytes(flow::to_client);
  proxy.cut_after(flow::to_client, usual - 10);
  EXPECT_THROW(through.run("SELECT 1"), std::runtime_error);
  EXPECT_TRUE(proxy.cut_done());
  EXPECT_EQ(through.run("SELECT 2"), "2\n");
}

}  // namespace
