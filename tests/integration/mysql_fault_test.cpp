// Servers that hang, connections that are killed or cut: every call ends in time and tells whether
// it may have taken effect.

#include "integration/mysql_fixture.hpp"
#include "sql/mysql/connection.hpp"
#include "support/certificate.hpp"
#include "support/cutting_proxy.hpp"
#include "support/eventually.hpp"

#include <atomic>
#include <csignal>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <utility>

namespace holdfast::test {
namespace {

void expect_in_time(std::chrono::milliseconds took, std::chrono::milliseconds limit) {
  EXPECT_GE(took, limit - 5ms);
  EXPECT_LT(took, limit + 4s) << "the defaults are longer";
}

/// Each test has its own server, which it can pause. The parameter is whether TLS is used.
class MysqlHang : public testing::TestWithParam<bool> {
 protected:
  MysqlHang()
      : server_({.settings = {"ssl-cert=" + certificate_.file(), "ssl-key=" + certificate_.key()},
                 .durable = false}),
        options_(options_for(server_.port(), "holdfast")) {
    options_.tls = GetParam();
    options_.tls_ca = certificate_.file();
    server_.run("CREATE TABLE t (i BIGINT) ENGINE=InnoDB");
  }

  const statement insert_{.text = "INSERT INTO t VALUES (1)"};
  certificate certificate_{"mysql"};
  mariadb_server server_;
  mysql_options options_;
};

INSTANTIATE_TEST_SUITE_P(Wires, MysqlHang, testing::Bool(),
                         [](const auto& test) { return test.param ? "Tls" : "Plain"; });

TEST_P(MysqlHang, ConnectingToAFrozenServerEndsInTime) {
  server_.pause();
  options_.connect_timeout = 400ms;
  const auto begin = steady::now();
  const auto e = failure([&] { (void)connect_mysql(options_); });
  expect_in_time(since(begin), 400ms);
  EXPECT_EQ(e.code(), errc::timeout);
  EXPECT_TRUE(e.transient());
  EXPECT_FALSE(e.in_doubt());
}

TEST_P(MysqlHang, AStatementOnAFrozenServerEndsInTime) {
  struct {
    const char* name;
    std::function<void(connection&)> prepare;
    std::function<void(connection&)> call;
    bool in_doubt;
  } const cases[]{
      {"write", [&](auto& c) { c.execute(insert_, {}); }, [&](auto& c) { c.execute(insert_, {}); },
       true},
      {"not yet prepared", [](auto&) {}, [&](auto& c) { c.execute(insert_, {}); }, false},
      {"read", [](auto& c) { number(c, "SELECT 1"); }, [](auto& c) { number(c, "SELECT 1"); },
       false},
      {"text", [](auto&) {}, [](auto& c) { c.run("INSERT INTO t VALUES (2)"); }, true},
      {"write in a transaction", [&](auto& c) { c.execute(insert_, {}), c.begin(); },
       [&](auto& c) { c.execute(insert_, {}); }, false},
      {"commit", [&](auto& c) { c.begin(), c.execute(insert_, {}); }, [](auto& c) { c.commit(); },
       true},
      {"five megabytes",
       [](auto& c) {
         c.execute({.text = "DO LENGTH(?)", .parameters = {type::text}},
                   values({std::string_view("")}));
       },
       [](auto& c) {
         const std::string large(5'000'000, 'x');
         c.execute({.text = "DO LENGTH(?)", .parameters = {type::text}},
                   values({std::string_view(large)}));
       },
       false},
  };
  for (const auto& test : cases) {
    SCOPED_TRACE(test.name);
    auto c = connect_mysql(options_);
    test.prepare(*c);
    c->limit(300ms);
    server_.pause();
    auto begin = steady::now();
    const auto e = failure([&] { test.call(*c); });
    expect_in_time(since(begin), 300ms);
    EXPECT_EQ(e.code(), errc::timeout) << e.what();
    EXPECT_TRUE(e.transient());
    EXPECT_EQ(e.in_doubt(), test.in_doubt);
    EXPECT_TRUE(c->broken());
    begin = steady::now();
    EXPECT_FALSE(failure([&] { c->run("DO 1"); }).in_doubt());
    c->rollback();
    c.reset();
    EXPECT_LT(since(begin), 4s);  // closing does not wait for a server that hangs
    server_.resume();
  }
}

TEST_P(MysqlHang, AKilledServerIsALostConnectionWithoutASignal) {
  static std::atomic<int> pipes = 0;
  struct sigaction previous{};
  struct sigaction counting{};
  counting.sa_handler = [](int) { ++pipes; };
  sigaction(SIGPIPE, &counting, &previous);
  {
    std::vector<std::unique_ptr<connection>> idle;
    for (int i = 0; i < 5; ++i) idle.push_back(connect_mysql(options_));
    const auto busy = connect_mysql(options_);
    const auto id = std::to_string(number(*busy, "SELECT CONNECTION_ID()"));
    busy->limit(60s);
    std::jthread killer([&] {
      EXPECT_TRUE(sleeps(server_, id));
      server_.kill9();
    });
    const auto e = failure([&] { busy->run("INSERT INTO t SELECT SLEEP(60)"); });
    killer.join();
    EXPECT_EQ(e.code(), errc::unavailable) << e.what();
    EXPECT_TRUE(e.transient());
    EXPECT_TRUE(e.in_doubt());
    EXPECT_TRUE(busy->broken());
    for (const auto& c : idle) {
      const auto lost = failure([&] { c->execute(insert_, {}); });
      EXPECT_EQ(lost.code(), errc::unavailable);
      EXPECT_FALSE(lost.in_doubt()) << lost.what();
      EXPECT_TRUE(c->broken());
      EXPECT_TRUE(failure([&] { c->run("DO 1"); }).transient());
    }
  }
  struct sigaction current{};
  sigaction(SIGPIPE, &previous, &current);
  EXPECT_EQ(current.sa_handler, counting.sa_handler);  // the library has not replaced it
  EXPECT_EQ(pipes, 0);
}

TEST_P(MysqlHang, ThreadsEndWithTheirConnection) {
  const auto threads = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"),
                         std::filesystem::directory_iterator());
  };
  (void)connect_mysql(options_);
  // A joined thread stays in the list for a moment.
  auto before = threads();
  EXPECT_TRUE(eventually([&] {
    const auto last = std::exchange(before, threads());
    std::this_thread::sleep_for(50ms);
    return last == before;
  }));
  for (int i = 0; i < 10; ++i) {
    std::jthread([&] { EXPECT_EQ(number(*connect_mysql(options_), "SELECT 1"), 1); }).join();
  }
  EXPECT_TRUE(eventually([&] { return threads() == before; })) << threads() << ", not " << before;
  const auto c = connect_mysql(options_);
  EXPECT_TRUE(eventually([&] { return threads() == before + (GetParam() ? 1 : 0); }))
      << threads() << ", before " << before;
}

