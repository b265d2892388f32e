// Upstreams and stores that hang: nothing else may suffer from it. On the clock of the machine.

#include <holdfast/failover.hpp>
#include <holdfast/store/memory.hpp>

#include "support/eventually.hpp"
#include "support/faulty_store.hpp"
#include "support/gate.hpp"

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <future>
#include <latch>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

class FailoverHang : public ::testing::Test {
 protected:
  ~FailoverHang() override {
    held.open();
    engine_.reset();
  }
  engine& make(engine_options options = {}) {
    options.linger = 20s;
    engine_ = std::make_unique<engine>(shaky, std::move(options));
    return *engine_;
  }
  /// Operations of this kind wait at the gate.
  void hang_store(faulty_store::operation hanging) {
    shaky->before = [this, hanging](faulty_store::operation operation, std::span<const entry>) {
      if (operation == hanging) held.wait();
    };
  }
  static std::uint64_t count(const engine& e, std::string_view name,
                             std::uint64_t point_numbers::* member) {
    for (const auto& point : e.points()) {
      if (point.name == name) return point.numbers.*member;
    }
    return 0;
  }

  gate held;
  std::atomic<bool> down{false};
  std::atomic<bool> hangs{false};  // upstreams that wait at the gate
  // Calls and reads that hang go on after the test, until the engine is closed.
  std::atomic<int> calls{0};
  std::atomic<int> reports{0};
  std::atomic<int> finds{0};
  std::atomic<bool> cancels{true};
  std::shared_ptr<store> memory = make_memory_store();
  std::shared_ptr<faulty_store> shaky = std::make_shared<faulty_store>(memory);
  std::unique_ptr<engine> engine_{};
};

/// Row by row: 16 hung calls of one point, then all calls of another are live.
TEST_F(FailoverHang, OfOneUpstreamLeavesTheOtherPointsAlone) {
  shaky->waiting = false;
  auto& e = make();
  const auto hung = e.protect("hung", {.deadline = 50ms}, [&](int) -> std::string {
    held.wait();
    return "";
  });
  const auto healthy =
      e.protect("healthy", {.deadline = 20s}, [](int n) { return std::to_string(n); });
  held.close();
  std::atomic<bool> stop{false};
  std::vector<std::jthread> callers;
  for (int i = 0; i < 32; ++i)
    callers.emplace_back([&] {
      while (!stop) {
        (void)hung.try_call(1);
        std::this_thread::sleep_for(1ms);
      }
    });
  ASSERT_TRUE(eventually([&] { return held.waiting() >= 16; }));
  ASSERT_TRUE(eventually([&] { return count(e, "hung", &point_numbers::late) >= 16; }));
  for (int n = 0; n < 200; ++n) EXPECT_TRUE(healthy(n).live());
  stop = true;
}

TEST_F(FailoverHang, OfRefreshesLeavesTheOtherPointsAlone) {
  shaky->waiting = false;
  auto& e = make();
  const auto hung =
      e.protect("hung", {.expiry = 24h, .soft_expiry = 1us}, [&](int n) -> std::string {
        if (hangs) held.wait();
        return std::to_string(n);
      });
  const auto other = e.protect("other", {.expiry = 24h, .soft_expiry = 1us},
                               [&](int n) { return std::to_string(n + calls); });
  for (int n = 0; n < 64; ++n) (void)hung(n);
  (void)other(1);
  held.close();
  hangs = true;
  for (int n = 0; n < 64; ++n) EXPECT_TRUE(hung(n).stale());
  for (int i = 1; i <= 10; ++i) {
    calls = i;
    EXPECT_TRUE(eventually([&] { return *other(1) == std::to_string(1 + i); }))
        << "its refresh goes on";
  }
}

TEST_F(FailoverHang, OfCallsLeavesReportsAlone) {
  shaky->waiting = false;
  auto& e = make({.log =
                      [&](const log_record& record) {
                        if (record.message == "failover report") ++reports;
                      },
                  .reports = {.every = 10ms}});
  const auto hung = e.protect("hung", {.deadline = 10ms}, [&](int) -> std::string {
    held.wait();
    return "";
  });
  held.close();
  for (int i = 0; i < 30; ++i) (void)hung.try_call(1);
  const int before = reports;
  EXPECT_TRUE(eventually([&] { return reports >= before + 3; }));
}

