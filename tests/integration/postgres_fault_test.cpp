#include "integration/postgres_testing.hpp"
#include "sql/postgres/connection.hpp"
#include "support/cutting_proxy.hpp"
#include "support/eventually.hpp"
#include "support/postgres_server.hpp"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <thread>

namespace {

using namespace holdfast;
using namespace holdfast::detail::sql;
using namespace holdfast::test;
using namespace std::chrono_literals;

constexpr auto limit = 800ms;

/// Checks that a call without an answer ends at its limit and not much later.
template <class Action>
error failure_at(std::chrono::milliseconds expected, Action action) {
  const auto start = std::chrono::steady_clock::now();
  const auto failure = failure_of(action);
  const auto duration = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - start);
  EXPECT_GE(duration, expected - 1ms) << failure.what();
  EXPECT_LE(duration, expected + 4s) << failure.what();  // the defaults are longer
  return failure;
}

/// Counts SIGPIPE while it lives, and expects none: the signal must not reach the application.
class sigpipe_counter {
 public:
  sigpipe_counter() {
    count = 0;
    struct sigaction action{};
    action.sa_handler = [](int) { ++count; };
    sigaction(SIGPIPE, &action, &previous_);
  }
  ~sigpipe_counter() {
    sigaction(SIGPIPE, &previous_, nullptr);
    EXPECT_EQ(count, 0) << "SIGPIPE reached the application";
  }
  sigpipe_counter(const sigpipe_counter&) = delete;
  sigpipe_counter& operator=(const sigpipe_counter&) = delete;

 private:
  static inline std::atomic<int> count = 0;
  struct sigaction previous_{};
};

class PostgresFaults : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    server_ = new postgres_server({.durable = false});
    connect()->run("CREATE TABLE facts (id BIGINT PRIMARY KEY, body TEXT)");
  }
  static void TearDownTestSuite() {
    delete server_;
    server_ = nullptr;
  }

  /// With long timeouts, because the machine may be busy.
  static std::unique_ptr<connection> connect(const std::string& url = server_->url()) {
    return connect_postgres(
        {.connection_string = url, .connect_timeout = 60s, .statement_timeout = 60s});
  }
  static std::unique_ptr<connection> connect_in_time(const std::string& url = server_->url()) {
    return connect_postgres(
        {.connection_string = url, .connect_timeout = limit, .statement_timeout = limit});
  }

  /// From now on the server does not answer, and calls of these connections end at the limit.
  static void pause_for(std::initializer_list<connection*> callers) {
    for (auto* each : callers) each->limit(limit);
    server_->pause();
  }

  static outcome insert(connection& c, std::int64_t id, std::string_view body = "") {
    static const statement s{
        .text =
            "INSERT INTO facts VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET body = excluded.body",
        .parameters = {type::integer, type::text}};
    return execute(c, s, {id, body});
  }

  static void end_session_of(connection& c) {
    const auto pid = number(c, "SELECT pg_backend_pid()");
    server_->run("SELECT pg_terminate_backend(" + std::to_string(pid) + ", 5000)");
  }

  /// Waits for the end of a session of the server.
  static bool ends(connection& watcher, std::int64_t pid) {
    return eventually([&] {
      return number(watcher, "SELECT count(*) FROM pg_stat_activity WHERE pid = " +
                                 std::to_string(pid)) == 0;
    });
  }

  /// Waits for a session that sleeps in a statement.
  static bool sleeps(connection& watcher, std::int64_t pid) {
    return eventually([&] {
      return number(
                 watcher,
                 "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND pid = " +
                     std::to_string(pid)) == 1;
    });
  }

  static inline postgres_server* server_ = nullptr;
  sigpipe_counter pipes_{};
};

// ---- servers that hang

TEST_F(PostgresFaults, ConnectingToAFrozenServerEnds) {
  server_->pause();
  expect_kind(failure_at(limit, [&] { connect_in_time(); }), errc::timeout, true, false);
  server_->resume();
  EXPECT_EQ(number(*connect(), "SELECT 1"), 1);
}

TEST_F(PostgresFaults, AStatementOnAFrozenServerEndsInDoubt) {
  const auto c = connect();
  insert(*c, 1);
  pause_for({c.get()});
  expect_kind(failure_at(limit, [&] { insert(*c, 2); }), errc::timeout, true, true);
  EXPECT_TRUE(c->broken());
  expect_kind(failure_of([&] { insert(*c, 3); }), errc::unavailable, true, false);
  expect_kind(failure_of([&] { c->begin(); }), errc::unavailable, true, false);
  expect_kind(failure_of([&] { c->commit(); }), errc::unavailable, true, false);
  c->rollback();
  server_->resume();
}

