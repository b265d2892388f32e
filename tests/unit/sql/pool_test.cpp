#include "sql/pool.hpp"

#include <holdfast/log.hpp>

#include "sql/watched_session.hpp"
#include "support/eventually.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace holdfast;
using holdfast::detail::sql::pooled_connection;
using namespace std::chrono_literals;

/// What the connections of a pool do.
struct server_behaviour {
  std::atomic<bool> answers{true};
  std::atomic<int> pings{0};
};

/// A connection that does nothing. run("break") breaks it, run("demote") makes its server
/// read-only.
class fake_connection : public sql::connection {
 public:
  explicit fake_connection(std::atomic<int>& open_count, server_behaviour* server = nullptr)
      : open_count_(open_count), server_(server) {
    ++open_count_;
  }
  fake_connection(const fake_connection&) = delete;
  fake_connection& operator=(const fake_connection&) = delete;
  ~fake_connection() override { --open_count_; }
  [[nodiscard]] sql::dialect_id dialect() const noexcept override {
    return sql::dialect_id::unknown;
  }
  sql::outcome execute(const sql::statement&, std::span<const sql::parameter>) override {
    return {};
  }
  sql::outcome batch(const sql::batch_statement&, std::span<const std::vector<sql::parameter>>,
                     std::span<const sql::parameter>) override {
    return {};
  }
  void run(const std::string& text) override {
    broken_ = text == "break";
    read_only_ = text == "demote";
  }
  void begin() override {}
  void commit() override {}
  void rollback() noexcept override {}
  void limit(std::chrono::milliseconds) override {}
  [[nodiscard]] bool broken() const noexcept override { return broken_; }
  [[nodiscard]] bool read_only() const noexcept override { return read_only_; }
  [[nodiscard]] bool responds(std::chrono::milliseconds) noexcept override {
    if (server_ == nullptr) return true;
    ++server_->pings;
    broken_ = !server_->answers;
    return !broken_;
  }

 private:
  std::atomic<int>& open_count_;
  server_behaviour* server_;
  bool broken_ = false;
  bool read_only_ = false;
};

/// What the servers of watched connections know and do.
struct watched_servers {
  std::atomic<int> sessions{0};     ///< opened so far; their names are 1, 2, ...
  std::atomic<int> interrupted{0};  ///< the name of the session whose call was interrupted
  std::atomic<int> interruptions{0};
};

/// A connection to a server that knows every session but the first.
class watched_connection final : public fake_connection, public detail::sql::watched_session {
 public:
  watched_connection(std::atomic<int>& open_count, watched_servers& servers)
      : fake_connection(open_count), servers_(servers), name_(++servers.sessions) {}
  [[nodiscard]] std::string session_name() const override { return std::to_string(name_); }
  [[nodiscard]] std::optional<bool> has_session(const std::string& name) override {
    return name != "1";
  }
  [[nodiscard]] std::string_view intermediary() override { return {}; }
  void interrupt() noexcept override {
    servers_.interrupted = name_;
    ++servers_.interruptions;
  }

 private:
  watched_servers& servers_;
  int name_;
};

struct Pool : ::testing::Test {
  holdfast::detail::sql::pool make(pool_options options) {
    return {[this] { return std::make_unique<fake_connection>(open_count, &server); }, options,
            std::make_shared<const logger>([this](const log_record& record) {
              const std::scoped_lock lock(mutex);
              lines.emplace_back(record.message);
            })};
  }
  [[nodiscard]] std::vector<std::string> logged() {
    const std::scoped_lock lock(mutex);
    return lines;
  }
  std::atomic<int> open_count{0};
  server_behaviour server{};
  std::mutex mutex{};
  std::vector<std::string> lines{};
};

TEST_F(Pool, KeepsConnectionsAndReusesThem) {
  auto pool = make({});
  for (int i = 0; i < 10; ++i) (void)pool.acquire_reader("reader");
  for (int i = 0; i < 10; ++i) (void)pool.acquire_writer("writer");
  EXPECT_EQ(pool.stats().opened, 2U) << "one reads, one writes";
  EXPECT_EQ(pool.stats().open, 2U);
  EXPECT_EQ(pool.stats().in_use, 0U);
}