TEST(MysqlTls, IsVerifiedOrRefused) {
  const certificate own("mysql");
  const certificate other("mysql");
  mariadb_server encrypted(
      {.settings = {"ssl-cert=" + own.file(), "ssl-key=" + own.key()}, .durable = false});
  auto options = options_for(encrypted.port(), "holdfast");
  options.tls = true;
  // Signed by an unknown authority.
  EXPECT_EQ(failure([&] { (void)connect_mysql(options); }).backend_code(), "2026");
  options.tls_ca = other.file();
  EXPECT_FALSE(failure([&] { (void)connect_mysql(options); }).transient());
  options.tls_ca = own.file();
  const auto cipher = [&] {
    const auto c = connect_mysql(options);
    return std::get<std::string>(c->execute({.text = "SHOW SESSION STATUS LIKE 'Ssl_cipher'",
                                             .results = {type::text, type::text}},
                                            {})
                                     .rows.at(0, 1));
  };
  EXPECT_NE(cipher(), "");
  options.host = "localhost";  // the certificate is for 127.0.0.1
  EXPECT_EQ(failure([&] { (void)connect_mysql(options); }).backend_code(), "2026");
  options.host = "127.0.0.1";
  options.tls_verify = false;
  options.tls_ca.clear();
  EXPECT_NE(cipher(), "");
  auto plain = options_for(shared_server<mariadb_server>().port(), "holdfast");
  plain.tls = true;
  // A server without TLS.
  EXPECT_EQ(failure([&] { (void)connect_mysql(plain); }).backend_code(), "2026");
}

