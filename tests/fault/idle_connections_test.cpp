// Connections that were idle while something happened between here and the server: a gateway that
// forgot them, a server that became read-only.

#include <holdfast/database.hpp>
#include <holdfast/failover.hpp>

#include "support/cutting_proxy.hpp"
#include "support/eventually.hpp"
#include "support/h2_server.hpp"
#include "support/mariadb_server.hpp"
#include "support/odbc_drivers.hpp"
#include "support/postgres_server.hpp"
#include "support/shared_server.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <latch>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

entry make_entry(const std::string& key) {
  const auto now = system_clock()->now();
  return {.name = "n",
          .key = key,
          .as_of = now,
          .expire_on = now + 1h,
          .payload = "{}",
          .payload_class = "test"};
}

/// A server, and how it is reached.
template <class Server>
struct direct {
  using server = Server;
  static std::string url(const server_endpoint& endpoint, std::uint16_t port,
                         const std::string& database) {
    return endpoint.url_through(port, database);
  }
};
struct psqlodbc {
  using server = postgres_server;
  static std::string url(const server_endpoint&, std::uint16_t port, const std::string& database) {
    return odbc_postgres(port, database);
  }
};
struct maodbc {
  using server = mariadb_server;
  static std::string url(const server_endpoint&, std::uint16_t port, const std::string& database) {
    return odbc_mariadb(port, database);
  }
};

template <class Way>
class IdleConnections : public ::testing::Test {
 protected:
  /// Opens several connections at once.
  static void open_connections(store& store, const cutting_proxy& proxy, std::size_t count) {
    std::atomic<bool> enough{false};
    std::vector<std::jthread> readers;
    for (std::size_t i = 0; i < 2 * count; ++i)
      readers.emplace_back([&] {
        while (!enough) (void)store.find("n", "k");
      });
    const bool opened = eventually([&] { return proxy.open_connections() >= count; });
    enough = true;
    readers.clear();
    ASSERT_TRUE(opened);
  }
};
using ways = ::testing::Types<direct<postgres_server>, direct<mariadb_server>, direct<h2_server>,
                              psqlodbc, maodbc>;
TYPED_TEST_SUITE(IdleConnections, ways);

TYPED_TEST(IdleConnections, ForgottenByAGatewayCostAtMostOneRecovery) {
  const auto& server = shared_server<typename TypeParam::server>();
  const auto database = server.create_database("idle");
  cutting_proxy proxy(server.port());
  auto db = open(TypeParam::url(server, proxy.port(), database));
  const auto store = db.store({.create_schema = true});
  engine on(store, {.storage = {.write_behind = std::nullopt}});
  std::atomic<bool> down{false};
  const auto point = on.protect("answer-by-id", {.expiry = 24h}, [&](int id) {
    if (down) throw std::runtime_error("down");
    return "answer " + std::to_string(id);
  });
  constexpr int recoveries = 11;
  for (int id = 0; id < recoveries; ++id) (void)point(id);
  this->open_connections(*store, proxy, 4);

  proxy.forget();
  std::this_thread::sleep_for(1500ms);  // idle for longer than pool_options::validate_after
  down = true;
  int lost = 0;
  for (int id = 0; id < recoveries; ++id) {
    const auto recovered = point.try_call(id);
    if (!recovered.has_value()) ++lost;
  }
  EXPECT_LE(lost, 1);
  EXPECT_NO_THROW(store->put(make_entry("the connection that writes was idle as well")));
}

/// Two servers, and a proxy that leads to one of them.
template <class Way>
class ReadOnlyServer : public ::testing::Test {
 protected:
  static void make_read_only(const postgres_server& server) {
    server.run("ALTER SYSTEM SET default_transaction_read_only = on");
    server.run("SELECT pg_reload_conf()");
  }
  static void make_read_only(const mariadb_server& server) {
    server.run("SET GLOBAL read_only = 1");
  }
};
using servers_with_switchover =
    ::testing::Types<direct<postgres_server>, direct<mariadb_server>, psqlodbc, maodbc>;
TYPED_TEST_SUITE(ReadOnlyServer, servers_with_switchover);

