// The client on an event loop: the pool of connections, cancelled calls, and a gateway whose
// clients reset while its upstream is asked.

#include "serve/upstream.hpp"

#include <holdfast/error.hpp>

#include "serve/http_server.hpp"
#include "support/eventually.hpp"
#include "support/raw_client.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace holdfast;
using namespace holdfast::detail;
using namespace holdfast::detail::serve;
using namespace std::chrono_literals;
using test::eventually;
using test::raw_client;

upstream_options to_server(const std::string& address) {
  return {.server = {.address = address, .addresses = net::resolve(address, "test")},
          .host = address,
          .connect_timeout = 60s};
}

/// A loop with its thread.
class running_loop {
 public:
  ~running_loop() { loop_.stop(); }
  net::event_loop& get() { return loop_; }
  /// Runs a function on the loop and waits for it.
  void run(const std::function<void()>& task) {
    std::atomic<bool> finished = false;
    loop_.post([&] {
      task();
      finished = true;
    });
    ASSERT_TRUE(eventually([&] { return finished.load(); }));
  }

 private:
  net::event_loop loop_{};
  std::jthread thread_{[this] { loop_.run(); }};
};

TEST(Upstream, SharesAFewConnections) {
  http_server server({.listen = {"127.0.0.1:0"}},
                     [](const server_request& request, responder answer) {
                       answer.answer({.body = request.target.text()});
                     });
  running_loop loop;
  std::unique_ptr<upstream> client;
  std::vector<upstream_call> calls;
  std::atomic<int> good = 0;
  loop.run([&] {
    auto options = to_server(server.addresses().front());
    options.max_connections = 3;
    client = std::make_unique<upstream>(loop.get(), options);
    for (int i = 0; i < 100; ++i) {
      const std::string target = "/" + std::to_string(i);
      calls.push_back(client->send(
          {.target = target}, net::steady::now() + 60s, [&good, target](client_response response) {
            if (response.result == exchange_status::complete && response.body == target) ++good;
          }));
    }
  });
  EXPECT_TRUE(eventually([&] { return good == 100; })) << good;
  EXPECT_LE(server.counts().accepted, 3U);
  loop.run([&] {
    EXPECT_LE(client->connections(), 3U);
    calls.clear();
    client.reset();
  });
}

TEST(Upstream, IdleConnectionsThatTheServerClosesLeaveThePool) {
  auto server = std::make_unique<http_server>(
      server_options{.listen = {"127.0.0.1:0"}},
      [](const server_request&, responder answer) { answer.answer({.body = "ok"}); });
  running_loop loop;
  std::unique_ptr<upstream> client;
  upstream_call call;
  std::atomic<bool> answered = false;
  loop.run([&] {
    client = std::make_unique<upstream>(loop.get(), to_server(server->addresses().front()));
    call = client->send({}, net::steady::now() + 60s, [&](client_response) { answered = true; });
  });
  ASSERT_TRUE(eventually([&] { return answered.load(); }));
  std::atomic<std::size_t> connections = 0;
  const auto count = [&] { loop.run([&] { connections = client->connections(); }); };
  count();
  EXPECT_EQ(connections, 1U);
  server.reset();
  EXPECT_TRUE(eventually([&] {
    count();
    return connections == 0;
  }));
  loop.run([&] { client.reset(); });
}

/// A port of 127.0.0.1 that refuses connections until `listen` is called.
class closed_port {
 public:
  closed_port() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    if (::bind(socket_, generic, size) != 0 || ::getsockname(socket_, generic, &size) != 0)
      throw std::runtime_error("cannot bind a port");
    port_ = ntohs(address.sin_port);
  }
  closed_port(const closed_port&) = delete;
  closed_port& operator=(const closed_port&) = delete;
  ~closed_port() { ::close(socket_); }
  [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  void listen() const { ASSERT_EQ(::listen(socket_, 8), 0); }

 private:
  int socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  unsigned port_ = 0;
};

TEST(Upstream, ARefusedConnectionIsSharedForAMoment) {
  const closed_port port;
  running_loop loop;
  std::unique_ptr<upstream> client;
  upstream_call call;
  /// The result of one request.
  const auto ask = [&](std::chrono::milliseconds limit) {
    std::optional<exchange_status> result;
    std::atomic<bool> ended = false;
    loop.run([&] {
      call = client->send({}, net::steady::now() + limit, [&](client_response response) {
        result = response.result;
        ended = true;
      });
    });
    EXPECT_TRUE(eventually([&] { return ended.load(); }));
    return result;
  };
  loop.run([&] { client = std::make_unique<upstream>(loop.get(), to_server(port.address())); });
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ask(60s), exchange_status::unreachable);
  port.listen();
  // Nothing answers, but the connection is made.
  EXPECT_TRUE(eventually([&] { return ask(100ms) == exchange_status::late; }));
  loop.run([&] { client.reset(); });
}