TEST_F(MysqlConnection, KilledWhileIdleIsNotInDoubt) {
  const auto c = connect();
  c->run("CREATE TABLE t (i BIGINT)");
  const statement insert{.text = "INSERT INTO t VALUES (1)"};
  c->execute(insert, {});
  const auto id = std::to_string(number(*c, "SELECT CONNECTION_ID()"));
  administer("KILL " + id);
  EXPECT_TRUE(eventually([&] {
    return server_.run("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = " + id) ==
           "0\n";
  }));
  const auto e = failure([&] { c->execute(insert, {}); });
  EXPECT_EQ(e.code(), errc::unavailable);
  EXPECT_TRUE(e.transient());
  EXPECT_FALSE(e.in_doubt()) << e.what();
  EXPECT_TRUE(c->broken());
  EXPECT_EQ(number(*connect(), "SELECT COUNT(*) FROM t"), 1);
}

TEST_F(MysqlConnection, KilledAtWorkIsInDoubtOnlyIfItWrites) {
  connect()->run("CREATE TABLE t (i BIGINT) ENGINE=InnoDB");
  for (const bool writes : {true, false}) {
    for (const bool transaction : {true, false}) {
      const auto c = connect();
      if (transaction) c->begin();
      const auto killer = kill_in_sleep(*c);
      const auto e = failure([&] {
        if (writes) c->execute({.text = "INSERT INTO t SELECT SLEEP(60)"}, {});
        else number(*c, "SELECT SLEEP(60)");
      });
      EXPECT_TRUE(e.code() == errc::unavailable || e.code() == errc::timeout) << e.what();
      EXPECT_TRUE(e.transient());
      EXPECT_EQ(e.in_doubt(), writes && !transaction) << e.what();
      EXPECT_TRUE(c->broken()) << e.what();
    }
  }
}

// ---- network failures

class MysqlCut : public MysqlConnection {
 protected:
  MysqlCut() { connect()->run("CREATE TABLE t (i BIGINT PRIMARY KEY, p LONGTEXT) ENGINE=InnoDB"); }

  [[nodiscard]] std::unique_ptr<connection> connect_through() const {
    return connect_mysql(options_for(proxy_.port(), database_));
  }
  /// Has prepared the insert, so that a broken network hits its execution.
  std::unique_ptr<connection> ready() {
    auto c = connect_through();
    insert(*c, 0, "");
    c->run("DELETE FROM t");
    return c;
  }
  static void insert(connection& c, std::int64_t i, std::string_view payload) {
    c.execute({.text = "INSERT INTO t VALUES (?,?)", .parameters = {type::integer, type::text}},
              values({i, payload}));
  }
  [[nodiscard]] std::int64_t count() const { return number(*connect(), "SELECT COUNT(*) FROM t"); }
  static void expect_lost(const error& e, bool in_doubt) {
    EXPECT_EQ(e.code(), errc::unavailable) << e.what();
    EXPECT_TRUE(e.transient()) << e.what();
    EXPECT_EQ(e.in_doubt(), in_doubt) << e.what();
  }

  cutting_proxy proxy_{server_.port()};
};

TEST_F(MysqlCut, WhileConnecting) {
  for (const std::uint64_t bytes : {0U, 20U, 90U, 120U}) {
    for (const auto end : {ending::reset, ending::finish}) {
      proxy_.cut_after(flow::to_client, bytes, end);
      expect_lost(failure([&] { (void)connect_through(); }), false);
    }
  }
}

TEST_F(MysqlCut, InTheMiddleOfARequest) {
  const auto c = ready();
  const std::string large(5'000'000, 'x');
  proxy_.cut_after(flow::to_server, 1'000'000);
  expect_lost(failure([&] { insert(*c, 1, large); }),
              true);  // the driver cannot know how much arrived
  EXPECT_TRUE(c->broken());
  EXPECT_EQ(count(), 0);
}

