// One counter that hangs, is locked or fails does not stop the others.

#include <holdfast/sequence.hpp>

#include "sequence/refiller.hpp"
#include "support/eventually.hpp"
#include "support/failure_of.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

/// Counters in memory. A call with a name that begins with "hung" waits until `release`; a name
/// that begins with "locked" is busy in a call with others.
class partly_hung_store final : public block_store {
 public:
  std::vector<block_grant> allocate(std::span<const block_request> requests) override {
    {
      std::unique_lock lock(mutex_);
      if (std::ranges::any_of(requests, [](const block_request& request) {
            return request.name.starts_with("hung");
          })) {
        ++hung_calls_;
        changed_.notify_all();
        changed_.wait(lock, [this] { return released_; });
      }
      largest_call_ = std::max(largest_call_, requests.size());
    }
    std::vector<block_grant> grants;
    for (const auto& request : requests) {
      if (requests.size() > 1 && request.accepts_busy && request.name.starts_with("locked")) {
        grants.emplace_back();
        grants.back().busy = true;
      } else {
        grants.push_back(std::move(counters_->allocate({&request, 1}).at(0)));
      }
    }
    return grants;
  }
  std::string failure_domain(std::string_view name) const noexcept override {
    const auto slash = name.find('/');
    return slash == std::string_view::npos ? "" : std::string(name.substr(0, slash));
  }
  std::optional<counter_state> peek(std::string_view name) override {
    return counters_->peek(name);
  }
  counter_state ensure_at_least(std::string_view name, std::int64_t ordinal) override {
    return counters_->ensure_at_least(name, ordinal);
  }
  bool reset(std::string_view name, std::int64_t ordinal, counter_state expected) override {
    return counters_->reset(name, ordinal, expected);
  }
  bool give_back(std::string_view name, std::int64_t last_used, counter_state granted) override {
    return counters_->give_back(name, last_used, granted);
  }
  std::vector<named_counter> list(std::size_t limit, std::string_view after) override {
    return counters_->list(limit, after);
  }
  std::vector<std::string> unsafe_settings() override { return {}; }

  void await_hung_calls(std::uint64_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return hung_calls_ >= count; });
  }
  [[nodiscard]] std::uint64_t hung_calls() {
    const std::scoped_lock lock(mutex_);
    return hung_calls_;
  }
  void release() {
    const std::scoped_lock lock(mutex_);
    released_ = true;
    changed_.notify_all();
  }

 private:
  std::shared_ptr<block_store> counters_ = make_memory_block_store();
  std::mutex mutex_{};
  std::condition_variable changed_{};
  bool released_ = false;
  std::uint64_t hung_calls_ = 0;
  std::size_t largest_call_ = 0;
};

class SequenceIsolation : public ::testing::Test {
 protected:
  ~SequenceIsolation() override { store->release(); }

  std::shared_ptr<partly_hung_store> store = std::make_shared<partly_hung_store>();
  sequence_source source{store};
};

TEST_F(SequenceIsolation, AHungCounterDoesNotStopTheOthers) {
  auto hung = source.sequence("hung");
  auto other = source.sequence("other");
  EXPECT_EQ(hung.try_next(), std::nullopt);
  store->await_hung_calls(1);
  for (int i = 1; i <= 2000; ++i) ASSERT_EQ(other.next(steady::now() + 60s), i);
  EXPECT_EQ(hung.try_next(), std::nullopt) << "it hangs all the time";
  store->release();
  EXPECT_EQ(hung.next(steady::now() + 60s), 1);
}

/// As many as there are threads, but one.
TEST_F(SequenceIsolation, ManyHungCountersLeaveAThread) {
  std::vector<sequence> hung;
  for (std::size_t i = 0; i + 1 < detail::sequence::refiller::max_threads; ++i) {
    hung.push_back(source.sequence("hung" + std::to_string(i)));
    EXPECT_EQ(hung.back().try_next(), std::nullopt);
    store->await_hung_calls(i + 1);
  }
  auto other = source.sequence("other");
  for (int i = 1; i <= 200; ++i) ASSERT_EQ(other.next(steady::now() + 60s), i);
}

TEST_F(SequenceIsolation, ALockedCounterIsRequestedAloneAndTheOthersHaveTheirBlocks) {
  auto hung = source.sequence("hung");
  auto locked = source.sequence("locked");
  auto other = source.sequence("other");
  std::set<std::int64_t> drawn;
  for (int i = 0; i < 100; ++i) {
    (void)locked.try_next();
    (void)other.try_next();
    drawn.insert(locked.next(steady::now() + 60s));
    EXPECT_GT(other.next(steady::now() + 60s), 0);
  }
  EXPECT_EQ(drawn.size(), 100U);
  EXPECT_EQ(locked.stats().failures, 0U) << "busy is not a failure";
}

/// The counters of one machine that hangs take one thread, however many they are.
TEST_F(SequenceIsolation, AHungMachineTakesOneThread) {
  std::vector<sequence> hung;
  for (int i = 0; i < 40; ++i) hung.push_back(source.sequence("hung/" + std::to_string(i)));
  for (auto& each : hung) EXPECT_EQ(each.try_next(), std::nullopt);
  store->await_hung_calls(1);
  std::vector<sequence> others;
  for (int i = 0; i < 20; ++i) others.push_back(source.sequence("other/" + std::to_string(i)));
  for (int k = 1; k <= 100; ++k) {
    for (auto& each : others) ASSERT_EQ(each.next(steady::now() + 60s), k);
  }
  EXPECT_EQ(store->hung_calls(), 1U);
  store->release();
  for (auto& each : hung) EXPECT_EQ(each.next(steady::now() + 60s), 1);
}

TEST_F(SequenceIsolation, ManyThreadsOnManySequencesGetEveryIdOnce) {
  auto hung = source.sequence("hung");
  EXPECT_EQ(hung.try_next(), std::nullopt);
  store->await_hung_calls(1);
  std::vector<sequence> all;
  for (int i = 0; i < 8; ++i)
    all.push_back(source.sequence(i % 2 == 0 ? "locked" : "other", {.blocks = fixed_blocks{3}}));
  std::vector<std::vector<std::int64_t>> drawn(all.size());
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < all.size(); ++i)
      threads.emplace_back([&, i] {
        for (int k = 0; k < 500; ++k) drawn[i].push_back(all[i].next(steady::now() + 60s));
      });
  }
  for (const std::size_t parity : {0U, 1U}) {
    std::set<std::int64_t> ids;
    for (std::size_t i = parity; i < drawn.size(); i += 2)
      ids.insert(drawn[i].begin(), drawn[i].end());
    EXPECT_EQ(ids.size(), 2000U);
  }
}

}  // namespace
}  // namespace holdfast::test
