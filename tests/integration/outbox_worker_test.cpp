// Workers on a real Redis: what the tests on the model cannot show.

#include <holdfast/database.hpp>
#include <holdfast/outbox/effect.hpp>
#include <holdfast/outbox/relay.hpp>
#include <holdfast/worker.hpp>

#include "support/eventually.hpp"
#include "support/redis_server.hpp"
#include "support/running_worker.hpp"
#include "support/shared_server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;
using holdfast::delivery;
using holdfast::outcome;
using holdfast::worker;
using holdfast::worker_options;
using holdfast::test::eventually;
using holdfast::test::redis_server;
using holdfast::test::running_worker;
using holdfast::test::shared_server;

class OutboxWorker : public ::testing::Test {
 protected:
  const holdfast::test::redis_endpoint& redis_ = shared_server<redis_server>();
  std::string prefix_ = "{" + redis_.unique_prefix("worker") + "}";

  holdfast::outbox open(holdfast::outbox_options options = {}) const {
    options.prefix = prefix_;
    return holdfast::open(redis_.url()).outbox(std::move(options));
  }
};

TEST_F(OutboxWorker, KeepsOrderPerKeyOverSeveralWorkers) {
  constexpr int keys = 60;
  constexpr int each = 25;
  const auto box = open({.lanes = 2});
  for (int i = 0; i < each; ++i) {
    std::vector<holdfast::event> some;
    for (int k = 0; k < keys; ++k)
      some.push_back({.type = "t", .key = "k" + std::to_string(k), .payload = std::to_string(i)});
    for (const auto& receipt : box.publish_all(std::move(some))) ASSERT_TRUE(receipt.safe());
  }
  std::mutex mutex;
  std::map<std::string, std::vector<int>> firsts;
  std::mt19937 random(11);
  const auto handler = [&](const delivery& d) {
    const std::scoped_lock lock(mutex);
    if (d.deliveries() == 1) firsts[d.event().key].push_back(std::stoi(d.event().payload));
    return random() % 20 == 0 ? outcome::retry("at random") : outcome::done();
  };
  worker_options how{.concurrency = 2, .compete = true};
  how.handling.backoff = {.first = 1ms, .longest = 2ms};
  how.handling.max_attempts = 0;
  std::vector<std::unique_ptr<worker>> workers;
  std::vector<std::unique_ptr<running_worker>> runs;
  for (int i = 0; i < 4; ++i) {
    workers.push_back(std::make_unique<worker>(open({.lanes = 2}), handler, how));
    runs.push_back(std::make_unique<running_worker>(*workers.back()));
  }
  EXPECT_TRUE(eventually([&] { return box.admin().stats().events == 0; }, 120s));
  for (auto& one : runs) EXPECT_EQ(one->stop().still_running, 0U);
  ASSERT_EQ(firsts.size(), static_cast<std::size_t>(keys));
  for (const auto& [key, numbers] : firsts) {
    ASSERT_EQ(numbers.size(), static_cast<std::size_t>(each)) << key;
    for (int i = 0; i < each; ++i) ASSERT_EQ(numbers[static_cast<std::size_t>(i)], i) << key;
  }
}

TEST_F(OutboxWorker, WorkersShareTheLanesEvenly) {
  constexpr std::size_t lanes = 8;
  const auto handler = [](const delivery&) { return outcome::done(); };
  std::vector<std::unique_ptr<worker>> workers;
  std::vector<std::unique_ptr<running_worker>> runs;
  const auto join = [&] {
    workers.push_back(
        std::make_unique<worker>(open({.lanes = lanes}), handler, worker_options{.lock_time = 2s}));
    runs.push_back(std::make_unique<running_worker>(*workers.back()));
  };
  const auto all_hold = [&](std::size_t least, std::size_t most) {
    return eventually(
        [&] {
          std::size_t sum = 0;
          bool even = true;
          for (const auto& one : workers) {
            const auto held = one->health().locks;
            sum += held;
            even = even && held >= least && held <= most;
          }
          return even && sum == lanes;
        },
        60s);
  };
  for (int i = 0; i < 3; ++i) join();
  EXPECT_TRUE(all_hold(2, 3));
  join();
  EXPECT_TRUE(all_hold(2, 2));
  const auto box = open({.lanes = lanes});
  for (int i = 0; i < 200; ++i) box.publish({.type = "t", .key = "k" + std::to_string(i % 40)});
  EXPECT_TRUE(eventually([&] { return box.admin().stats().events == 0; }, 60s));
  runs.pop_back();  // it stops, and releases its lanes
  workers.pop_back();
  EXPECT_TRUE(all_hold(2, 3));
}