TEST_F(MysqlCut, BeforeTheAnswer) {
  for (const auto end : {ending::reset, ending::finish}) {
    const auto c = ready();
    proxy_.cut_after(flow::to_client, 3, end);
    expect_lost(failure([&] { insert(*c, 1, "x"); }), true);
    EXPECT_TRUE(c->broken());
    EXPECT_EQ(count(), 1);  // the server ran it
  }
}

TEST_F(MysqlCut, InTheMiddleOfRows) {
  const std::string large(100'000, 'x');
  for (std::int64_t i = 0; i < 50; ++i) insert(*connect(), i, large);
  const auto c = connect_through();
  const statement all{.text = "SELECT p FROM t", .results = {type::text}};
  EXPECT_EQ(c->execute(all, {}).rows.size(), 50U);
  proxy_.cut_after(flow::to_client, 1'000'000);
  expect_lost(failure([&] { c->execute(all, {}); }), false);
  EXPECT_TRUE(c->broken());
}

TEST_F(MysqlCut, WhilePreparing) {
  const auto c = connect_through();
  proxy_.cut_after(flow::to_client, 3);
  expect_lost(failure([&] { insert(*c, 1, "x"); }), false);
  EXPECT_EQ(count(), 0);
}

TEST_F(MysqlCut, InATransaction) {
  auto c = ready();
  c->begin();
  proxy_.cut_after(flow::to_client, 0);
  expect_lost(failure([&] { insert(*c, 1, "x"); }), false);
  c->rollback();
  EXPECT_TRUE(c->broken());
  EXPECT_EQ(count(), 0);

  c = ready();
  c->begin();
  insert(*c, 1, "x");
  proxy_.cut_after(flow::to_client, 0);
  expect_lost(failure([&] { c->commit(); }), true);
  EXPECT_EQ(count(), 1);
}

TEST_F(MysqlCut, InTheMiddleOfABatch) {
  const sql::batch_statement many{
      .text = "INSERT INTO t VALUES", .row = "(?,?)", .columns = {type::integer, type::text}};
  std::vector<std::vector<parameter>> columns(2);
  const std::string payload(1'000, 'x');
  for (std::int64_t i = 0; i < 1'000; ++i) {
    columns[0].emplace_back(i);
    columns[1].emplace_back(std::string_view(payload));
  }
  const auto c = ready();
  proxy_.cut_after(flow::to_server, 600'000);
  expect_lost(failure([&] { c->batch(many, columns, {}); }), false);
  EXPECT_TRUE(c->broken());
  EXPECT_EQ(count(), 0);
}

TEST_F(MysqlCut, ABlackHoleEndsInTime) {
  const auto c = ready();
  const auto other = ready();
  c->limit(300ms);
  other->limit(300ms);
  proxy_.drop(flow::to_client);
  auto begin = steady::now();
  auto e = failure([&] { insert(*c, 1, "x"); });
  expect_in_time(since(begin), 300ms);
  EXPECT_EQ(e.code(), errc::timeout);
  EXPECT_TRUE(e.in_doubt());
  EXPECT_EQ(count(), 1);

  proxy_.drop(flow::to_server);
  const std::string large(5'000'000, 'x');
  begin = steady::now();
  e = failure([&] { insert(*other, 2, large); });
  expect_in_time(since(begin), 300ms);
  EXPECT_EQ(e.code(), errc::timeout);
  EXPECT_EQ(count(), 1);

  auto options = options_for(proxy_.port(), database_);
  options.connect_timeout = 300ms;
  begin = steady::now();
  EXPECT_EQ(failure([&] { (void)connect_mysql(options); }).code(), errc::timeout);
  expect_in_time(since(begin), 300ms);
}

TEST_F(MysqlCut, ASlowNetworkIsNotAFailure) {
  proxy_.delay(flow::to_client, 50ms);
  const auto c = connect_through();
  insert(*c, 1, "x");
  EXPECT_EQ(number(*c, "SELECT COUNT(*) FROM t"), 1);
}

}  // namespace
}  // namespace holdfast::test
