// The cleanup and its lease on real databases: one cleans at a time, and one that was killed is
// followed.

#include <holdfast/database.hpp>
#include <holdfast/store/cleanup.hpp>

#include "database/database.hpp"
#include "store/sql/table_lease.hpp"
#include "support/eventually.hpp"
#include "support/mariadb_server.hpp"
#include "support/postgres_server.hpp"
#include "support/shared_server.hpp"
#include "support/temporary_directory.hpp"
#include "support/worker.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

template <class Server>
struct on_server {
  std::string url = [] {
    const auto& server = shared_server<Server>();
    return server.url(server.create_database("cleanup"));
  }();
};

struct on_sqlite {
  temporary_directory directory{};
  std::string url = "sqlite://" + (directory.path() / "x.db").string();
};

/// Passes everything on, and sees whether two clean at once.
class watched_store final : public store {
 public:
  watched_store(std::shared_ptr<store> behind, std::atomic<int>& inside, std::atomic<int>& most)
      : behind_(std::move(behind)), inside_(inside), most_(most) {}
  void put(std::span<const entry> entries) override { behind_->put(entries); }
  std::optional<entry> find(place where, std::string_view key) override {
    return behind_->find(where, key);
  }
  entry_page find_all(place where, std::size_t limit, std::string_view after) override {
    return behind_->find_all(where, limit, after);
  }
  bool erase(place where, std::string_view key, timestamp as_of) override {
    return behind_->erase(where, key, as_of);
  }
  std::size_t expire(timestamp before, std::size_t limit) override {
    const int now = ++inside_;
    for (int seen = most_.load(); now > seen && !most_.compare_exchange_weak(seen, now);) {
    }
    std::this_thread::sleep_for(2ms);  // room for the other one to be seen
    const auto removed = behind_->expire(before, limit);
    --inside_;
    return removed;
  }
  std::uint64_t count(place where) override { return behind_->count(where); }
  store_health health() noexcept override { return behind_->health(); }

 private:
  std::shared_ptr<store> behind_;
  std::atomic<int>& inside_;
  std::atomic<int>& most_;
};

/// Entries that expire at once: written by a clock that is behind.
void fill(const std::string& url, int count) {
  struct yesterday final : clock {
    [[nodiscard]] timestamp now() const noexcept override { return system_clock()->now() - 24h; }
    [[nodiscard]] std::chrono::steady_clock::time_point steady() const noexcept override {
      return std::chrono::steady_clock::now();
    }
  };
  const auto at = std::make_shared<yesterday>();
  const auto store = open(url, {.clock = at}).store({.create_schema = true});
  std::vector<entry> entries;
  for (int i = 0; i < count; ++i)
    entries.push_back({.name = "n",
                       .key = std::to_string(i),
                       .as_of = at->now(),
                       .expire_on = at->now() + 1h,
                       .payload = "x",
                       .payload_class = "c"});
  store->put(entries);
}

template <class Place>
class StoreCleanup : public ::testing::Test {
 protected:
  Place place{};
};
using places = ::testing::Types<on_sqlite, on_server<postgres_server>, on_server<mariadb_server>>;
TYPED_TEST_SUITE(StoreCleanup, places);

TYPED_TEST(StoreCleanup, ALeaseHasOneHolderAndAFenceThatGrows) {
  const auto db = open(this->place.url);
  (void)db.store({.create_schema = true, .start = start_mode::require});
  const auto lease = detail::store::make_table_lease(db.shared()->sql, "", "a");
  const auto first = lease->acquire("one", 1h);
  ASSERT_EQ(first.fence, 1U);
  EXPECT_EQ(first.holder, "one");
  const auto refused = lease->acquire("two", 1h);
  EXPECT_FALSE(refused.fence);
  EXPECT_EQ(refused.holder, "one");
  EXPECT_TRUE(lease->renew("one", 1, 1h));
  EXPECT_FALSE(lease->renew("one", 7, 1h)) << "another fence";
  EXPECT_FALSE(lease->renew("two", 1, 1h));
  EXPECT_EQ(lease->acquire("one", 1h).fence, 2U) << "its own: it may not have known";
  lease->release("one", 1);
  EXPECT_FALSE(lease->acquire("two", 1h).fence) << "a late release changes nothing";
  lease->release("one", 2);
  EXPECT_EQ(lease->acquire("two", 1h).fence, 3U);
  EXPECT_FALSE(lease->renew("one", 2, 1h)) << "somebody had it since";
  EXPECT_EQ(detail::store::make_table_lease(db.shared()->sql, "", "b")->acquire("one", 1h).fence,
            1U)
      << "another name, another lease";
}

TYPED_TEST(StoreCleanup, ALeaseEndsByTheServersClock) {
  const auto db = open(this->place.url);
  (void)db.store({.create_schema = true, .start = start_mode::require});
  const auto lease = detail::store::make_table_lease(db.shared()->sql, "", "a");
  const auto start = std::chrono::steady_clock::now();
  ASSERT_TRUE(lease->acquire("one", 500ms).fence);
  EXPECT_TRUE(eventually([&] { return lease->acquire("two", 1h).fence.has_value(); }));
  EXPECT_GE(std::chrono::steady_clock::now() - start, 490ms)
      << "SQLite's clock counts in milliseconds";
  EXPECT_FALSE(lease->renew("one", 1, 1h));
}