TEST_F(OutboxWorker, WakesAtOnceAndStopsSoon) {
  const auto box = open();
  std::atomic<int> calls = 0;
  worker with(box, [&](const delivery&) { return ++calls, outcome::done(); },
              {.lock_time = 10min, .idle = 5min});
  running_worker one(with);
  for (int i = 1; i <= 3; ++i) {
    std::this_thread::sleep_for(20ms);  // it waits by now, most of the time
    box.publish({.type = "t"});
    ASSERT_TRUE(eventually([&] { return calls == i; }, 60s));
  }
  const auto began = std::chrono::steady_clock::now();
  one.stop();
  EXPECT_LT(std::chrono::steady_clock::now() - began, 60s);
}

TEST_F(OutboxWorker, StopsSoonWhenTheServerStandsStill) {
  redis_server server({.durable = false});
  const auto box = holdfast::open(server.url(), {.statement_timeout = 1s}).outbox({.lanes = 32});
  std::atomic<int> calls = 0;
  worker with(box, [&](const delivery&) { return ++calls, outcome::done(); },
              {.idle = 100ms, .stop_within = 1s});
  running_worker one(with);
  box.publish({.type = "t"});
  ASSERT_TRUE(eventually([&] { return calls == 1; }));
  server.pause();
  const auto began = std::chrono::steady_clock::now();
  one.stop();
  EXPECT_LT(std::chrono::steady_clock::now() - began, 25s)
      << "32 lanes were waited for, one after the other";
}

TEST_F(OutboxWorker, TakesOverFromOneThatDied) {
  const auto box = open();
  box.publish({.type = "t"});
  // A worker that took the lock and the event, and was never heard of again.
  ASSERT_TRUE(box.lock(0, "dead", 2s).held);
  const auto taken = box.claim({.lease = 300ms, .owner = "dead"});
  ASSERT_EQ(taken.events.size(), 1U);
  std::atomic<std::uint32_t> deliveries = 0;
  std::atomic<holdfast::fence> fence = 0;
  worker with(box,
              [&](const delivery& d) {
                fence = d.fence();
                deliveries = d.deliveries();
                return outcome::done();
              },
              {.idle = 50ms});
  running_worker one(with);
  EXPECT_TRUE(eventually([&] { return deliveries == 2; }));
  one.stop();
  EXPECT_GT(fence, taken.fence);
  EXPECT_FALSE(box.ack(taken.fence, taken.events[0])) << "the dead one comes back, and is refused";
}

TEST_F(OutboxWorker, AppliesAnEffectOnce) {
  const auto box = open();
  const auto balance = box.key_of("account-7", "balance");
  box.publish({.type = "paid", .key = "account-7"});
  int tries = 0;
  worker_options how{.concurrency = 1};
  how.handling.backoff = {.first = 1ms, .longest = 1ms};
  std::stop_source enough;
  worker with(
      box,
      [&](const delivery& d) {
        const auto done =
            holdfast::effect_once(d, {{.action = holdfast::commit_write::kind::add,
                                       .key = d.outbox().key_of(d.claimed(), "balance"),
                                       .number = 5}});
        EXPECT_TRUE(done.is_done()) << done.reason();
        // The effect is there, but the handler fails after it: the event comes again.
        if (++tries < 4) return outcome::retry("after its effect");
        enough.request_stop();
        return done;
      },
      how);
  with.run(enough.get_token());
  EXPECT_EQ(tries, 4);
  EXPECT_EQ(redis_.run({"GET", balance}), "5");
}

TEST_F(OutboxWorker, RelaysToAStream) {
  const auto box = open();
  const auto stream = prefix_ + ":stream";
  const auto id =
      box.publish({.type = "ticket.created", .key = "k", .payload = R"({"seat":12})"}).id;
  worker with(box,
              holdfast::relay::redis_stream(holdfast::redis::client(redis_.url()), stream, 100));
  EXPECT_EQ(with.run_until_empty().did.done, 1U);
  const auto entries = redis_.run({"XRANGE", stream, "-", "+"});
  EXPECT_THAT(entries, ::testing::HasSubstr(id));
  EXPECT_THAT(entries, ::testing::HasSubstr("ticket.created"));
  EXPECT_THAT(entries, ::testing::HasSubstr(R"("payload":{"seat":12})"));
}

TEST_F(OutboxWorker, WaitsOutAServerThatIsGone) {
  redis_server server;
  const auto box = holdfast::open(server.url()).outbox();
  std::atomic<int> calls = 0;
  worker with(box, [&](const delivery&) { return ++calls, outcome::done(); }, {.idle = 50ms});
  running_worker one(with);
  box.publish({.type = "t"});
  ASSERT_TRUE(eventually([&] { return calls == 1; }));
  server.kill9();
  ASSERT_TRUE(eventually([&] { return !with.health().available; }));
  server.start();
  ASSERT_TRUE(eventually([&] {
    try {
      box.publish({.type = "t"});
      return true;
    } catch (const holdfast::error&) {
      return false;
    }
  }));
  EXPECT_TRUE(eventually([&] { return calls >= 2; }));
  EXPECT_TRUE(eventually([&] { return with.health().available; }));
  one.stop();
}

}  // namespace
