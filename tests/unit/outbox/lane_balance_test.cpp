// Workers that share lanes: an outbox in memory, and a virtual clock.

#include <holdfast/outbox/memory.hpp>
#include <holdfast/worker.hpp>

#include "outbox/worker/core.hpp"
#include "support/manual_executor.hpp"
#include "support/virtual_clock.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

namespace {

using namespace std::chrono_literals;
using holdfast::delivery;
using holdfast::outcome;
using holdfast::worker_options;
using holdfast::detail::outbox::worker_core;
using holdfast::test::manual_executor;
using holdfast::test::virtual_clock;

class LaneBalance : public ::testing::Test {
 protected:
  static constexpr std::size_t lanes = 8;
  std::shared_ptr<virtual_clock> clock_ = std::make_shared<virtual_clock>();
  std::shared_ptr<manual_executor> executor_ = std::make_shared<manual_executor>(clock_);
  holdfast::outbox outbox_{holdfast::make_memory_outbox({.lanes = lanes, .clock = clock_}),
                           {.lanes = lanes}};
  std::vector<std::shared_ptr<worker_core>> workers_{};
  std::map<std::string, std::vector<int>> seen_{};

  void TearDown() override { executor_->clear(); }

  void join() {
    worker_options options;
    options.clock = clock_;
    options.executor = executor_;
    workers_.push_back(worker_core::create(
        outbox_,
        [this](const delivery& d) {
          seen_[d.event().key].push_back(std::stoi(d.event().payload));
          return outcome::done();
        },
        options));
  }
  /// What the threads of all workers do in a quarter of a second.
  void step() {
    for (const auto& worker : workers_) {
      worker->renew_leases();
      for (std::size_t lane = 0; lane < lanes; ++lane) (void)worker->poll_lane(lane);
      executor_->run_all();
    }
    clock_->advance(250ms);
  }
  void pass(std::chrono::milliseconds time) {
    for (auto end = clock_->steady() + time; clock_->steady() < end;) step();
  }
  std::vector<std::size_t> shares() const {
    std::vector<std::size_t> counts;
    for (const auto& worker : workers_) counts.push_back(worker->health().locks);
    return counts;
  }
  std::size_t largest() const { return std::ranges::max(shares()); }
  std::size_t total() const {
    const auto counts = shares();
    return std::accumulate(counts.begin(), counts.end(), std::size_t{0});
  }
};

TEST_F(LaneBalance, WorkersThatJoinGetTheirShare) {
  for (int i = 0; i < 3; ++i) join();
  pass(5s);
  EXPECT_EQ(total(), lanes);
  EXPECT_LE(largest(), 3U);
  join();
  pass(5s);
  EXPECT_EQ(total(), lanes);
  EXPECT_EQ(largest(), 2U);
}

TEST_F(LaneBalance, LanesOfAWorkerThatDiedAreSharedAfterItsLockTime) {
  for (int i = 0; i < 4; ++i) join();
  pass(5s);
  ASSERT_EQ(largest(), 2U);
  workers_.erase(workers_.begin() + 1);  // kill -9: it releases nothing
  pass(9s);
  EXPECT_EQ(total(), 6U) << "its locks hold";
  pass(5s);
  EXPECT_EQ(total(), lanes);
  EXPECT_LE(largest(), 3U);
}

TEST_F(LaneBalance, LanesOfAWorkerThatEndsAreSharedSoon) {
  for (int i = 0; i < 3; ++i) join();
  pass(5s);
  workers_[0]->release_locks();
  workers_.erase(workers_.begin());
  pass(4s);
  EXPECT_EQ(total(), lanes);
  EXPECT_EQ(largest(), 4U);
}

TEST_F(LaneBalance, MoreWorkersThanLanes) {
  for (int i = 0; i < 11; ++i) join();
  pass(8s);
  EXPECT_EQ(total(), lanes);
  EXPECT_EQ(largest(), 1U);
}

/// A worker that announces itself and claims nothing must not keep its lanes from the others.
TEST_F(LaneBalance, ALaneThatStaysFreeIsTaken) {
  join();
  pass(3s);
  ASSERT_EQ(total(), lanes);
  const auto end = clock_->steady() + 40s;
  while (clock_->steady() < end) {
    (void)outbox_.backend()->announce("hangs", 10s);
    step();
  }
  EXPECT_EQ(total(), lanes);
}

TEST_F(LaneBalance, OrderIsKeptWhenLanesMove) {
  int published = 0;
  const auto publish = [&] {
    for (int key = 0; key < 32; ++key)
      outbox_.publish(
          {.type = "t", .key = "k" + std::to_string(key), .payload = std::to_string(published)});
    ++published;
  };
  for (int round = 0; round < 120; ++round) {
    if (round % 20 == 0 && workers_.size() < 5) join();
    if (round % 30 == 29) workers_.erase(workers_.begin());
    if (workers_.empty()) join();
    publish();
    step();
  }
  pass(60s);
  EXPECT_EQ(outbox_.admin().stats().events, 0U);
  std::vector<int> expected(static_cast<std::size_t>(published));
  std::iota(expected.begin(), expected.end(), 0);
  ASSERT_EQ(seen_.size(), 32U);
  for (const auto& [key, numbers] : seen_) EXPECT_EQ(numbers, expected) << key;
}

}  // namespace
