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
using namespace std::chrono_literals;

/// A connection that does nothing, and can be broken.
class idle_connection final : public sql::connection {
 public:
  explicit idle_connection(std::atomic<int>& alive) : alive_(alive) { ++alive_; }
  idle_connection(const idle_connection&) = delete;
  idle_connection& operator=(const idle_connection&) = delete;
  ~idle_connection() override { --alive_; }
  [[nodiscard]] sql::dialect_id dialect() const noexcept override { return sql::dialect_id::unknown; }
  sql::outcome execute(const sql::statement&, std::span<const sql::parameter>) override { return {}; }
  sql::outcome batch(const sql::batch_statement&, std::span<const std::vector<sql::parameter>>, std::span<const sql::parameter>) override {
    return {};
  }
  void run(const std::string& text) override { broken_ = text == "break"; }
  void begin() override {}
  void commit() override {}
  void rollback() noexcept override {}
  void limit(std::chrono::milliseconds) override {}
  [[nodiscard]] bool broken() const noexcept override { return broken_; }

 private:
  std::atomic<int>& alive_;
  bool broken_ = false;
};

struct Pool : ::testing::Test {
  sql::pool make(pool_options options) {
    return {[this] { return std::make_unique<idle_connection>(alive); }, options,
            std::make_shared<const logger>([this](const log_record& record) { lines.emplace_back(record.message); })};
  }
  std::atomic<int> alive{0};
  std::vector<std::string> lines;
};

TEST_F(Pool, KeepsConnectionsAndReusesThem) {
  auto pool = make({});
  for (int i = 0; i < 10; ++i) (void)pool.reader();
  for (int i = 0; i < 10; ++i) (void)pool.writer();
  EXPECT_EQ(pool.count().made, 2U) << "one reads, one writes";
  EXPECT_EQ(pool.count().open, 2U);
  EXPECT_EQ(pool.count().taken, 0U);
}

TEST_F(Pool, IsBoundedAndKeepsAPlaceForTheWriter) {
  auto pool = make({.maximum = 3, .acquire_timeout = 30ms});
  const auto a = pool.reader();
  const auto b = pool.reader();
  EXPECT_THROW((void)pool.reader(), error) << "the third place is the writer's";
  const auto w = pool.writer();
  EXPECT_THROW((void)pool.writer(), error);
  EXPECT_EQ(pool.count().open, 3U);
  EXPECT_EQ(pool.count().timeouts, 2U);
  try {
    (void)pool.reader();
    FAIL();
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::timeout);
    EXPECT_TRUE(e.transient());
  }
}

TEST_F(Pool, AWaitingCallerGetsWhatComesBack) {
  auto pool = make({.maximum = 2, .acquire_timeout = 10s});
  std::optional<sql::pool::lease> held(pool.reader());
  std::jthread waiting([&] { (void)pool.reader(); });
  std::this_thread::sleep_for(20ms);
  held.reset();
  waiting.join();
  EXPECT_EQ(pool.count().made, 1U);
}

TEST_F(Pool, WritersComeInTheOrderInWhichTheyAsked) {
  auto pool = make({});
  std::optional<sql::pool::lease> held(pool.writer());
  std::mutex mutex;
  std::vector<int> order;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      const auto lease = pool.writer();
      const std::scoped_lock lock(mutex);
      order.push_back(i);
    });
    ASSERT_TRUE(test::eventually([&] { return pool.count().waiting == threads.size(); }));
  }
  held.reset();
  threads.clear();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3}));
}

TEST_F(Pool, WhoWaitsForAWriterThatCannotConnectIsToldWhy) {
  std::atomic<int> tries{0};
  std::atomic<bool> give_up{false};
  sql::pool pool(
      [&]() -> std::unique_ptr<sql::connection> {
        if (++tries > 1) give_up.wait(false);
        throw error(errc::unavailable, "nobody answers there", {.transient = true});
      },
      {.acquire_timeout = 50ms}, nullptr);
  EXPECT_THROW((void)pool.writer(), error);
  std::jthread connecting([&] { EXPECT_THROW((void)pool.writer(), error); });
  while (tries < 2) std::this_thread::sleep_for(1ms);
  try {
    (void)pool.writer();
    ADD_FAILURE() << "it got in";
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::timeout);
    EXPECT_NE(e.message().find("nobody answers there"), std::string::npos) << e.what();
    EXPECT_EQ(e.message().find("slow writes"), std::string::npos) << e.what();
  }
  give_up = true;
  give_up.notify_all();
}

