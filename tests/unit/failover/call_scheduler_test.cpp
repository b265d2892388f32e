#include "failover/call_scheduler.hpp"

#include "support/eventually.hpp"
#include "support/gate.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using detail::failover::call_scheduler;
using steady = std::chrono::steady_clock;

class CallScheduler : public ::testing::Test {
 protected:
  using group = std::shared_ptr<call_scheduler::group>;
  using job = std::shared_ptr<call_scheduler::job>;

  ~CallScheduler() override {
    held.open();
    scheduler->close(steady::now() + 20s);
  }
  /// A job that waits at the gate.
  job hang(const group& owner, steady::time_point deadline = steady::now() + 1h) {
    return scheduler->post(owner, [this] { held.wait(); }, deadline, [this] { ++refused; });
  }
  job quick(const group& owner) {
    return scheduler->post(owner, [this] { ++ran; }, steady::now() + 1h, [this] { ++refused; });
  }
  void hang(const group& owner, std::size_t jobs, std::vector<job>& accepted) {
    for (std::size_t i = 0; i < jobs; ++i) {
      if (auto posted = hang(owner)) accepted.push_back(std::move(posted));
    }
  }

  gate held;
  std::atomic<int> ran{0};
  std::atomic<int> refused{0};
  std::shared_ptr<call_scheduler> scheduler = std::make_shared<call_scheduler>(
      call_scheduler::settings{.threads = 8, .queue = 16, .name = "test"});
};

TEST_F(CallScheduler, AGroupAloneMayUseAllThreads) {
  const auto only = scheduler->add_group();
  held.close();
  std::vector<job> jobs;
  hang(only, 8, jobs);
  EXPECT_TRUE(eventually([&] { return held.waiting() == 8; }));
}

TEST_F(CallScheduler, HungGroupsLeaveThreadsForTheOthers) {
  std::vector<group> hung;
  for (int i = 0; i < 6; ++i) hung.push_back(scheduler->add_group());
  const auto healthy = scheduler->add_group();
  held.close();
  std::vector<job> jobs;
  for (const auto& each : hung) hang(each, 100, jobs);
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(quick(healthy));
    ASSERT_TRUE(eventually([&] { return ran == i + 1; }));
  }
}

/// More hung jobs than there are threads for late ones.
TEST_F(CallScheduler, HungGroupsWhoseCallersHaveLeftLeaveThreadsForTheOthers) {
  std::vector<group> hung;
  for (int i = 0; i < 20; ++i) {
    hung.push_back(scheduler->add_group());
    ASSERT_TRUE(quick(hung.back()));
    ASSERT_TRUE(eventually([&] { return scheduler->count().attended == 0; }));
  }
  const auto healthy = scheduler->add_group();
  held.close();
  std::vector<job> jobs;
  for (std::size_t before = 1; before != 0; before = jobs.size()) {
    jobs.clear();
    for (const auto& each : hung) hang(each, 4, jobs);
    for (const auto& each : jobs) (void)scheduler->leave(*each);
  }
  EXPECT_GE(scheduler->count().late, 32U);
  ran = 0;
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(quick(healthy));
    ASSERT_TRUE(eventually([&] { return ran == i + 1; }));
  }
}

TEST_F(CallScheduler, AGroupWhoseLateJobHasEndedIsServedBesideManyThatHang) {
  const auto healthy = scheduler->add_group();
  gate own;
  own.close();
  const auto slow =
      scheduler->post(healthy, [&] { own.wait(); }, steady::now() + 1h, [this] { ++refused; });
  ASSERT_TRUE(slow);
  (void)scheduler->leave(*slow);
  std::vector<group> hung;
  for (int i = 0; i < 40; ++i) hung.push_back(scheduler->add_group());
  held.close();
  std::vector<job> jobs;
  for (std::size_t before = 1; before != 0; before = jobs.size()) {
    jobs.clear();
    for (const auto& each : hung) hang(each, 4, jobs);
    for (const auto& each : jobs) (void)scheduler->leave(*each);
  }
  EXPECT_GE(scheduler->count().late, 33U);
  const auto late = scheduler->count().late;
  own.open();
  ASSERT_TRUE(eventually([&] { return scheduler->count().late == late - 1; }));
  ASSERT_TRUE(quick(healthy));
  EXPECT_TRUE(eventually([&] { return ran == 1; }));
}

TEST_F(CallScheduler, AGroupThatDoesNotHangGetsSomeThreadsInAnyCase) {
  scheduler->close(steady::now());
  scheduler = std::make_shared<call_scheduler>(
      call_scheduler::settings{.threads = 16, .queue = 16, .name = "test"});
  held.close();
  std::vector<job> jobs;
  for (int i = 0; i < 8; ++i) hang(scheduler->add_group(), 16, jobs);
  const auto other = scheduler->add_group();
  const auto running = scheduler->count().attended;
  EXPECT_GE(running, 16U);
  std::vector<job> others;
  hang(other, 2, others);
  EXPECT_EQ(scheduler->count().attended, running + 2);
}

TEST_F(CallScheduler, AJobWhoseCallerHasLeftIsNotStarted) {
  const auto only = scheduler->add_group();
  held.close();
  std::vector<job> jobs;
  hang(only, 8, jobs);
  const auto waiting = quick(only);
  ASSERT_TRUE(waiting);
  EXPECT_EQ(scheduler->count().waiting, 1U);
  EXPECT_TRUE(scheduler->leave(*waiting));
  EXPECT_EQ(scheduler->count().waiting, 0U);
  held.open();
  EXPECT_TRUE(eventually([&] { return scheduler->count().attended == 0; }));
  EXPECT_EQ(ran, 0);
  EXPECT_EQ(refused, 0);
}

