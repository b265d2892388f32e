// Puts of many threads share a statement; each caller gets its own result.

#include "store/sql/put_combiner.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/error.hpp>

#include "support/eventually.hpp"
#include "support/gate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using detail::store::put_combiner;

/// A connection that is never used itself.
class idle_connection final : public sql::connection {
 public:
  explicit idle_connection(const std::atomic<bool>& server_is_up) : server_is_up_(server_is_up) {}
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
  void run(const std::string&) override {}
  void begin() override {}
  void commit() override {}
  void rollback() noexcept override {}
  void limit(std::chrono::milliseconds) override {}
  [[nodiscard]] bool broken() const noexcept override { return !server_is_up_; }

 private:
  const std::atomic<bool>& server_is_up_;
};

class PutCombiner : public ::testing::Test {
 protected:
  using keys = std::vector<std::string>;

  /// Starts a thread that puts one entry. The first put stops at the gate while it is closed.
  void start_put(const std::string& key, const std::string& realm = {}) {
    auto& e = entries.emplace_back(entry{.name = "n", .key = key, .payload = "p"});
    e.realm = realm;
    threads.emplace_back([this, &e] {
      const entry* const row = &e;
      try {
        combiner.put({&row, 1}, limits);
        record(succeeded, e.key);
      } catch (const error& problem) {
        record(failed, e.key + ": " + problem.message());
      }
    });
  }
  /// Starts puts, one after the other, that wait because the first is being written.
  void start_and_wait_for(const keys& waiting) {
    for (const auto& key : waiting) start_put(key);
    ASSERT_TRUE(eventually([&] { return combiner.waiting() == waiting.size(); }));
  }
  void hold_the_first(const std::string& key = "first") {
    start_put(key);
    ASSERT_TRUE(eventually([&] { return held.waiting() == 1; }));
  }
  void finish() {
    held.open();
    threads.clear();
  }
  void TearDown() override { finish(); }

  void write(std::span<const put_combiner::put_entries> puts) {
    keys written;
    for (const auto& put : puts)
      for (const entry* e : put) written.push_back(e->key);
    std::ranges::sort(written);
    const bool first = written == keys{"first"};
    {
      const std::scoped_lock lock(mutex);
      statements.push_back(written);
    }
    if (first) held.wait();
    if (on_write) on_write(written);
  }
  void record(std::multiset<std::string>& where, const std::string& text) {
    const std::scoped_lock lock(mutex);
    where.insert(text);
  }

  std::mutex mutex{};
  std::multiset<std::string> succeeded{};
  std::multiset<std::string> failed{};
  std::vector<keys> statements{};
  std::function<void(const keys&)> on_write{};
  std::atomic<int> attempts{0};
  std::atomic<bool> server_is_up{true};
  gate held{};
  put_combiner::put_limits limits{.longest_wait = 1min};
  detail::sql::pool pool{[this]() -> std::unique_ptr<sql::connection> {
                           if (!server_is_up)
                             throw error(errc::unavailable, "refused", {.transient = true});
                           return std::make_unique<idle_connection>(server_is_up);
                         },
                         {.maximum = 4},
                         nullptr};
  put_combiner combiner{
      pool,
      {.write = [this](sql::connection&,
                       std::span<const put_combiner::put_entries> puts) { write(puts); },
       .retry =
           [this](const std::function<void()>& attempt) {
             ++attempts;
             attempt();
           }}};
  std::deque<entry> entries{};
  std::vector<std::jthread> threads{};
};

TEST_F(PutCombiner, PutsThatWaitShareAStatement) {
  hold_the_first();
  start_and_wait_for({"a", "b", "c"});
  finish();
  EXPECT_EQ(statements, (std::vector<keys>{{"first"}, {"a", "b", "c"}}));
  EXPECT_EQ(succeeded.size(), 4U);
}

TEST_F(PutCombiner, ARefusedPutFailsAloneAndWithItsOwnError) {
  on_write = [](const keys& written) {
    for (const auto& key : written)
      if (key.starts_with("bad")) throw error(errc::too_large, key + " is too large");
  };
  hold_the_first();
  start_and_wait_for({"a", "b", "bad 1", "c", "d", "bad 2", "e"});
  finish();
  EXPECT_EQ(failed,
            (std::multiset<std::string>{"bad 1: bad 1 is too large", "bad 2: bad 2 is too large"}));
  EXPECT_EQ(succeeded, (std::multiset<std::string>{"a", "b", "c", "d", "e", "first"}));
}

TEST_F(PutCombiner, ATransientFailureIsNotBisected) {
  on_write = [](const keys& written) {
    if (written != keys{"first"})
      throw error(errc::unavailable, "lost", {.transient = true, .in_doubt = true});
  };
  hold_the_first();
  start_and_wait_for({"a", "b"});
  finish();
  EXPECT_EQ(failed, (std::multiset<std::string>{"a: lost", "b: lost"}));
  EXPECT_EQ(statements.size(), 2U);
}