TEST_F(Pool, IsBoundedAndReservesAConnectionForTheWriter) {
  auto pool = make({.maximum = 3, .acquire_timeout = 30ms});
  const auto a = pool.acquire_reader("reader");
  const auto b = pool.acquire_reader("reader");
  EXPECT_THROW((void)pool.acquire_reader("reader"), error)
      << "the third connection is reserved for the writer";
  const auto w = pool.acquire_writer("writer");
  EXPECT_THROW((void)pool.acquire_writer("writer"), error);
  EXPECT_EQ(pool.stats().open, 3U);
  EXPECT_EQ(pool.stats().timeouts, 2U);
  try {
    (void)pool.acquire_reader("reader");
    FAIL();
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::timeout);
    EXPECT_TRUE(e.transient());
  }
}

TEST_F(Pool, AWaitingCallerGetsAReturnedConnection) {
  auto pool = make({.maximum = 2, .acquire_timeout = 10s});
  std::optional<pooled_connection> held(pool.acquire_reader("reader"));
  std::jthread waiting([&] { (void)pool.acquire_reader("reader"); });
  std::this_thread::sleep_for(20ms);
  held.reset();
  waiting.join();
  EXPECT_EQ(pool.stats().opened, 1U);
}

TEST_F(Pool, WritersComeInTheOrderInWhichTheyAsked) {
  auto pool = make({});
  std::optional<pooled_connection> held(pool.acquire_writer("writer"));
  std::mutex mutex;
  std::vector<int> order;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      const auto writer = pool.acquire_writer("writer");
      const std::scoped_lock lock(mutex);
      order.push_back(i);
    });
    ASSERT_TRUE(test::eventually([&] { return pool.stats().waiting_writers == threads.size(); }));
  }
  held.reset();
  threads.clear();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3}));
}

TEST_F(Pool, ACallerThatWaitsForTheWriterLearnsWhyItCannotConnect) {
  std::atomic<int> tries{0};
  std::atomic<bool> give_up{false};
  holdfast::detail::sql::pool pool(
      [&]() -> std::unique_ptr<sql::connection> {
        if (++tries > 1) give_up.wait(false);
        throw error(errc::unavailable, "no route to host", {.transient = true});
      },
      {.acquire_timeout = 50ms}, nullptr);
  EXPECT_THROW((void)pool.acquire_writer("writer"), error);
  std::jthread connecting([&] { EXPECT_THROW((void)pool.acquire_writer("writer"), error); });
  while (tries < 2) std::this_thread::sleep_for(1ms);
  try {
    (void)pool.acquire_writer("writer");
    FAIL();
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::timeout);
    EXPECT_NE(e.message().find("no route to host"), std::string::npos) << e.what();
    EXPECT_EQ(e.message().find("slow writes"), std::string::npos) << e.what();
  }
  give_up = true;
  give_up.notify_all();
}

TEST_F(Pool, AReaderThatConnectsDoesNotHideWhyTheWriterCannot) {
  std::atomic<bool> is_writer{true};
  std::atomic<bool> connecting_again{false};
  std::atomic<bool> give_up{false};
  holdfast::detail::sql::pool pool(
      [&]() -> std::unique_ptr<sql::connection> {
        if (!is_writer) return std::make_unique<fake_connection>(open_count);
        if (connecting_again) give_up.wait(false);
        throw error(errc::unavailable, "no route to host", {.transient = true});
      },
      {.acquire_timeout = 50ms}, nullptr);
  EXPECT_THROW((void)pool.acquire_writer("writer"), error);
  is_writer = false;
  (void)pool.acquire_reader("reader");
  is_writer = true;
  connecting_again = true;
  std::jthread connecting([&] { EXPECT_THROW((void)pool.acquire_writer("writer"), error); });
  ASSERT_TRUE(test::eventually([&] { return pool.stats().open == 2; }));
  try {
    (void)pool.acquire_writer("writer");
    FAIL();
  } catch (const error& e) {
    EXPECT_NE(e.message().find("no route to host"), std::string::npos) << e.what();
  }
  give_up = true;
  give_up.notify_all();
}

TEST_F(Pool, AcceptsTheLongestDurations) {
  constexpr auto unlimited = std::chrono::milliseconds::max();
  auto pool = make({.maximum = 2,
                    .acquire_timeout = unlimited,
                    .leak_detection = unlimited,
                    .max_lifetime = unlimited,
                    .idle_timeout = unlimited,
                    .validate_after = unlimited,
                    .validation_timeout = unlimited,
                    .keepalive = unlimited});
  std::optional<pooled_connection> held(pool.acquire_writer("writer"));
  std::jthread waiting([&] { EXPECT_NO_THROW((void)pool.acquire_writer("writer")); });
  EXPECT_TRUE(test::eventually([&] { return pool.stats().waiting_writers == 1; }));
  held.reset();
  waiting.join();
  EXPECT_EQ(pool.stats().opened, 1U);
  EXPECT_EQ(pool.stats().held_too_long, 0U);
}