/// A soft expiry reads the store before the call. A store that hangs must not cost the call.
TEST_F(FailoverHang, OfTheStoreDoesNotCostACallWithASoftExpiryItsAnswer) {
  auto& e = make({.storage = {.read_deadline = 1h}});
  const auto point = e.protect("p", {.expiry = 24h, .soft_expiry = 1s, .deadline = 2s},
                               [](int n) { return std::to_string(n); });
  held.close();
  hang_store(faulty_store::operation::find);
  for (int n = 0; n < 3; ++n) EXPECT_TRUE(point(n).live());
}

/// The deadline covers the recovery too.
TEST_F(FailoverHang, OfTheStoreDoesNotKeepACallerBeyondItsDeadline) {
  auto& e = make({.storage = {.read_deadline = 1h}});
  const auto point = e.protect("p", {.deadline = 200ms}, [&](int n) {
    if (down) throw std::runtime_error("down");
    return std::to_string(n);
  });
  (void)point(1);
  ASSERT_TRUE(e.flush(steady::now() + 20s));
  down = true;
  held.close();
  hang_store(faulty_store::operation::find);
  const auto began = steady::now();
  EXPECT_THROW((void)point(1), std::runtime_error);
  EXPECT_LT(steady::now() - began, 20s) << "not the hour of the read deadline";
}

TEST_F(FailoverHang, OfTheStoreIsNoticedAndTheStoreIsAskedAgain) {
  auto& e = make({.storage = {.read_deadline = 20ms}});
  const auto point = e.protect("p", {.expiry = 24h}, [&](int n) {
    if (down) throw std::runtime_error("down");
    return std::to_string(n);
  });
  (void)point(1);
  ASSERT_TRUE(e.flush(steady::now() + 20s));
  down = true;
  held.close();
  shaky->before = [&](faulty_store::operation operation, std::span<const entry>) {
    if (operation != faulty_store::operation::find) return;
    ++finds;
    held.wait();
  };
  EXPECT_TRUE(eventually([&] {
    (void)point.try_call(1);
    return !e.health().store_answers;
  }));
  EXPECT_FALSE(e.health().healthy);
  held.open();
  EXPECT_TRUE(eventually([&] { return e.health().store_answers; }));
  EXPECT_TRUE(eventually([&] { return point.try_call(1).has_value(); }));
}

/// The tasks of an application's executor call points that need threads.
TEST_F(FailoverHang, ThePointsDoNotStarveOnTheExecutorOfTheirCallers) {
  const auto pool = make_thread_pool({.threads = 4});
  auto& e = make({.threads = {.executor = pool}});
  const auto point = e.protect("p", {.deadline = 20s}, [](int n) { return std::to_string(n); });
  std::atomic<int> live{0};
  std::latch done(40);
  for (int n = 0; n < 40; ++n)
    ASSERT_TRUE(pool->post([&, n] {
      const auto answer = point.try_call(n);
      if (answer.has_value() && answer->live()) ++live;
      done.count_down();
    }));
  done.wait();
  EXPECT_EQ(live, 40);
}

TEST_F(FailoverHang, OfALeaderDoesNotHoldItsFollowersForEver) {
  shaky->waiting = false;
  auto& e = make();
  const auto point = e.protect("p", {.single_flight = true}, [&](int n) {
    if (++calls == 1) held.wait();
    return std::to_string(n);
  });
  held.close();
  const std::jthread leader([&] { (void)point.try_call(1); });
  ASSERT_TRUE(eventually([&] { return held.waiting() == 1; }));
  EXPECT_TRUE(point(1).live()) << "after a while another call is made";
  EXPECT_EQ(calls, 2);
  held.open();
}

TEST_F(FailoverHang, IgnoredAnswersAreSharedToo) {
  shaky->waiting = false;
  auto& e = make();
  held.close();
  const auto point = e.protect("p", {.single_flight = true},
                               [&](int n) {
                                 ++calls;
                                 held.wait();
                                 return std::to_string(n);
                               },
                               {.result = [](const std::string&) { return result_kind::ignore; }});
  // A caller that joins after the shared call has ended makes a call of its own, so rounds are
  // repeated until some callers share.
  std::atomic<int> live{0};
  std::uint64_t started = 0;
  EXPECT_TRUE(eventually([&] {
    held.close();
    std::vector<std::jthread> callers;
    for (int i = 0; i < 50; ++i, ++started)
      callers.emplace_back([&] {
        if (point(1).live()) ++live;
      });
    EXPECT_TRUE(eventually([&] { return count(e, "p", &point_numbers::started) == started; }));
    held.open();
    callers.clear();
    const auto shared = count(e, "p", &point_numbers::coalesced);
    EXPECT_EQ(static_cast<std::uint64_t>(calls) + shared, started);
    return shared > 0;
  }));
  EXPECT_EQ(static_cast<std::uint64_t>(live), started);
}