TEST_F(PostgresFaults, PreparingAndBeginningChangeNothing) {
  const auto a = connect();
  const auto b = connect();
  pause_for({a.get(), b.get()});
  // The statement is not prepared yet.
  expect_kind(failure_at(limit, [&] { insert(*a, 1); }), errc::timeout, true, false);
  expect_kind(failure_at(limit, [&] { b->begin(); }), errc::timeout, true, false);
  server_->resume();
}

TEST_F(PostgresFaults, InATransactionOnlyTheCommitIsInDoubt) {
  const auto a = connect();
  const auto b = connect();
  const auto c = connect();
  for (auto* connection : {a.get(), b.get(), c.get()}) {
    insert(*connection, 10);
    connection->begin();
  }
  insert(*b, 11);
  pause_for({a.get(), b.get(), c.get()});
  expect_kind(failure_at(limit, [&] { insert(*a, 11); }), errc::timeout, true, false);
  expect_kind(failure_at(limit, [&] { b->commit(); }), errc::timeout, true, true);
  const auto start = std::chrono::steady_clock::now();
  c->rollback();
  EXPECT_LE(std::chrono::steady_clock::now() - start, limit + 4s);
  EXPECT_TRUE(a->broken());
  EXPECT_TRUE(b->broken());
  EXPECT_TRUE(c->broken());
  server_->resume();
}

TEST_F(PostgresFaults, AStatementThatWasNotSentIsNotInDoubt) {
  const auto c = connect();
  insert(*c, 20, "before");
  const auto pid = number(*c, "SELECT pg_backend_pid()");
  pause_for({c.get()});
  const std::string body(std::size_t{64} << 20U, 'x');  // more than the socket buffers hold
  expect_kind(failure_at(limit, [&] { insert(*c, 20, body); }), errc::timeout, true, false);
  server_->resume();
  const auto other = connect();
  EXPECT_TRUE(ends(*other, pid));
  EXPECT_EQ(number(*other, "SELECT length(body) FROM facts WHERE id = 20"), 6);
}

TEST_F(PostgresFaults, ALongStatementEndsAtItsLimitAndSoonOnTheServer) {
  const auto c = connect_postgres(
      {.connection_string = server_->url(), .connect_timeout = 60s, .statement_timeout = 5s});
  const auto other = connect();
  const auto pid = number(*c, "SELECT pg_backend_pid()");
  c->limit(200ms);
  expect_kind(failure_at(200ms, [&] { execute(*c, {.text = "SELECT pg_sleep(600)"}); }),
              errc::timeout, true, true);
  EXPECT_TRUE(c->broken());
  EXPECT_TRUE(ends(*other, pid))
      << "the server must end it soon, or statements pile up in a lock queue";
}

TEST_F(PostgresFaults, AnAnswerWithoutEndEndsAtTheLimit) {
  const auto c = connect();
  c->limit(limit);
  expect_kind(failure_of([&] { execute(*c, {.text = "SELECT generate_series(1, 1000000000)"}); }),
              errc::timeout, true, true);
}

// ---- lost connections

TEST_F(PostgresFaults, AnIdleConnectionThatWasEndedIsNotInDoubt) {
  const auto c = connect();
  insert(*c, 30);
  end_session_of(*c);
  const auto failure = failure_of([&] { insert(*c, 31); });
  expect_kind(failure, errc::unavailable, true, false);
  EXPECT_EQ(failure.backend_code(), "57P01");
  EXPECT_TRUE(c->broken());
  expect_kind(failure_of([&] { insert(*c, 31); }), errc::unavailable, true, false);
  EXPECT_EQ(number(*connect(), "SELECT count(*) FROM facts WHERE id = 31"), 0);
}

TEST_F(PostgresFaults, AStatementThatTheServerEndedIsNotInDoubt) {
  const auto c = connect();
  const auto pid = number(*c, "SELECT pg_backend_pid()");
  std::jthread killer([&] {
    const auto watcher = connect();
    EXPECT_TRUE(sleeps(*watcher, pid));
    server_->run("SELECT pg_terminate_backend(" + std::to_string(pid) + ")");
  });
  const auto failure = failure_of([&] { execute(*c, {.text = "SELECT pg_sleep(60)"}); });
  expect_kind(failure, errc::unavailable, true, false);  // the server's message is an answer
  EXPECT_EQ(failure.backend_code(), "57P01");
  EXPECT_TRUE(c->broken());
}

