#include <holdfast/error.hpp>
#include <holdfast/executor.hpp>

#include "support/eventually.hpp"

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <csignal>
#include <functional>
#include <latch>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace holdfast;
using namespace std::chrono_literals;
using test::eventually;

std::chrono::steady_clock::time_point in(std::chrono::milliseconds time) {
  return std::chrono::steady_clock::now() + time;
}

/// Holds the threads of a pool until it is opened.
struct gate {
  std::latch opened{1};
  std::atomic<int> inside{0};
  executor::task task() {
    return [this] {
      ++inside;
      opened.wait();
    };
  }
  void open() { opened.count_down(); }
};

TEST(ThreadPool, RunsWhatItIsGiven) {
  const auto pool = make_thread_pool({.threads = 2});
  EXPECT_EQ(pool->count().threads, 0U) << "no work, no thread";
  std::atomic<int> ran{0};
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(pool->post([&] { ++ran; }));
  const auto report = pool->close(in(20s));
  EXPECT_EQ(ran, 100);
  EXPECT_EQ(report.dropped, 0U);
  EXPECT_EQ(report.still_running, 0U);
  EXPECT_EQ(pool->count().ran, 100U);
  EXPECT_EQ(pool->count().threads, 0U) << "closed: they are gone";
}

TEST(ThreadPool, StartsNoMoreThreadsThanItMay) {
  gate hold;
  const auto pool = make_thread_pool({.threads = 3});
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(pool->post(hold.task()));
  EXPECT_TRUE(eventually([&] { return hold.inside == 3; }));
  EXPECT_EQ(pool->count().threads, 3U);
  EXPECT_EQ(pool->count().running, 3U);
  EXPECT_EQ(pool->count().queued, 7U);
  hold.open();
  EXPECT_EQ(pool->close(in(20s)).dropped, 0U);
  EXPECT_EQ(hold.inside, 10);
}

TEST(ThreadPool, OneThreadIsEnoughForTasksThatComeOneByOne) {
  const auto pool = make_thread_pool({.threads = 8});
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(pool->post([] {}));
    ASSERT_TRUE(eventually([&] { return pool->count().ran == static_cast<std::size_t>(i + 1); }));
  }
  EXPECT_LE(pool->count().threads, 3U) << "an idle thread is taken before a new one is started";
}

TEST(ThreadPool, RefusesWhatItHasNoRoomFor) {
  gate hold;
  const auto pool = make_thread_pool({.threads = 1, .queue = 2, .timers = 1});
  ASSERT_TRUE(pool->post(hold.task()));
  ASSERT_TRUE(eventually([&] { return hold.inside == 1; }));
  EXPECT_TRUE(pool->post([] {}));
  EXPECT_TRUE(pool->post([] {}));
  const auto witness = std::make_shared<int>(0);
  EXPECT_FALSE(pool->post([witness] {}));
  EXPECT_EQ(witness.use_count(), 1) << "what is refused is destroyed before post returns";
  EXPECT_TRUE(pool->post_after(1h, [] {}));
  EXPECT_FALSE(pool->post_after(1h, [] {}));
  EXPECT_FALSE(pool->post(nullptr));
  EXPECT_EQ(pool->count().rejected, 3U);
  hold.open();
  EXPECT_EQ(pool->close(in(20s)).timers, 1U) << "the one that was not due";
  EXPECT_FALSE(pool->post([] {})) << "closed";
  EXPECT_FALSE(pool->post_after(0ms, [] {}));
}

TEST(ThreadPool, CountsWhatTasksThrowAndGoesOn) {
  std::mutex mutex;
  std::vector<std::string> said;
  const auto pool = make_thread_pool({.threads = 1, .log = [&](const log_record& record) {
                                        const std::scoped_lock lock(mutex);
                                        said.emplace_back(record.fields.front().value);
                                      }});
  std::atomic<bool> after{false};
  ASSERT_TRUE(pool->post([] { throw std::runtime_error("broken task"); }));
  ASSERT_TRUE(pool->post([] { throw 7; }));
  ASSERT_TRUE(pool->post([&] { after = true; }));
  pool->close(in(20s));
  EXPECT_TRUE(after);
  EXPECT_EQ(pool->count().threw, 2U);
  EXPECT_EQ(pool->count().ran, 3U);
  EXPECT_EQ(said, std::vector<std::string>{"broken task"}) << "once a minute";
}

