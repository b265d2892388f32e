#include "sql/pool.hpp"

#include "support/eventually.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace {

using namespace holdfast;
using holdfast::detail::sql::pooled_connection;
using namespace std::chrono_literals;

/// A connection that does nothing. run("break") breaks it.
class fake_connection final : public sql::connection {
 public:
  explicit fake_connection(std::atomic<int>& open_count) : open_count_(open_count) {
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
  void run(const std::string& text) override { broken_ = text == "break"; }
  void begin() override {}
  void commit() override {}
  void rollback() noexcept override {}
  void limit(std::chrono::milliseconds) override {}
  [[nodiscard]] bool broken() const noexcept override { return broken_; }

 private:
  std::atomic<int>& open_count_;
  bool broken_ = false;
};

struct Pool : ::testing::Test {
  holdfast::detail::sql::pool make(pool_options options) {
    return {[this] { return std::make_unique<fake_connection>(open_count); }, options,
            std::make_shared<const logger>(
                [this](const log_record& record) { lines.emplace_back(record.message); })};
  }
  std::atomic<int> open_count{0};
  std::vector<std::string> lines;
};

TEST_F(Pool, KeepsConnectionsAndReusesThem) {
  auto pool = make({});
  for (int i = 0; i < 10; ++i) (void)pool.acquire_reader();
  for (int i = 0; i < 10; ++i) (void)pool.acquire_writer();
  EXPECT_EQ(pool.stats().opened, 2U) << "one reads, one writes";
  EXPECT_EQ(pool.stats().open, 2U);
  EXPECT_EQ(pool.stats().in_use, 0U);
}

TEST_F(Pool, IsBoundedAndReservesAConnectionForTheWriter) {
  auto pool = make({.maximum = 3, .acquire_timeout = 30ms});
  const auto a = pool.acquire_reader();
  const auto b = pool.acquire_reader();
  EXPECT_THROW((void)pool.acquire_reader(), error)
      << "the third connection is reserved for the writer";
  const auto w = pool.acquire_writer();
  EXPECT_THROW((void)pool.acquire_writer(), error);
  EXPECT_EQ(pool.stats().open, 3U);
  EXPECT_EQ(pool.stats().timeouts, 2U);
  try {
    (void)pool.acquire_reader();
    FAIL();
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::timeout);
    EXPECT_TRUE(e.transient());
  }
}

TEST_F(Pool, AWaitingCallerGetsAReturnedConnection) {
  auto pool = make({.maximum = 2, .acquire_timeout = 10s});
  std::optional<pooled_connection> held(pool.acquire_reader());
  std::jthread waiting([&] { (void)pool.acquire_reader(); });
  std::this_thread::sleep_for(20ms);
  held.reset();
  waiting.join();
  EXPECT_EQ(pool.stats().opened, 1U);
}

TEST_F(Pool, WritersComeInTheOrderInWhichTheyAsked) {
  auto pool = make({});
  std::optional<pooled_connection> held(pool.acquire_writer());
  std::mutex mutex;
  std::vector<int> order;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      const auto writer = pool.acquire_writer();
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
  EXPECT_THROW((void)pool.acquire_writer(), error);
  std::jthread connecting([&] { EXPECT_THROW((void)pool.acquire_writer(), error); });
  while (tries < 2) std::this_thread::sleep_for(1ms);
  try {
    (void)pool.acquire_writer();
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
  EXPECT_THROW((void)pool.acquire_writer(), error);
  is_writer = false;
  (void)pool.acquire_reader();
  is_writer = true;
  connecting_again = true;
  std::jthread connecting([&] { EXPECT_THROW((void)pool.acquire_writer(), error); });
  ASSERT_TRUE(test::eventually([&] { return pool.stats().open == 2; }));
  try {
    (void)pool.acquire_writer();
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
                    .max_lifetime = unlimited});
  std::optional<pooled_connection> held(pool.acquire_writer());
  std::jthread waiting([&] { EXPECT_NO_THROW((void)pool.acquire_writer()); });
  EXPECT_TRUE(test::eventually([&] { return pool.stats().waiting_writers == 1; }));
  held.reset();
  waiting.join();
  EXPECT_EQ(pool.stats().opened, 1U);
  EXPECT_EQ(pool.stats().held_too_long, 0U);
}

TEST_F(Pool, ABrokenConnectionMakesOlderOnesExpire) {
  auto pool = make({});
  {
    const auto a = pool.acquire_reader();
    const auto b = pool.acquire_reader();
    const auto c = pool.acquire_reader();
    c->run("break");
  }
  EXPECT_EQ(pool.stats().open, 2U);
  (void)pool.acquire_reader();
  EXPECT_EQ(pool.stats().opened, 4U) << "a server that restarted has closed them all";
  EXPECT_EQ(open_count, 1);
}

TEST_F(Pool, ClosesBrokenAndOldConnections) {
  auto pool = make({.max_lifetime = 20ms});
  pool.acquire_reader()->run("break");
  EXPECT_EQ(open_count, 0);
  {
    const auto held = pool.acquire_reader();
    EXPECT_EQ(open_count, 1);
  }
  std::this_thread::sleep_for(30ms);
  (void)pool.acquire_reader();
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
  for (int i = 0; i < 3; ++i) EXPECT_THROW((void)pool.acquire_writer(), error);
  for (int i = 0; i < 2; ++i) EXPECT_THROW((void)pool.acquire_reader(), error);
  EXPECT_EQ(pool.stats().open, 0U);
  const auto w = pool.acquire_writer();
  const auto r = pool.acquire_reader();
  EXPECT_EQ(pool.stats().open, 2U);
}

TEST_F(Pool, WarnsAboutALeak) {
  auto pool = make({.leak_detection = 5ms});
  {
    const auto held = pool.acquire_reader();
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_EQ(pool.stats().held_too_long, 1U);
  ASSERT_EQ(lines.size(), 1U);
}

TEST_F(Pool, RefusesInvalidOptions) {
  EXPECT_THROW(make({.maximum = 1}), error);
  EXPECT_THROW(make({.acquire_timeout = 0ms}), error);
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
          const auto connection = t % 4 == 0 ? pool.acquire_writer() : pool.acquire_reader();
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