TEST_F(FailoverHang, AFailureWithoutAStoredAnswerIsReadOnce) {
  auto& e = make();
  held.close();
  shaky->before = [&](faulty_store::operation operation, std::span<const entry>) {
    if (operation == faulty_store::operation::find) ++finds;
  };
  const auto point = e.protect("p", {.single_flight = true}, [&](int) -> std::string {
    held.wait();
    throw std::runtime_error("down");
  });
  // Rounds, as above.
  std::uint64_t started = 0;
  EXPECT_TRUE(eventually([&] {
    held.close();
    std::vector<std::jthread> callers;
    for (int i = 0; i < 50; ++i, ++started)
      callers.emplace_back([&] { EXPECT_THROW((void)point(1), std::runtime_error); });
    EXPECT_TRUE(eventually([&] { return count(e, "p", &point_numbers::started) == started; }));
    held.open();
    callers.clear();
    const auto shared = count(e, "p", &point_numbers::coalesced);
    EXPECT_LE(static_cast<std::uint64_t>(finds) + shared, started);
    return shared > 0;
  }));
}

TEST_F(FailoverHang, CallersThatReadTheSameRowShareOneRead) {
  auto& e = make({.storage = {.read_deadline = 20s}});
  const auto point = e.protect("p", {.expiry = 24h}, [&](int n) {
    if (down) throw std::runtime_error("down");
    return std::to_string(n);
  });
  (void)point(1);
  ASSERT_TRUE(e.flush(steady::now() + 20s));
  down = true;
  shaky->before = [&](faulty_store::operation operation, std::span<const entry>) {
    if (operation != faulty_store::operation::find) return;
    ++finds;
    held.wait();
  };
  // A caller that comes after the shared read has ended reads the row itself, so rounds are
  // repeated until one has few reads.
  std::uint64_t started = 1;
  EXPECT_TRUE(eventually([&] {
    finds = 0;
    held.close();
    std::vector<std::jthread> callers;
    for (int i = 0; i < 50; ++i, ++started)
      callers.emplace_back([&] { EXPECT_EQ(*point(1), "1"); });
    EXPECT_TRUE(eventually([&] { return count(e, "p", &point_numbers::started) == started; }));
    EXPECT_TRUE(eventually([&] { return held.waiting() == 1; }));
    held.open();
    callers.clear();
    return finds <= 5;
  })) << "50 without sharing";
}

/// pthread_exit unwinds a thread through its functions. Whoever waits for the call is told.
TEST_F(FailoverHang, ACallThatEndsItsThreadFailsAndNothingElseDoes) {
  shaky->waiting = false;
  auto& e = make();
  const auto point = e.protect("p", {.deadline = 20s}, [&](int n) {
    if (cancels) pthread_exit(nullptr);
    return std::to_string(n);
  });
  EXPECT_THROW((void)point(1), error);
  cancels = false;
  for (int n = 0; n < 100; ++n) EXPECT_TRUE(point(n).live());
}

TEST_F(FailoverHang, APartOfTheTimeIsForTheRecovery) {
  auto& e = make();
  const auto point = e.protect("p", {.expiry = 24h, .deadline = 400ms}, [&](int n) {
    if (down) held.wait();
    return std::to_string(n);
  });
  (void)point(1);
  ASSERT_TRUE(e.flush(steady::now() + 20s));
  down = true;
  held.close();
  // A store that needs a while: 20 ms are less than the 50 ms that are reserved at first.
  shaky->before = [](faulty_store::operation operation, std::span<const entry>) {
    if (operation == faulty_store::operation::find) std::this_thread::sleep_for(20ms);
  };
  EXPECT_TRUE(eventually([&] {
    const auto answer = point.try_call(1);
    return answer.has_value() && answer->stale() && answer->cause().code() == cause_code::late;
  }));
}

TEST_F(FailoverHang, WithNothingStoredTheWholeDeadlineIsForTheUpstream) {
  auto& e = make();
  const auto point = e.protect("p", {.expiry = 24h, .deadline = 400ms}, [&](int n) {
    held.wait();
    return std::to_string(n);
  });
  // The upstream answers when the store has been asked, which has no answer.
  shaky->before = [&](faulty_store::operation operation, std::span<const entry>) {
    if (operation == faulty_store::operation::find) held.open();
  };
  EXPECT_TRUE(eventually([&, n = 0]() mutable {
    held.close();
    const auto answer = point.try_call(++n);
    return answer.has_value() && answer->live();
  }));
}