TEST_F(CallScheduler, LateJobsHaveThreadsOfTheirOwn) {
  const auto hung = scheduler->add_group();
  const auto other = scheduler->add_group();
  held.close();
  std::vector<job> jobs;
  hang(hung, 4, jobs);
  ASSERT_EQ(jobs.size(), 4U);
  ASSERT_TRUE(eventually([&] { return held.waiting() == 4; }));
  for (const auto& each : jobs) EXPECT_FALSE(scheduler->leave(*each));
  EXPECT_EQ(scheduler->count().late, 4U);
  EXPECT_EQ(scheduler->count().attended, 0U);
  std::vector<job> others;
  hang(other, 4, others);
  EXPECT_TRUE(eventually([&] { return held.waiting() == 8; }));
  held.open();
  EXPECT_TRUE(eventually([&] { return scheduler->count().late == 0; }));
}

TEST_F(CallScheduler, AHungUpstreamIsProbedNowAndThen) {
  const auto hung = scheduler->add_group();
  held.close();
  // Every job is left, until none is admitted.
  std::size_t admitted = 0;
  while (const auto posted = hang(hung)) {
    ++admitted;
    ASSERT_TRUE(eventually([&] { return held.waiting() == static_cast<int>(admitted); }));
    (void)scheduler->leave(*posted);
    ASSERT_LE(admitted, 16U) << "the late jobs are limited";
  }
  // After a pause one is admitted. It answers, so the hung ones no longer count.
  EXPECT_TRUE(eventually([&] { return quick(hung) != nullptr; }));
  EXPECT_TRUE(eventually([&] { return ran >= 1; }));
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(eventually([&] { return scheduler->count().attended == 0; }));
    ASSERT_TRUE(quick(hung)) << i;
  }
}

TEST_F(CallScheduler, AJobThatCannotEndInTimeDoesNotWait) {
  const auto only = scheduler->add_group();
  // Learns that a job takes some time.
  std::atomic<int> done{0};
  ASSERT_TRUE(scheduler->post(
      only,
      [&] {
        std::this_thread::sleep_for(50ms);
        ++done;
      },
      steady::now() + 1h, [] {}));
  ASSERT_TRUE(eventually([&] { return done == 1 && scheduler->count().attended == 0; }));
  held.close();
  std::vector<job> jobs;
  hang(only, 8, jobs);
  EXPECT_FALSE(hang(only, steady::now() + 40ms)) << "it would take 50 ms";
  const auto waiting = hang(only, steady::now() + 1h);
  EXPECT_TRUE(waiting);
}

TEST_F(CallScheduler, AWaitingJobThatWouldEndTooLateIsRefused) {
  const auto only = scheduler->add_group();
  held.close();
  std::vector<job> jobs;
  hang(only, 8, jobs);  // the duration of a job is not known yet
  const auto waiting = hang(only, steady::now() + 100ms);
  ASSERT_TRUE(waiting);
  std::this_thread::sleep_for(150ms);
  held.open();
  EXPECT_TRUE(eventually([&] { return refused == 1; }));
}

TEST_F(CallScheduler, TheQueueIsBoundedAndShared) {
  const auto busy = scheduler->add_group();
  const auto other = scheduler->add_group();
  held.close();
  std::vector<job> jobs;
  hang(busy, 100, jobs);
  EXPECT_LE(jobs.size(), 4U + 8U) << "half of the threads, and half of the queue";
  std::vector<job> others;
  hang(other, 4, others);
  EXPECT_GE(others.size(), 3U);
  scheduler->close(steady::now());
  EXPECT_TRUE(eventually([&] { return scheduler->count().waiting == 0; }));
  EXPECT_GT(refused, 0) << "closing refuses those that wait";
  EXPECT_FALSE(quick(other));
}

/// Rounds of calls: nine in time, then one that is late.
std::size_t limit_after(std::chrono::milliseconds in_time, std::chrono::milliseconds fastest) {
  constexpr auto budget = 100ms;
  constexpr std::size_t running = 32;
  detail::failover::adaptive_limit limit(64);
  auto now = std::chrono::steady_clock::time_point() + 1h;
  limit.record_in_time(running, fastest, budget);
  for (int round = 0; round < 200; ++round) {
    for (int i = 0; i < 9; ++i) limit.record_in_time(running / 4, in_time, budget);
    limit.record_late(running, now += budget, budget);
  }
  return limit.value();
}

TEST(AdaptiveLimit, IsNotLoweredForLateCallsWhileTheOthersAreQuick) {
  EXPECT_EQ(limit_after(5ms, 5ms), 64U);
  EXPECT_EQ(limit_after(12ms, 5ms), 64U) << "far from late";
  EXPECT_EQ(limit_after(60ms, 50ms), 64U) << "as quick as ever";
}

TEST(AdaptiveLimit, IsLoweredForLateCallsWhileTheOthersAreSlow) {
  EXPECT_LT(limit_after(60ms, 20ms), 32U);
}

TEST(AdaptiveLimit, IsLoweredIfAllCallsAreLate) {
  detail::failover::adaptive_limit limit(64);
  auto now = std::chrono::steady_clock::time_point() + 1h;
  for (int i = 0; i < 20; ++i) limit.record_late(limit.value(), now += 100ms, 100ms);
  EXPECT_EQ(limit.value(), 4U);
}

}  // namespace
}  // namespace holdfast::test
