#include "base/first_use.hpp"

#include <holdfast/error.hpp>

#include "support/eventually.hpp"
#include "support/failure_of.hpp"
#include "support/gate.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

using detail::first_use;

TEST(FirstUse, RunsOnceAndAgainOnlyAfterAFailure) {
  first_use once;
  int runs = 0;
  const auto failing = [&] {
    ++runs;
    throw error(errc::unavailable, "down");
  };
  EXPECT_FALSE(once.done());
  EXPECT_EQ(failure_of([&] { once.run(failing); }).code(), errc::unavailable);
  EXPECT_EQ(failure_of([&] { once.run(failing); }).code(), errc::unavailable);
  EXPECT_EQ(runs, 2);
  EXPECT_FALSE(once.done());
  once.run([&] { ++runs; });
  once.run([&] { ++runs; });
  EXPECT_EQ(runs, 3);
  EXPECT_TRUE(once.done());
}

/// With std::call_once, each of them would try after the one before.
TEST(FirstUse, CallersThatWaitShareTheFailure) {
  first_use once;
  gate server;
  std::atomic<int> runs{0};
  std::atomic<int> started{0};
  std::atomic<int> failures{0};
  const auto use = [&] {
    ++started;
    try {
      once.run([&] {
        ++runs;
        server.wait();
        throw error(errc::timeout, "no answer");
      });
    } catch (const error& e) {
      if (e.code() == errc::timeout) ++failures;
    }
  };
  std::vector<std::jthread> callers;
  const open_in_the_end always(server);
  callers.emplace_back(use);
  ASSERT_TRUE(eventually([&] { return server.waiting() == 1; }));
  for (int i = 0; i < 7; ++i) callers.emplace_back(use);
  ASSERT_TRUE(eventually([&] { return started == 8; }));
  // The last of them may not wait yet. It then tries itself, and the gate is open.
  server.open();
  callers.clear();
  EXPECT_EQ(failures, 8);
  EXPECT_LT(runs, 8);
}

TEST(FirstUse, CallersThatWaitSeeWhatWasMade) {
  first_use once;
  gate server;
  std::string made;
  std::atomic<int> right{0};
  std::vector<std::jthread> callers;
  const open_in_the_end always(server);
  for (int i = 0; i < 8; ++i) {
    callers.emplace_back([&] {
      once.run([&] {
        server.wait();
        made += "statements";
      });
      if (made == "statements") ++right;
    });
  }
  ASSERT_TRUE(eventually([&] { return server.waiting() == 1; }));
  server.open();
  callers.clear();
  EXPECT_EQ(right, 8);
}

}  // namespace
}  // namespace holdfast::test