TEST_F(Pool, TheLongestTimeThatThereIsIsLong) {
  constexpr auto for_ever = std::chrono::milliseconds::max();
  auto pool = make({.maximum = 2, .acquire_timeout = for_ever, .leak_detection = for_ever, .max_lifetime = for_ever});
  std::optional<sql::pool::lease> held(pool.writer());
  std::jthread waiting([&] { EXPECT_NO_THROW((void)pool.writer()); });
  EXPECT_TRUE(test::eventually([&] { return pool.count().waiting == 1; }));
  held.reset();
  waiting.join();
  EXPECT_EQ(pool.count().made, 1U);
  EXPECT_EQ(pool.count().leaks, 0U);
}

TEST_F(Pool, ABrokenConnectionTakesTheOthersOfItsTimeWithIt) {
  auto pool = make({});
  {
    const auto a = pool.reader();
    const auto b = pool.reader();
    const auto c = pool.reader();
    c->run("break");
  }
  EXPECT_EQ(pool.count().open, 2U);
  (void)pool.reader();
  EXPECT_EQ(pool.count().made, 4U) << "a server that restarted has closed them all: the next try gets a new one";
  EXPECT_EQ(alive, 1);
}

TEST_F(Pool, ThrowsAwayWhatIsBrokenOrOld) {
  auto pool = make({.max_lifetime = 20ms});
  pool.reader()->run("break");
  EXPECT_EQ(alive, 0);
  {
    const auto held = pool.reader();
    EXPECT_EQ(alive, 1);
  }
  std::this_thread::sleep_for(30ms);
  (void)pool.reader();
  EXPECT_EQ(pool.count().made, 3U) << "the old one was replaced";
  EXPECT_LE(alive, 1);
}

TEST_F(Pool, AFailedConnectionFreesItsPlace) {
  std::atomic<int> tries{0};
  sql::pool pool(
      [&]() -> std::unique_ptr<sql::connection> {
        if (++tries <= 5) throw error(errc::unavailable, "nobody there", {.transient = true});
        return std::make_unique<idle_connection>(alive);
      },
      {.maximum = 2, .acquire_timeout = 1s}, {});
  for (int i = 0; i < 3; ++i) EXPECT_THROW((void)pool.writer(), error);
  for (int i = 0; i < 2; ++i) EXPECT_THROW((void)pool.reader(), error);
  EXPECT_EQ(pool.count().open, 0U);
  const auto w = pool.writer();
  const auto r = pool.reader();
  EXPECT_EQ(pool.count().open, 2U);
}

TEST_F(Pool, WarnsAboutALeak) {
  auto pool = make({.leak_detection = 5ms});
  {
    const auto held = pool.reader();
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_EQ(pool.count().leaks, 1U);
  ASSERT_EQ(lines.size(), 1U);
}

TEST_F(Pool, RefusesWhatCannotHold) {
  EXPECT_THROW(make({.maximum = 1}), error);
  EXPECT_THROW(make({.acquire_timeout = 0ms}), error);
}

TEST_F(Pool, ManyThreadsNeverShareAConnection) {
  auto pool = make({.maximum = 4, .acquire_timeout = 10s});
  std::atomic<int> inside{0};
  std::atomic<int> most{0};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 300; ++i) {
          const auto lease = t % 4 == 0 ? pool.writer() : pool.reader();
          const int now = ++inside;
          int seen = most.load();
          while (now > seen && !most.compare_exchange_weak(seen, now)) {
          }
          --inside;
        }
      });
    }
  }
  EXPECT_LE(most, 4);
  EXPECT_LE(pool.count().open, 4U);
  EXPECT_EQ(pool.count().taken, 0U);
}

}  // namespace