TEST_F(PostgresFaults, AStatementOfAKilledServerIsInDoubt) {
  postgres_server doomed({.durable = false});
  const auto c = connect(doomed.url());
  const auto idle = connect(doomed.url());
  const auto watcher = connect(doomed.url());
  const auto pid = number(*c, "SELECT pg_backend_pid()");
  std::jthread killer([&] {
    EXPECT_TRUE(sleeps(*watcher, pid));
    doomed.kill9();
  });
  expect_kind(failure_of([&] { execute(*c, {.text = "SELECT pg_sleep(60)"}); }), errc::unavailable,
              true, true);
  killer.join();
  expect_kind(failure_of([&] { idle->run("SELECT 1"); }), errc::unavailable, true, false);
  expect_kind(failure_of([&] { connect(doomed.url()); }), errc::unavailable, true, false);
  doomed.start();
  EXPECT_EQ(number(*connect(doomed.url()), "SELECT 1"), 1);
}

TEST_F(PostgresFaults, WritingToADyingServerRaisesNoSignal) {
  for (int i = 0; i < 3; ++i) {
    const auto c = connect();
    insert(*c, 40);
    const auto pid = static_cast<pid_t>(number(*c, "SELECT pg_backend_pid()"));
    // The session sleeps while we fill the sockets, then dies with our data unread.
    kill(pid, SIGSTOP);
    std::jthread killer([=] {
      std::this_thread::sleep_for(100ms);
      kill(pid, SIGTERM);
      kill(pid, SIGCONT);
    });
    const std::string body(std::size_t{64} << 20U, 'x');
    expect_kind(failure_of([&] { insert(*c, 41, body); }), errc::unavailable, true, false);
    EXPECT_TRUE(c->broken());
  }
  EXPECT_EQ(number(*connect(), "SELECT count(*) FROM facts WHERE id = 41"), 0);
}

// ---- network failures

TEST_F(PostgresFaults, ACutAnswerIsInDoubtAndTheStatementHasRun) {
  cutting_proxy proxy(server_->port());
  for (const auto end : {ending::reset, ending::finish}) {
    const auto c = connect(server_->url_through(proxy.port()));
    const std::int64_t id = end == ending::reset ? 70 : 71;
    insert(*c, 79);
    proxy.cut_after(flow::to_client, 3, end);
    expect_kind(failure_of([&] { insert(*c, id); }), errc::unavailable, true, true);
    EXPECT_TRUE(c->broken());
    EXPECT_EQ(number(*connect(), "SELECT count(*) FROM facts WHERE id = " + std::to_string(id)), 1);
  }
}

TEST_F(PostgresFaults, ACommitWithACutAnswerIsInDoubtAndHasRun) {
  cutting_proxy proxy(server_->port());
  const auto c = connect(server_->url_through(proxy.port()));
  c->begin();
  insert(*c, 80);
  proxy.cut_after(flow::to_client, 0);
  expect_kind(failure_of([&] { c->commit(); }), errc::unavailable, true, true);
  EXPECT_EQ(number(*connect(), "SELECT count(*) FROM facts WHERE id = 80"), 1);
}

TEST_F(PostgresFaults, InATransactionACutStatementIsRolledBack) {
  cutting_proxy proxy(server_->port());
  const auto c = connect(server_->url_through(proxy.port()));
  insert(*c, 85);
  c->begin();
  proxy.cut_after(flow::to_client, 0);
  expect_kind(failure_of([&] { insert(*c, 86); }), errc::unavailable, true, false);
  c->rollback();
  EXPECT_EQ(number(*connect(), "SELECT count(*) FROM facts WHERE id = 86"), 0);
}