TEST_F(Pool, ABrokenConnectionMakesOlderOnesExpire) {
  auto pool = make({});
  {
    const auto a = pool.acquire_reader("reader");
    const auto b = pool.acquire_reader("reader");
    const auto c = pool.acquire_reader("reader");
    c->run("break");
  }
  EXPECT_EQ(pool.stats().open, 2U);
  (void)pool.acquire_reader("reader");
  EXPECT_EQ(pool.stats().opened, 4U) << "a server that restarted has closed them all";
  EXPECT_EQ(open_count, 1);
}

TEST_F(Pool, ClosesBrokenAndOldConnections) {
  auto pool = make({.max_lifetime = 20ms});
  pool.acquire_reader("reader")->run("break");
  EXPECT_EQ(open_count, 0);
  {
    const auto held = pool.acquire_reader("reader");
    EXPECT_EQ(open_count, 1);
  }
  std::this_thread::sleep_for(30ms);
  (void)pool.acquire_reader("reader");
  EXPECT_EQ(pool.stats().opened, 3U) << "the old one was replaced";
  EXPECT_LE(open_count, 1);
}

TEST_F(Pool, AFailedConnectionIsNotCounted) {
  std::atomic<int> tries{0};
  holdfast::detail::sql::pool pool(
      [&]() -> std::unique_ptr<sql::connection> {
        if (++tries <= 5) throw error(errc::unavailable, "connection refused", {.transient = true});
        return std::make_unique<fake_connection>(open_count);
      },
      {.maximum = 2, .acquire_timeout = 1s}, {});
  for (int i = 0; i < 3; ++i) EXPECT_THROW((void)pool.acquire_writer("writer"), error);
  for (int i = 0; i < 2; ++i) EXPECT_THROW((void)pool.acquire_reader("reader"), error);
  EXPECT_EQ(pool.stats().open, 0U);
  const auto w = pool.acquire_writer("writer");
  const auto r = pool.acquire_reader("reader");
  EXPECT_EQ(pool.stats().open, 2U);
}

TEST_F(Pool, ReportsALeakWithItsBorrowerWhileTheConnectionIsOut) {
  auto pool = make({.leak_detection = 5ms});
  const auto waiting = pool.acquire_writer("short");  // nothing else calls the pool
  {
    const auto held = pool.acquire_reader("outbox.transaction");
    ASSERT_TRUE(test::eventually([&] { return pool.stats().held_too_long == 2; }));
    ASSERT_TRUE(test::eventually([&] { return logged().size() == 2; }));
    const auto lines = logged();
    const auto leak = std::ranges::find_if(
        lines, [](const auto& line) { return line.starts_with("outbox.transaction has held"); });
    ASSERT_NE(leak, lines.end()) << lines[0] << lines[1];
    EXPECT_NE(leak->find("still holds it"), std::string::npos) << *leak;
  }
  ASSERT_EQ(logged().size(), 3U) << "and when it comes back";
  EXPECT_TRUE(logged()[2].starts_with("outbox.transaction returned a database connection after"))
      << logged()[2];
  EXPECT_EQ(pool.stats().held_too_long, 2U) << "each of them once";
}

TEST_F(Pool, ClosesWhatIsIdleForTooLong) {
  auto pool = make({.idle_timeout = 5ms});
  {
    const auto a = pool.acquire_reader("reader");
    const auto b = pool.acquire_reader("reader");
    const auto w = pool.acquire_writer("writer");
    EXPECT_EQ(pool.stats().open, 3U);
  }
  EXPECT_TRUE(test::eventually([&] { return pool.stats().open == 0 && open_count == 0; }));
  (void)pool.acquire_reader("reader");
  EXPECT_EQ(pool.stats().opened, 4U) << "and opens again when it is needed";
  EXPECT_TRUE(test::eventually([&] { return open_count == 0; })) << "and closes that, too";
}

TEST_F(Pool, AConnectionInUseIsNotIdle) {
  auto pool = make({.idle_timeout = 2ms});
  const auto held = pool.acquire_reader("reader");
  (void)pool.acquire_writer("writer");
  // The pool counts a connection as closed before it is destroyed.
  EXPECT_TRUE(test::eventually([&] { return pool.stats().open == 1 && open_count == 1; }));
}