TEST_F(FailoverHang, ALeaderWithLessTimeDoesNotFailItsFollowers) {
  shaky->waiting = false;
  auto& e = make();
  const auto point = e.protect("p", {.deadline = 20s, .single_flight = true}, [&](int n) {
    if (++calls == 1) held.wait();
    return std::to_string(n);
  });
  held.close();
  const std::jthread leader([&] { (void)point.within(100ms).try_call(1); });
  ASSERT_TRUE(eventually([&] { return held.waiting() == 1; }));
  EXPECT_TRUE(point(1).live());
}

TEST_F(FailoverHang, OfTheStoreDoesNotKeepAnEraseBeyondItsDeadline) {
  auto& e = make();
  const auto point = e.protect("p", {.expiry = 24h}, [](int n) { return std::to_string(n); });
  (void)point(1);
  ASSERT_TRUE(e.flush(steady::now() + 20s));
  held.close();
  hang_store(faulty_store::operation::find);
  auto erased = std::async(std::launch::async, [&] { point.erase(1, steady::now() + 100ms); });
  EXPECT_EQ(erased.wait_for(60s), std::future_status::ready);
  held.open();
  try {
    erased.get();
    ADD_FAILURE() << "the store could not be asked";
  } catch (const error& problem) {
    EXPECT_EQ(problem.code(), errc::timeout) << problem.what();
  }
}

TEST_F(FailoverHang, ACallerCanShortenTheDeadline) {
  shaky->waiting = false;
  auto& e = make();
  const auto point = e.protect("p", {.expiry = 24h}, [&](int n) {
    if (down) held.wait();
    return std::to_string(n);
  });
  EXPECT_TRUE(point.within(20s)(1).live());
  down = true;
  held.close();
  const auto answer = point.within(50ms)(1);
  EXPECT_TRUE(answer.stale());
  EXPECT_EQ(answer.cause().code(), cause_code::late);
}

TEST_F(FailoverHang, ASoftTimeoutServesWhatIsStoredAndWaitsIfThereIsNothing) {
  shaky->waiting = false;
  auto& e = make();
  const auto point =
      e.protect("p", {.expiry = 24h, .deadline = 60s, .soft_timeout = 30ms}, [&](int n) {
        if (hangs && n == 1) held.wait();
        if (hangs && n == 2) std::this_thread::sleep_for(100ms);
        return std::to_string(n + calls);
      });
  (void)point(1);
  hangs = true;
  held.close();
  calls = 10;
  const auto early = point(1);
  EXPECT_EQ(*early, "1");
  EXPECT_EQ(early.cause().code(), cause_code::late);
  EXPECT_EQ(*point(2), "12") << "nothing is stored for it, so it was waited for";
  held.open();
  EXPECT_TRUE(eventually([&] { return *point(1) == "11"; })) << "the late answer was stored";
}

TEST_F(FailoverHang, ACallerWithLessTimeDoesNotWaitForTheSoftTimeout) {
  shaky->waiting = false;
  auto& e = make();
  const auto point =
      e.protect("p", {.expiry = 24h, .deadline = 60s, .soft_timeout = 30s}, [&](int n) {
        if (hangs) held.wait();
        return std::to_string(n);
      });
  (void)point(1);
  hangs = true;
  held.close();
  const auto started = steady::now();
  EXPECT_EQ(*point.within(50ms)(1), "1");
  EXPECT_THROW((void)point.within(50ms)(2), error);
  EXPECT_LT(steady::now() - started, 20s);
}

TEST_F(FailoverHang, OfManyUpstreamsLeavesTheOtherPointsAlone) {
  shaky->waiting = false;
  auto& e = make({.threads = {.count = 2}});
  std::vector<point<std::string(int)>> hung;
  for (int i = 0; i < 10; ++i) {
    hung.push_back(e.protect("hung" + std::to_string(i), {.deadline = 100ms}, [&](int n) {
      if (hangs) held.wait();
      return std::to_string(n);
    }));
    (void)hung.back().try_call(0);
  }
  const auto healthy =
      e.protect("healthy", {.deadline = 20s}, [](int n) { return std::to_string(n); });
  hangs = true;
  held.close();
  std::atomic<bool> stop{false};
  std::vector<std::jthread> callers;
  for (int i = 0; i < 20; ++i)
    callers.emplace_back([&, i] {
      for (int n = 1; !stop; ++n) {
        if (!hung[static_cast<std::size_t>(i) / 2].try_call(n).has_value())
          std::this_thread::sleep_for(1ms);
      }
    });
  // Twice the threads of all calls, late ones included, would be taken.
  EXPECT_TRUE(eventually([&] { return held.waiting() >= 8; }));
  std::this_thread::sleep_for(300ms);
  for (int n = 0; n < 50; ++n) EXPECT_TRUE(healthy.try_call(n).has_value()) << n;
  stop = true;
}