TEST_F(PostgresFaults, ACutStatementIsInDoubtOnlyIfItWasSentCompletely) {
  cutting_proxy proxy(server_->port());
  const auto big = connect(server_->url_through(proxy.port()));
  insert(*big, 90, "before");
  proxy.cut_after(flow::to_server, 100'000);
  const std::string body(std::size_t{64} << 20U, 'x');
  expect_kind(failure_of([&] { insert(*big, 90, body); }), errc::unavailable, true, false);
  const auto small = connect(server_->url_through(proxy.port()));
  insert(*small, 90, "before");
  proxy.cut_after(flow::to_server, 10);
  expect_kind(failure_of([&] { insert(*small, 90, "after"); }), errc::unavailable, true, true);
  EXPECT_EQ(number(*connect(), "SELECT count(*) FROM facts WHERE id = 90 AND body = 'before'"), 1);
}

TEST_F(PostgresFaults, ABlackHoleEndsAtTheLimit) {
  cutting_proxy proxy(server_->port());
  const auto url = server_->url_through(proxy.port());
  for (const auto direction : {flow::to_server, flow::to_client}) {
    const auto c = connect(url);
    insert(*c, 95);
    c->limit(limit);
    proxy.drop(direction);
    expect_kind(failure_at(limit, [&] { insert(*c, 96); }), errc::timeout, true, true);
    expect_kind(failure_at(limit, [&] { connect_in_time(url); }), errc::timeout, true, false);
    proxy.drop(direction, false);
  }
  proxy.accept(false);
  expect_kind(failure_at(limit, [&] { connect_in_time(url); }), errc::timeout, true, false);
  proxy.accept();
  EXPECT_EQ(number(*connect(url), "SELECT 1"), 1);
}

TEST_F(PostgresFaults, AnIdleConnectionThatWasCutIsNotInDoubt) {
  cutting_proxy proxy(server_->port());
  for (const auto end : {ending::reset, ending::finish}) {
    const auto c = connect(server_->url_through(proxy.port()));
    insert(*c, 97);
    proxy.cut(end);
    expect_kind(failure_of([&] { insert(*c, 98); }), errc::unavailable, true, false);
  }
}

// ---- TLS

/// Creates a key and a certificate where PostgreSQL looks for them by default.
void make_certificate(const std::filesystem::path& data) {
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_EC_gen("P-256"),
                                                                &EVP_PKEY_free);
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(X509_new(), &X509_free);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), 0);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600);
  X509_set_pubkey(certificate.get(), key.get());
  ASSERT_GT(X509_sign(certificate.get(), key.get(), EVP_sha256()), 0);
  struct stat owner{};
  ASSERT_EQ(stat(data.c_str(), &owner), 0);
  const auto write = [&](const char* name, auto&& writer) {
    const auto file = data / name;
    std::FILE* const out = std::fopen(file.c_str(), "w");
    ASSERT_NE(out, nullptr);
    EXPECT_EQ(writer(out), 1);
    std::fclose(out);
    EXPECT_EQ(chmod(file.c_str(), 0600), 0);
    EXPECT_EQ(chown(file.c_str(), owner.st_uid, owner.st_gid), 0);
  };
  write("server.crt", [&](std::FILE* out) { return PEM_write_X509(out, certificate.get()); });
  write("server.key", [&](std::FILE* out) {
    return PEM_write_PrivateKey(out, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  });
}

TEST_F(PostgresFaults, WithTlsTheLimitsHold) {
  postgres_server server({.durable = false});
  make_certificate(server.data_directory());
  server.configure("ssl=on");
  server.restart();
  const auto url = server.url() + "?sslmode=require";
  const auto c = connect(url);
  EXPECT_EQ(number(*c, "SELECT count(*) FROM pg_stat_ssl WHERE pid = pg_backend_pid() AND ssl"), 1);
  const std::string body(5'000'000, 'x');
  const statement echo{.text = "SELECT $1", .parameters = {type::text}, .results = {type::text}};
  EXPECT_TRUE(execute(*c, echo, {std::string_view(body)}).rows.at(0, 0) == value{body});
  const auto big = connect(url);
  execute(*big, echo, {std::string_view("prepared")});
  c->limit(limit);
  big->limit(limit);
  server.pause();
  expect_kind(failure_at(limit, [&] { execute(*c, echo, {std::string_view("small")}); }),
              errc::timeout, true, true);
  const std::string huge(std::size_t{64} << 20U, 'x');
  expect_kind(failure_at(limit, [&] { execute(*big, echo, {std::string_view(huge)}); }),
              errc::timeout, true, false);
  expect_kind(failure_at(limit, [&] { connect_in_time(url); }), errc::timeout, true, false);
  server.resume();
  expect_kind(failure_of([&] { connect(server_->url() + "?sslmode=require"); }), errc::unavailable,
              true, false);
}

// ---- fork

TEST_F(PostgresFaults, AForkedChildDoesNotAffectTheConnectionOfItsParent) {
  auto c = connect();
  insert(*c, 60);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    int code = 1;
    try {
      insert(*c, 61);
    } catch (const error& failure) {
      code = failure.code() == errc::invalid_argument ? 0 : 2;
    }
    c.reset();
    _exit(code);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(number(*c, "SELECT count(*) FROM facts WHERE id = 60"), 1);
}

}  // namespace