TEST_F(PutCombiner, WithoutAConnectionAllThatWaitAreToldAtOnce) {
  hold_the_first();
  start_and_wait_for({"a", "b", "c"});
  server_is_up = false;
  finish();
  EXPECT_EQ(failed, (std::multiset<std::string>{"a: refused", "b: refused", "c: refused"}));
  EXPECT_EQ(attempts, 2) << "not one after the other";
}

TEST_F(PutCombiner, EachRealmIsATableOfItsOwn) {
  hold_the_first();
  start_put("a", "red");
  ASSERT_TRUE(eventually([&] { return combiner.waiting() == 1; }));
  start_put("b", "blue");
  ASSERT_TRUE(eventually([&] { return combiner.waiting() == 2; }));
  start_put("c", "red");
  ASSERT_TRUE(eventually([&] { return combiner.waiting() == 3; }));
  finish();
  std::ranges::sort(statements);
  EXPECT_EQ(statements, (std::vector<keys>{{"a", "c"}, {"b"}, {"first"}}));
}

TEST_F(PutCombiner, AStatementIsBounded) {
  hold_the_first();
  for (int i = 0; i < 3; ++i) {
    auto& e = entries.emplace_back(entry{.name = "n", .key = "large " + std::to_string(i)});
    e.payload = std::string(detail::store::max_statement_bytes / 2, 'x');
    threads.emplace_back([this, &e] {
      const entry* const row = &e;
      combiner.put({&row, 1}, limits);
    });
    ASSERT_TRUE(eventually([&] { return combiner.waiting() == static_cast<std::size_t>(i) + 1; }));
  }
  finish();
  EXPECT_EQ(statements.size(), 4U) << "two of them are above 4 MiB";
}

TEST_F(PutCombiner, CombinesPowersOfTwoWhereEachNumberOfRowsIsAStatementOfItsOwn) {
  limits.powers_of_two = true;
  hold_the_first();
  start_and_wait_for({"a", "b", "c", "d", "e", "f", "g"});
  finish();
  std::vector<std::size_t> sizes;
  for (const auto& written : statements) sizes.push_back(written.size());
  EXPECT_EQ(sizes, (std::vector<std::size_t>{1, 4, 2, 1}));
}

TEST_F(PutCombiner, ExtraConnectionsWriteAtTheSameTime) {
  limits.extra_writers = 2;
  hold_the_first();
  gate second;
  on_write = [&](const keys&) { second.wait(); };
  start_put("a");
  start_put("b");
  ASSERT_TRUE(eventually([&] { return second.waiting() == 2; })) << "beside the first";
  start_and_wait_for({"c", "d"});
  second.open();
  finish();
  EXPECT_EQ(succeeded.size(), 5U);
}

TEST_F(PutCombiner, WithoutASpareConnectionAPutWaits) {
  limits.extra_writers = 2;
  const auto a = pool.acquire_reader("test");
  const auto b = pool.acquire_reader("test");
  const auto c = pool.acquire_reader("test");
  hold_the_first();
  start_and_wait_for({"a", "b"});
  finish();
  EXPECT_EQ(statements, (std::vector<keys>{{"first"}, {"a", "b"}}));
}

TEST_F(PutCombiner, APutThatWaitsTooLongFails) {
  hold_the_first();
  limits.longest_wait = 1ms;
  start_put("late");
  ASSERT_TRUE(eventually([&] {
    const std::scoped_lock lock(mutex);
    return failed.size() == 1;
  }));
  EXPECT_TRUE(failed.begin()->starts_with("late: ")) << *failed.begin();
  finish();
  EXPECT_EQ(statements, (std::vector<keys>{{"first"}})) << "it was not written";
}

TEST_F(PutCombiner, ManyThreadsAllGetTheirResult) {
  limits.extra_writers = 2;
  on_write = [](const keys& written) {
    for (const auto& key : written)
      if (key.ends_with("7")) throw error(errc::invalid_argument, key);
  };
  held.open();
  std::atomic<int> wrong{0};
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        const entry e{.name = "n", .key = std::to_string(t) + "/" + std::to_string(i)};
        const entry* const row = &e;
        try {
          combiner.put({&row, 1}, limits);
          if (e.key.ends_with("7")) ++wrong;
        } catch (const error& problem) {
          if (problem.message() != e.key) ++wrong;
        }
      }
    });
  }
  threads.clear();
  EXPECT_EQ(wrong, 0);
  std::set<std::string> written;
  for (const auto& statement : statements) written.insert(statement.begin(), statement.end());
  EXPECT_EQ(written.size(), 8U * 200U);
}

}  // namespace
}  // namespace holdfast::test