/// Each caller waits on its own thread, so there is no reason to refuse it.
TEST_F(FailoverHang, ABurstOfRecoveriesIsServed) {
  auto& e = make({.storage = {.read_deadline = 20s}});
  const auto point = e.protect("p", {.expiry = 24h}, [&](int n) {
    if (down) throw std::runtime_error("down");
    return std::to_string(n);
  });
  constexpr int callers = 300;
  for (int n = 0; n < callers; ++n) (void)point(n);
  ASSERT_TRUE(e.flush(steady::now() + 20s));
  down = true;
  shaky->before = [](faulty_store::operation operation, std::span<const entry>) {
    if (operation == faulty_store::operation::find) std::this_thread::sleep_for(2ms);
  };
  std::atomic<int> served{0};
  std::latch ready(callers);
  {
    std::vector<std::jthread> threads;
    threads.reserve(callers);
    for (int n = 0; n < callers; ++n)
      threads.emplace_back([&, n] {
        ready.arrive_and_wait();
        if (point.try_call(n).has_value()) ++served;
      });
  }
  EXPECT_EQ(served, callers);
}

/// Reads that are late for their own short deadline say nothing about the store.
TEST_F(FailoverHang, ShortDeadlinesOfAPointLeaveTheReadsOfTheOthers) {
  auto& e = make({.storage = {.read_deadline = 20s}});
  const auto failing = [&](int n) {
    if (down) throw std::runtime_error("down");
    return std::to_string(n);
  };
  const auto hasty = e.protect("hasty", {.expiry = 24h}, failing);
  const auto patient = e.protect("patient", {.expiry = 24h}, failing);
  for (int n = 0; n < 20; ++n) (void)patient(n);
  ASSERT_TRUE(e.flush(steady::now() + 20s));
  down = true;
  shaky->before = [](faulty_store::operation operation, std::span<const entry>) {
    if (operation == faulty_store::operation::find) std::this_thread::sleep_for(20ms);
  };
  std::atomic<bool> stop{false};
  std::vector<std::jthread> callers;
  for (int i = 0; i < 4; ++i)
    callers.emplace_back([&, i] {
      for (int n = 0; !stop; ++n) (void)hasty.within(5ms).try_call(i * 1'000'000 + n);
    });
  EXPECT_TRUE(eventually([&] { return count(e, "hasty", &point_numbers::read_late) > 20; }));
  for (int n = 0; n < 20; ++n) EXPECT_TRUE(patient.try_call(n).has_value()) << n;
  EXPECT_TRUE(e.health().store_answers);
  stop = true;
}

TEST_F(FailoverHang, AnAnswerThatTheStoreRefusesLaterLeavesTheOlderOne) {
  auto& e = make();
  std::string text = "first";
  const auto point = e.protect("p", {.expiry = 24h}, [&](int) {
    if (down) throw std::runtime_error("down");
    return text;
  });
  (void)point(1);
  ASSERT_TRUE(e.flush(steady::now() + 20s));
  shaky->before = [](faulty_store::operation operation, std::span<const entry>) {
    if (operation == faulty_store::operation::put)
      throw error(errc::too_large, "the payload is too long for its column");
  };
  text = "second";
  EXPECT_EQ(*point(1), "second");
  (void)e.flush(steady::now() + 20s);
  down = true;
  EXPECT_EQ(*point(1), "first");
  EXPECT_FALSE(e.health().healthy);
  EXPECT_NE(e.health().problem, "");
}

TEST_F(FailoverHang, JitterShortensTheExpiryAndNeverLengthensIt) {
  shaky->waiting = false;
  auto& e = make();
  const auto point = e.protect("p", {.expiry = 100s, .expiry_jitter = 0.5},
                               [](int n) { return std::to_string(n); });
  std::set<std::int64_t> expiries;
  for (int n = 0; n < 100; ++n) {
    const auto answer = point(n);
    const auto expiry = answer.expires() - answer.as_of();
    EXPECT_GE(expiry, 50s);
    EXPECT_LE(expiry, 100s);
    expiries.insert(expiry.count());
  }
  EXPECT_GT(expiries.size(), 50U);
}

}  // namespace
}  // namespace holdfast::test