TEST(Upstream, FailuresAreReported) {
  running_loop loop;
  std::unique_ptr<upstream> client;
  upstream_call call;
  std::atomic<int> results = 0;
  loop.run([&] {
    client = std::make_unique<upstream>(loop.get(), to_server("127.0.0.1:1"));
    call = client->send({}, net::steady::now() + 60s, [&](client_response response) {
      EXPECT_EQ(response.result, exchange_status::unreachable);
      EXPECT_FALSE(response.sent);
      ++results;
    });
    EXPECT_THROW((void)client->send({.target = "/a b"}, net::steady::now(), {}), error);
  });
  EXPECT_TRUE(eventually([&] { return results == 1; }));
  loop.run([&] { client.reset(); });

  std::vector<responder> kept;
  http_server silent({.listen = {"127.0.0.1:0"}}, [&](const server_request&, responder answer) {
    kept.push_back(std::move(answer));
  });
  loop.run([&] {
    client = std::make_unique<upstream>(loop.get(), to_server(silent.addresses().front()));
    call = client->send({}, net::steady::now() + 100ms, [&](client_response response) {
      EXPECT_EQ(response.result, exchange_status::late);
      ++results;
    });
  });
  EXPECT_TRUE(eventually([&] { return results == 2; }));
  loop.run([&] { client.reset(); });
  silent.stop(0ms);
}

TEST(Upstream, CancelledCallsAreSilent) {
  std::vector<responder> kept;
  std::atomic<std::size_t> arrived = 0;
  http_server server({.listen = {"127.0.0.1:0"}}, [&](const server_request&, responder answer) {
    kept.push_back(std::move(answer));
    ++arrived;
  });
  running_loop loop;
  std::unique_ptr<upstream> client;
  std::vector<upstream_call> calls;
  loop.run([&] {
    auto options = to_server(server.addresses().front());
    options.max_connections = 5;
    client = std::make_unique<upstream>(loop.get(), options);
    for (int i = 0; i < 20; ++i)
      calls.push_back(client->send({}, net::steady::now() + 60s,
                                   [](client_response) { ADD_FAILURE() << "cancelled"; }));
  });
  // Calls in all states: five are sent, the others wait for a connection.
  EXPECT_TRUE(eventually([&] { return arrived == 5; }));
  loop.run([&] {
    calls.clear();
    EXPECT_EQ(client->connections(), 0U);
    client.reset();
  });
  // A server cannot tell a client that is gone from one that only waits, until it answers.
  kept.clear();
  EXPECT_TRUE(eventually([&] { return server.counts().connections == 0; }));
  server.stop(0ms);
}

// Clients of a gateway reset their connections while the upstream is asked, and the upstream cuts
// some of its answers.
TEST(Upstream, GatewayWhoseClientsReset) {
  std::atomic<int> turn = 0;
  http_server origin({.listen = {"127.0.0.1:0"}}, [&](const server_request&, responder answer) {
    const int number = ++turn;
    answer.answer({.body = std::string(2'000, 'o'), .close = number % 7 == 0});
  });
  running_loop loop;
  std::unique_ptr<upstream> client;
  loop.run([&] {
    client = std::make_unique<upstream>(loop.get(), to_server(origin.addresses().front()));
  });
  /// A request of a client, and the call that is made for it. Ends with its callback.
  struct gateway_call {
    explicit gateway_call(responder target) : answer(std::move(target)) {}
    responder answer;
    upstream_call call{};
  };
  http_server gateway({.listen = {"127.0.0.1:0"}, .loops = 2}, [&](const server_request&,
                                                                   responder answer) {
    auto pending = std::make_shared<gateway_call>(std::move(answer));
    // The loop has the last reference: there the call is cancelled.
    loop.get().post([&client, pending = std::move(pending)] {
      pending->call =
          client->send({}, net::steady::now() + 60s, [pending](client_response response) {
            const bool whole = response.result == exchange_status::complete;
            pending->answer.answer({.status = whole ? 200 : 502, .body = std::move(response.body)});
          });
    });
  });
  std::atomic<int> good = 0;
  {
    std::vector<std::jthread> clients;
    for (int n = 0; n < 4; ++n)
      clients.emplace_back([&, n] {
        for (int i = 0; i < 100; ++i) {
          raw_client connection(gateway.addresses().front());
          const std::string get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
          if ((i + n) % 2 == 0) {
            connection.send(get + get + get);
            connection.reset();
          } else {
            connection.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
            if (connection.read_to_end().ends_with(std::string(2'000, 'o'))) ++good;
          }
        }
      });
  }
  EXPECT_EQ(good, 200);
  EXPECT_TRUE(eventually([&] { return gateway.counts().connections == 0; }));
  EXPECT_TRUE(eventually([&] { return gateway.counts().waiting == 0; }));
  loop.run([&] { client.reset(); });
}

}  // namespace