TEST_F(Pool, AConnectionThatWasIdleMustAnswerAPing) {
  auto pool = make({.validate_after = 1ms});
  {
    const auto a = pool.acquire_reader("reader");
    const auto b = pool.acquire_reader("reader");
    const auto c = pool.acquire_reader("reader");
  }
  std::this_thread::sleep_for(5ms);  // idle for longer than validate_after
  (void)pool.acquire_reader("reader");
  EXPECT_EQ(server.pings, 1);
  EXPECT_EQ(pool.stats().opened, 3U) << "it answered";
  server.answers = false;
  std::this_thread::sleep_for(5ms);
  (void)pool.acquire_reader("reader");
  EXPECT_EQ(server.pings, 2) << "the others were idle as well, and are not asked one by one";
  EXPECT_EQ(pool.stats().found_dead, 1U);
  EXPECT_EQ(pool.stats().opened, 4U);
  EXPECT_EQ(pool.stats().open, 1U);
  EXPECT_EQ(open_count, 1);
}

TEST_F(Pool, TheWriterMustAnswerAPingAsWell) {
  auto pool = make({.validate_after = 1ms});
  (void)pool.acquire_writer("writer");
  server.answers = false;
  std::this_thread::sleep_for(5ms);
  (void)pool.acquire_writer("writer");
  EXPECT_EQ(pool.stats().opened, 2U);
  EXPECT_EQ(pool.stats().found_dead, 1U);
  EXPECT_EQ(open_count, 1);
}

TEST_F(Pool, AConnectionThatWasJustUsedIsNotPinged) {
  auto pool = make({.validate_after = 1h});
  for (int i = 0; i < 10; ++i) (void)pool.acquire_reader("reader");
  EXPECT_EQ(server.pings, 0);
}

TEST_F(Pool, ClosesAConnectionToAServerThatRefusesToWrite) {
  auto pool = make({});
  (void)pool.acquire_reader("reader");
  pool.acquire_writer("writer")->run("demote");
  EXPECT_EQ(pool.stats().open, 1U);
  (void)pool.acquire_writer("writer");
  EXPECT_EQ(pool.stats().opened, 3U);
  (void)pool.acquire_reader("reader");
  EXPECT_EQ(pool.stats().opened, 3U)
      << "a database that stays read-only must not cost a connection for each read";
}

TEST_F(Pool, ACallOnAServerThatWasReplacedIsInterrupted) {
  watched_servers servers;
  detail::sql::pool pool([&] { return std::make_unique<watched_connection>(open_count, servers); },
                         {}, std::make_shared<const logger>(log_sink()));
  {
    const auto first = pool.acquire_reader("first");
    const auto second = pool.acquire_reader("second");
    ASSERT_TRUE(test::eventually([&] { return servers.interruptions > 0; }));
    EXPECT_EQ(servers.interrupted, 1);
    EXPECT_EQ(servers.interruptions, 1) << "the server has the session of the second";
    EXPECT_EQ(pool.stats().replaced, 1U);
  }
  const auto opened = pool.stats().opened;
  (void)pool.acquire_reader("reader");
  EXPECT_EQ(pool.stats().opened, opened + 1) << "idle connections may lead to the old server, too";
}

TEST_F(Pool, LendsAReaderOnlyIfOneIsToSpare) {
  auto pool = make({.maximum = 3});
  const auto a = pool.try_acquire_reader("reader");
  EXPECT_TRUE(a.has_value());
  const auto b = pool.try_acquire_reader("reader");
  EXPECT_TRUE(b.has_value());
  EXPECT_FALSE(pool.try_acquire_reader("reader").has_value())
      << "the third connection is reserved for the writer";
}

TEST_F(Pool, RefusesInvalidOptions) {
  EXPECT_THROW(make({.maximum = 1}), error);
  EXPECT_THROW(make({.acquire_timeout = 0ms}), error);
  EXPECT_THROW(make({.validation_timeout = 0ms}), error);
}

TEST_F(Pool, ManyThreadsNeverShareAConnection) {
  auto pool = make({.maximum = 4, .acquire_timeout = 10s});
  std::atomic<int> in_use{0};
  std::atomic<int> most{0};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 300; ++i) {
          const auto connection =
              t % 4 == 0 ? pool.acquire_writer("writer") : pool.acquire_reader("reader");
          const int now = ++in_use;
          int seen = most.load();
          while (now > seen && !most.compare_exchange_weak(seen, now)) {
          }
          --in_use;
        }
      });
    }
  }
  EXPECT_LE(most, 4);
  EXPECT_LE(pool.stats().open, 4U);
  EXPECT_EQ(pool.stats().in_use, 0U);
}

}  // namespace