TYPED_TEST(StoreCleanup, OfManyThatAskAtOnceOneGetsIt) {
  const auto db = open(this->place.url);
  (void)db.store({.create_schema = true, .start = start_mode::require});
  for (int round = 0; round < 5; ++round) {
    std::atomic<int> holders{0};
    std::latch ready(6);
    {
      std::vector<std::jthread> threads;
      for (int t = 0; t < 6; ++t) {
        threads.emplace_back([&, t] {
          const auto lease = detail::store::make_table_lease(open(this->place.url).shared()->sql,
                                                             "", "round" + std::to_string(round));
          ready.arrive_and_wait();
          if (lease->acquire("owner" + std::to_string(t), 1h).fence) ++holders;
        });
      }
    }
    EXPECT_EQ(holders, 1);
  }
}

TYPED_TEST(StoreCleanup, OfTwoOneCleansAtATime) {
  fill(this->place.url, 3000);
  std::atomic<int> inside{0};
  std::atomic<int> most{0};
  const auto registry = make_prometheus_registry();
  const auto start = [&](const char* owner) {
    const auto db = open(this->place.url, {.metrics = registry});
    return cleanup(db, std::make_shared<watched_store>(db.store(), inside, most),
                   {.cron = "* * * * * *", .jitter = 0ms, .batch = 100, .owner = owner});
  };
  auto one = start("one");
  auto two = start("two");
  const auto store = open(this->place.url).store();
  EXPECT_TRUE(eventually([&] { return store->count("n") == 0; }));
  EXPECT_TRUE(eventually([&] { return one.state().skipped + two.state().skipped > 0; }))
      << "they met";
  EXPECT_TRUE(one.close(std::chrono::steady_clock::now() + 20s));
  EXPECT_TRUE(two.close(std::chrono::steady_clock::now() + 20s));
  EXPECT_EQ(most, 1);
  EXPECT_EQ(one.state().removed + two.state().removed, 3000U);
  EXPECT_EQ(one.state().failures + two.state().failures, 0U);
  EXPECT_NE(registry->text().find("holdfast_cleanup_removed_total 3000\n"), std::string::npos);
}

TYPED_TEST(StoreCleanup, OneThatIsKilledIsFollowedWhenItsLeaseEnds) {
  fill(this->place.url, 50);
  temporary_directory directory;
  const auto sign = directory.path() / "cleaning";
  child_process victim(worker_options("hanging_cleaner", {this->place.url, sign.string()}));
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(sign); }));
  const auto db = open(this->place.url);
  const auto store = db.store();
  cleanup follower(db, store, {.cron = "@yearly", .owner = "follower"});
  victim.kill();
  const auto refused = follower.run_now();
  EXPECT_EQ(refused.result, cleanup_result::held_elsewhere)
      << "the dead one's lease has not ended: " << refused.problem;
  EXPECT_TRUE(refused.holder.starts_with("victim:")) << refused.holder;
  EXPECT_EQ(store->count("n"), 40U) << "it had removed one batch";
  cleanup_report report;
  EXPECT_TRUE(
      eventually([&] { return (report = follower.run_now()).result == cleanup_result::cleaned; }));
  EXPECT_EQ(report.removed, 40U);
  EXPECT_EQ(report.fence, 2U);
}

TYPED_TEST(StoreCleanup, AMissingTableIsReported) {
  const auto db = open(this->place.url);
  cleanup cleaner(db, open("memory:").store(), {.cron = "@yearly", .prefix = "NOT_THERE_"});
  const auto report = cleaner.run_now();
  EXPECT_EQ(report.result, cleanup_result::failed);
  EXPECT_NE(report.problem.find("holdfast store schema"), std::string::npos) << report.problem;
  EXPECT_THROW(cleanup(db, open("memory:").store(), {.prefix = "x; DROP"}), error);
}

}  // namespace

/// Removes one batch of ten, says so, and hangs with the lease in its hand.
HOLDFAST_WORKER(hanging_cleaner) {
  class hanging final : public store {
   public:
    hanging(std::shared_ptr<store> behind, std::string sign)
        : behind_(std::move(behind)), sign_(std::move(sign)) {}
    void put(std::span<const entry> entries) override { behind_->put(entries); }
    std::optional<entry> find(place where, std::string_view key) override {
      return behind_->find(where, key);
    }
    entry_page find_all(place where, std::size_t limit, std::string_view after) override {
      return behind_->find_all(where, limit, after);
    }
    bool erase(place where, std::string_view key, timestamp as_of) override {
      return behind_->erase(where, key, as_of);
    }
    std::size_t expire(timestamp before, std::size_t limit) override {
      const auto removed = behind_->expire(before, limit);
      std::ofstream(sign_) << removed;
      for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
    }
    std::uint64_t count(place where) override { return behind_->count(where); }
    store_health health() noexcept override { return behind_->health(); }

   private:
    std::shared_ptr<store> behind_;
    std::string sign_;
  };
  const auto db = open(arguments.at(0));
  cleanup cleaner(
      db, std::make_shared<hanging>(db.store(), arguments.at(1)),
      {.cron = "@yearly", .batch = 10, .lease = std::chrono::seconds(5), .owner = "victim"});
  (void)cleaner.run_now();
  return 1;
}

}  // namespace holdfast::test
