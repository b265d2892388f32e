// What only SQLite has: a file that may be missing, and handles that must not cross a fork.

#include <holdfast/database.hpp>

#include "sql/sqlite/connection.hpp"
#include "support/failure_of.hpp"
#include "support/temporary_directory.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <latch>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

entry one_entry(std::string key) {
  const auto now = system_clock()->now();
  return {.name = "n",
          .key = std::move(key),
          .as_of = now,
          .expire_on = now + 1h,
          .payload = "{}",
          .payload_class = "c"};
}

TEST(SqliteFile, IsNotMadeWhenItMustBeThere) {
  const temporary_directory directory;
  const auto file = directory.path() / "mistyped.db";
  const auto url = "sqlite://" + file.string();
  const auto e = failure_of([&] { (void)open(url + "?mode=rw").store()->find("n", "k"); });
  EXPECT_EQ(e.code(), errc::not_found) << e.what();
  EXPECT_NE(e.message().find("mistyped.db"), std::string::npos) << e.what();
  EXPECT_FALSE(std::filesystem::exists(file)) << "nothing is left behind";
  (void)open(url + "?mode=rwc").store({.create_schema = true, .start = start_mode::require});
  EXPECT_FALSE(open(url + "?mode=rw").store()->find("n", "k"));
  EXPECT_EQ(failure_of([&] { (void)open(url + "?mode=read"); }).code(), errc::invalid_argument);
  const auto read_only = open(url + "?mode=ro").store();
  EXPECT_FALSE(read_only->find("n", "k"));
  const auto now = system_clock()->now();
  const auto refused = failure_of([&] {
    read_only->put({.name = "n", .key = "k", .as_of = now, .expire_on = now + 1h, .payload = "1"});
  });
  EXPECT_EQ(refused.code(), errc::permission);
  EXPECT_NE(refused.message().find("remove mode=ro"), std::string::npos) << refused.what();
  EXPECT_EQ(failure_of([] {
              (void)open("sqlite:///nosuch/dir/x.db?mode=rw").store({.start = start_mode::require});
            }).code(),
            errc::not_found);
}

TEST(SqliteFile, ManyMakeItAtOnce) {
  const temporary_directory directory;
  for (int round = 0; round < 40; ++round) {
    const auto file = (directory.path() / (std::to_string(round) + ".db")).string();
    std::latch together(4);
    std::vector<std::jthread> all;
    for (int i = 0; i < 4; ++i) {
      all.emplace_back([&, i] {
        together.arrive_and_wait();
        EXPECT_NO_THROW(open("sqlite://" + file)
                            .store({.create_schema = true})
                            ->put(one_entry(std::to_string(i))));
      });
    }
    all.clear();
    for (int i = 0; i < 4; ++i)
      EXPECT_TRUE(open("sqlite://" + file).store()->find("n", std::to_string(i)));
  }
}

TEST(SqliteFile, MayBeWaitedForAsLongAsThereIsTime) {
  const temporary_directory directory;
  const auto file = (directory.path() / "x.db").string();
  const auto store =
      open("sqlite://" + file, {.statement_timeout = std::chrono::milliseconds::max()})
          .store({.create_schema = true});
  const auto other = detail::sql::connect_sqlite({.file = file});
  other->begin();
  const std::jthread writing([&] {
    std::this_thread::sleep_for(100ms);
    other->commit();
  });
  EXPECT_NO_THROW(store->put(one_entry("k")));
}

TEST(SqliteTenants, OneBrokenTableIsToldAndTheOthersAreCleaned) {
  const temporary_directory directory;
  const auto file = (directory.path() / "x.db").string();
  const auto store =
      open("sqlite://" + file)
          .store({.create_schema = true,
                  .realms = {{"acme", "ACME_"}, {"best", "BEST_"}, {"cool", "COOL_"}}});
  for (const char* tenant : {"acme", "cool"}) {
    for (const char* key : {"a", "b"}) {
      auto one = one_entry(key);
      one.realm = tenant;
      store->put(one);
    }
  }
  for (int i = 0; i < 4; ++i) EXPECT_EQ(store->health().problem, "");
  const auto other = detail::sql::connect_sqlite({.file = file});
  other->run("ALTER TABLE BEST_FAILOVER_STORE RENAME TO AWAY");
  const auto later = system_clock()->now() + 2h;
  EXPECT_EQ(store->expire(later, 3), 3U);
  EXPECT_EQ(store->expire(later, 3), 1U) << "what is behind the broken one";
  const auto e = failure_of([&] { (void)store->expire(later, 3); });
  EXPECT_EQ(e.code(), errc::missing_object) << e.what();
  EXPECT_NE(e.message().find("best"), std::string::npos) << e.what();
  for (int i = 0; i < 2; ++i) (void)store->health();
  for (int i = 0; i < 3; ++i) {
    const auto health = store->health();
    EXPECT_NE(health.problem.find("best"), std::string::npos)
        << "until it is mended: " << health.problem;
    EXPECT_TRUE(health.available) << "the others are served";
  }
  other->run("ALTER TABLE AWAY RENAME TO BEST_FAILOVER_STORE");
  EXPECT_EQ(store->expire(later, 3), 0U);
  EXPECT_EQ(store->health().problem, "");
}

/// Runs in a child process; what it returns is its exit code.
template <class F>
int in_child(F work) {
  const pid_t child = fork();
  if (child == 0) _exit(work());
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(SqliteFork, AChildIsRefusedAndLeavesTheParentAlone) {
  const temporary_directory directory;
  const auto url = "sqlite://" + (directory.path() / "x.db").string();
  auto store = open(url).store({.create_schema = true});
  store->put(one_entry("before"));

  enum : int { refused = 10, other_error, accepted };
  const auto outcome_of = [](auto action) -> int {
    try {
      action();
      return accepted;
    } catch (const error& e) {
      return e.code() == errc::invalid_argument ? refused : other_error;
    }
  };
  EXPECT_EQ(in_child([&] { return outcome_of([&] { (void)store->find("n", "before"); }); }),
            refused);
  EXPECT_EQ(in_child([&] { return outcome_of([&] { store->put(one_entry("child")); }); }), refused);
  EXPECT_EQ(in_child([&] {
              // The child closes what it got; the file, its locks and its log are the parent's
              store.reset();
              return 0;
            }),
            0);
  EXPECT_EQ(in_child([&] { return outcome_of([&] { open(url).store()->put(one_entry("own")); }); }),
            accepted)
      << "with its own handle";
  store->put(one_entry("after"));
  EXPECT_TRUE(store->find("n", "before"));
  EXPECT_TRUE(store->find("n", "after"));
  EXPECT_FALSE(store->find("n", "child"));
  EXPECT_TRUE(store->find("n", "own"));
}

}  // namespace
}  // namespace holdfast::test