TEST(ThreadPool, RunsTimersInTheirOrderAndNeverEarly) {
  gate hold;  // until all are posted
  const auto pool = make_thread_pool({.threads = 1});
  std::mutex mutex;
  std::string order;
  std::atomic<bool> early{false};
  ASSERT_TRUE(pool->post(hold.task()));
  ASSERT_TRUE(eventually([&] { return hold.inside == 1; }));
  const auto start = std::chrono::steady_clock::now();
  const auto add = [&](char name, std::chrono::milliseconds after) {
    const auto when = start + after;
    ASSERT_TRUE(pool->post_after(when - std::chrono::steady_clock::now(), [&, name, when] {
      if (std::chrono::steady_clock::now() < when) early = true;
      const std::scoped_lock lock(mutex);
      order += name;
    }));
  };
  add('c', 300ms);
  add('a', 100ms);
  add('d', 400ms);
  add('b', 200ms);
  hold.open();
  EXPECT_TRUE(eventually([&] { return pool->count().ran == 5; }));
  EXPECT_EQ(order, "abcd");
  EXPECT_FALSE(early);
}

TEST(ThreadPool, ADelayOfZeroOrLessMeansAsSoonAsItCan) {
  gate hold;
  const auto pool = make_thread_pool({.threads = 1});
  std::string order;  // of one thread
  ASSERT_TRUE(pool->post(hold.task()));
  ASSERT_TRUE(eventually([&] { return hold.inside == 1; }));
  ASSERT_TRUE(pool->post_after(0ms, [&] { order += 'a'; }));
  ASSERT_TRUE(pool->post_after(-1h, [&] { order += 'b'; }));
  ASSERT_TRUE(pool->post_after(std::chrono::steady_clock::duration::min(), [&] { order += 'c'; }));
  hold.open();
  ASSERT_TRUE(eventually([&] { return pool->count().ran == 4; }));
  EXPECT_EQ(order, "abc") << "none of them goes before one that was posted earlier";
}

TEST(ThreadPool, ADelayBeyondTheLastMomentNeverEnds) {
  const auto pool = make_thread_pool({.threads = 1});
  std::atomic<bool> never{false};
  ASSERT_TRUE(pool->post_after(std::chrono::steady_clock::duration::max(), [&] { never = true; }));
  std::atomic<bool> ran{false};
  ASSERT_TRUE(pool->post_after(1ms, [&] { ran = true; }));
  EXPECT_TRUE(eventually([&] { return ran.load(); })) << "it holds up no other";
  EXPECT_FALSE(never);
  EXPECT_EQ(pool->close(in(20s)).timers, 1U);
}

TEST(ThreadPool, ADestructorThatMayWaitAsLongAsThereIsWaits) {
  std::atomic<bool> ended{false};
  auto pool = make_thread_pool({.threads = 1, .linger = std::chrono::milliseconds::max()});
  ASSERT_TRUE(pool->post([&] {
    std::this_thread::sleep_for(50ms);
    ended = true;
  }));
  pool.reset();
  EXPECT_TRUE(ended);
}

TEST(ThreadPool, ATimerDoesNotWaitForABusyThreadWhenAnotherMayBeStarted) {
  gate hold;
  const auto pool = make_thread_pool({.threads = 2});
  ASSERT_TRUE(pool->post(hold.task()));
  std::atomic<int> ran{0};
  for (int i = 1; i <= 3; ++i) ASSERT_TRUE(pool->post_after(i * 5ms, [&] { ++ran; }));
  EXPECT_TRUE(eventually([&] { return ran == 3; }));
  hold.open();
}

TEST(ThreadPool, ATimerThatHangsDoesNotHoldTheNext) {
  gate hold;
  const auto pool = make_thread_pool({.threads = 2});
  ASSERT_TRUE(pool->post_after(20ms, hold.task()));
  std::atomic<bool> ran{false};
  ASSERT_TRUE(pool->post_after(40ms, [&] { ran = true; }));
  EXPECT_TRUE(eventually([&] { return ran.load(); })) << "another thread waits for it";
  EXPECT_EQ(hold.inside, 1);
  hold.open();
}

TEST(ThreadPool, WorkIsDoneWhileAnotherTimerIsFarAway) {
  const auto pool = make_thread_pool({.threads = 1});
  ASSERT_TRUE(pool->post_after(1h, [] {}));
  std::atomic<bool> ran{false};
  ASSERT_TRUE(pool->post([&] { ran = true; }));
  EXPECT_TRUE(eventually([&] { return ran.load(); }));
  std::atomic<bool> sooner{false};
  ASSERT_TRUE(pool->post_after(1ms, [&] { sooner = true; }));
  EXPECT_TRUE(eventually([&] { return sooner.load(); })) << "a new first timer is noticed";
}

TEST(ThreadPool, ReportsWhatAHungTaskLeaves) {
  auto hold = std::make_shared<gate>();
  const auto pool = make_thread_pool({.threads = 1});
  ASSERT_TRUE(pool->post([hold] { hold->task()(); }));
  ASSERT_TRUE(eventually([&] { return hold->inside == 1; }));
  const auto witness = std::make_shared<int>(0);
  ASSERT_TRUE(pool->post([witness] {}));
  EXPECT_EQ(pool->close(in(20ms)),
            (executor_close_report{.ran = 0, .dropped = 1, .timers = 0, .still_running = 1}));
  EXPECT_EQ(witness.use_count(), 1) << "what will never run is destroyed";
  hold->open();
  EXPECT_EQ(pool->close(in(20s)).still_running, 0U) << "a second call waits for what was running";
}