TYPED_TEST(ReadOnlyServer, AfterASwitchoverPutsReachTheNewPrimary) {
  typename TypeParam::server old_primary;
  typename TypeParam::server new_primary;
  (void)open(TypeParam::url(new_primary, new_primary.port(), "holdfast"))
      .store({.create_schema = true, .start = start_mode::require});
  cutting_proxy proxy(old_primary.port());
  auto db = open(TypeParam::url(old_primary, proxy.port(), "holdfast"));
  const auto store = db.store({.create_schema = true});
  store->put(make_entry("before"));

  this->make_read_only(old_primary);
  proxy.retarget(new_primary.port());
  EXPECT_TRUE(eventually([&] {
    // The old primary may still write a little: it reads its configuration when it has time.
    try {
      store->put(make_entry("after"));
    } catch (const error&) {
      return false;
    }
    return new_primary.run("SELECT COUNT(*) FROM FAILOVER_STORE WHERE FAILOVER_KEY = 'after'")
        .starts_with("1");
  })) << "the pool kept its connection to the old primary";
  for (int i = 0; i < 20; ++i) EXPECT_NO_THROW(store->put(make_entry("later")));
}

/// The options of the sockets of this process that are connected to a port.
struct socket_options {
  int keepalive = 0;
  int idle = 0;
  int interval = 0;
  int count = 0;
  int user_timeout = 0;
};
std::vector<socket_options> sockets_to(std::uint16_t port) {
  std::vector<socket_options> result;
  for (const auto& file : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int descriptor = std::stoi(file.path().filename().string());
    sockaddr_in peer{};
    socklen_t size = sizeof peer;
    if (::getpeername(descriptor, reinterpret_cast<sockaddr*>(&peer), &size) != 0) continue;
    if (peer.sin_family != AF_INET || ntohs(peer.sin_port) != port) continue;
    const auto get = [descriptor](int level, int option) {
      int value = 0;
      socklen_t length = sizeof value;
      (void)::getsockopt(descriptor, level, option, &value, &length);
      return value;
    };
    result.push_back({.keepalive = get(SOL_SOCKET, SO_KEEPALIVE),
                      .idle = get(IPPROTO_TCP, TCP_KEEPIDLE),
                      .interval = get(IPPROTO_TCP, TCP_KEEPINTVL),
                      .count = get(IPPROTO_TCP, TCP_KEEPCNT),
                      .user_timeout = get(IPPROTO_TCP, TCP_USER_TIMEOUT)});
  }
  return result;
}

template <class Server>
class TcpKeepalive : public ::testing::Test {};
using tcp_servers = ::testing::Types<postgres_server, mariadb_server, h2_server>;
TYPED_TEST_SUITE(TcpKeepalive, tcp_servers);

TYPED_TEST(TcpKeepalive, IsOnByDefaultAndCanBeSet) {
  const auto& server = shared_server<TypeParam>();
  const auto url = server.url(server.create_database("keepalive"));
  const auto options_of = [&](std::chrono::milliseconds keepalive) {
    database_options options;
    options.pool.keepalive = keepalive;
    const auto db = open(url, options);
    (void)db.dialect();  // connects
    const auto sockets = sockets_to(server.port());
    EXPECT_EQ(sockets.size(), 1U);
    return sockets.empty() ? socket_options{} : sockets.front();
  };
  const auto standard = options_of(pool_options{}.keepalive);
  EXPECT_EQ(standard.keepalive, 1);
  EXPECT_EQ(standard.idle, 30);
  EXPECT_EQ(standard.interval, 10);
  EXPECT_EQ(standard.count, 3);
  EXPECT_EQ(standard.user_timeout, 60'000);
  EXPECT_EQ(options_of(90s).idle, 90);
  EXPECT_EQ(options_of(0s).idle, 7200) << "the default of the system";
}

TEST(TcpKeepaliveOfTheUrl, TakesPrecedence) {
  const auto& server = shared_server<postgres_server>();
  const auto url = server.url(server.create_database("keepalive")) + "?keepalives_idle=77";
  const auto db = open(url);
  (void)db.dialect();
  const auto sockets = sockets_to(server.port());
  ASSERT_EQ(sockets.size(), 1U);
  EXPECT_EQ(sockets.front().idle, 77);
}

}  // namespace
}  // namespace holdfast::test