TEST(ThreadPool, AHungTaskDoesNotHangTheDestructorAndIsTold) {
  auto hold = std::make_shared<gate>();
  std::string said;
  auto pool = make_thread_pool({.threads = 1, .linger = 10ms, .log = [&](const log_record& record) {
                                  for (const auto& [name, value] : record.fields)
                                    said.append(name).append("=").append(value).append(" ");
                                }});
  ASSERT_TRUE(pool->post([hold] { hold->task()(); }));
  ASSERT_TRUE(eventually([&] { return hold->inside == 1; }));
  pool.reset();
  EXPECT_EQ(said, "dropped=0 still_running=1 ");
  hold->open();
  EXPECT_TRUE(eventually([&] { return hold.use_count() == 1; }))
      << "the thread that was let go ends";
}

TEST(ThreadPool, ADestructorThatLeavesOnlyTimersSaysNothing) {
  bool said = false;
  auto pool = make_thread_pool({.threads = 1, .log = [&](const log_record&) { said = true; }});
  ASSERT_TRUE(pool->post_after(1h, [] {}));
  pool.reset();
  EXPECT_FALSE(said) << "a schedule that goes on for ever is no work that was lost";
}

TEST(ThreadPool, MayBeClosedAndDestroyedFromItsOwnTask) {
  auto pool = make_thread_pool({.threads = 2});
  std::atomic<bool> done{false};
  executor_close_report report;
  ASSERT_TRUE(pool->post([&] {
    report = pool->close(in(20s));
    pool.reset();
    done = true;
  }));
  EXPECT_TRUE(eventually([&] { return done.load(); }));
  EXPECT_EQ(report.still_running, 1U) << "the task that asks";
}

TEST(ThreadPool, TasksMayPost) {
  const auto pool = make_thread_pool({.threads = 2});
  std::atomic<int> depth{0};
  std::function<void()> again = [&] {
    if (++depth < 50) (void)pool->post(again);
  };
  ASSERT_TRUE(pool->post(again));
  EXPECT_TRUE(eventually([&] { return depth == 50; }));
}

TEST(ThreadPool, ManyThreadsPostAndNothingIsLost) {
  const auto pool = make_thread_pool({.threads = 4, .queue = 64, .timers = 64});
  std::atomic<std::uint64_t> ran{0};
  std::atomic<std::uint64_t> taken{0};
  std::atomic<std::uint64_t> refused{0};
  {
    std::vector<std::jthread> posters;
    for (int t = 0; t < 4; ++t) {
      posters.emplace_back([&, t] {
        for (int i = 0; i < 2000; ++i) {
          const auto task = [&] { ++ran; };
          ((i + t) % 3 == 0 ? pool->post_after(0ms, task) : pool->post(task)) ? ++taken : ++refused;
        }
      });
    }
  }
  const auto report = pool->close(in(30s));
  EXPECT_EQ(report.dropped, 0U);
  EXPECT_EQ(ran, taken);
  EXPECT_EQ(pool->count().rejected, refused);
  EXPECT_EQ(taken + refused, 8000U);
}

TEST(ThreadPool, ItsThreadsTakeNoSignalsAndHaveItsName) {
  const auto pool = make_thread_pool({.threads = 1, .name = "a-name-that-is-too-long"});
  sigset_t mask;
  sigemptyset(&mask);
  char name[16] = {};
  ASSERT_TRUE(pool->post([&] {
    pthread_sigmask(SIG_BLOCK, nullptr, &mask);
    pthread_getname_np(pthread_self(), name, sizeof name);
  }));
  pool->close(in(20s));
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGALRM, SIGCHLD, SIGUSR1})
    EXPECT_EQ(sigismember(&mask, signal), 1) << signal;
  EXPECT_EQ(sigismember(&mask, SIGSEGV), 0) << "a fault of the thread itself is not hidden";
  EXPECT_STREQ(name, "a-name-that-is-");
  sigset_t mine;
  pthread_sigmask(SIG_BLOCK, nullptr, &mine);
  EXPECT_EQ(sigismember(&mine, SIGTERM), 0) << "the caller's mask is as it was";
}

TEST(ThreadPool, RefusesOptionsThatCannotHold) {
  EXPECT_THROW((void)make_thread_pool({.threads = 0}), holdfast::error);
  EXPECT_THROW((void)make_thread_pool({.queue = 0}), holdfast::error);
}

}  // namespace
