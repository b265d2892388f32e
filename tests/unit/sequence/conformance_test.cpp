// The behaviour of the published design: blocks of 20 ids, requested when the last one is used up.

#include <holdfast/sequence.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

/// Draws ids on several threads at once, and keeps them.
class drawing {
 public:
  template <class Generator>
  void draw(Generator& ids, int threads, int ids_per_thread) {
    std::vector<std::jthread> running;
    running.reserve(static_cast<std::size_t>(threads));
    for (int i = 0; i < threads; ++i) {
      running.emplace_back([&] {
        std::vector<std::int64_t> drawn;
        drawn.reserve(static_cast<std::size_t>(ids_per_thread));
        for (int k = 0; k < ids_per_thread; ++k) drawn.push_back(ids.next());
        EXPECT_TRUE(std::is_sorted(drawn.begin(), drawn.end()));
        const std::scoped_lock lock(mutex_);
        ids_.insert(drawn.begin(), drawn.end());
      });
    }
  }
  [[nodiscard]] std::size_t distinct() const { return ids_.size(); }

 private:
  std::mutex mutex_;
  std::set<std::int64_t> ids_;
};

/// With blocks of 20 and without prefetching, 300 ids leave the counter at exactly 300.
TEST(SequenceConformance, ThreeHundredIdsInBlocksOfTwenty) {
  const sequence_source source(make_memory_block_store());
  auto ids = source.sequence("account.id");
  drawing all;
  all.draw(ids, 1, 100);
  all.draw(ids, 5, 20);
  all.draw(ids, 10, 10);
  EXPECT_EQ(all.distinct(), 300U);
  EXPECT_EQ(ids.peek(), 300);
  EXPECT_EQ(ids.stats().refills, 15U);
}

TEST(SequenceConformance, BlocksOfOne) {
  const sequence_source source(make_memory_block_store());
  auto ids = source.sequence("single", {.blocks = fixed_blocks{1}});
  drawing all;
  all.draw(ids, 1, 40);
  all.draw(ids, 3, 20);
  EXPECT_EQ(all.distinct(), 100U);
  EXPECT_EQ(ids.peek(), 100);
}

TEST(SequenceConformance, TwoGeneratorsOfOneNameUseSixtyForFifty) {
  const sequence_source source(make_memory_block_store());
  auto first = source.sequence("shared", {.blocks = fixed_blocks{10}});
  auto second = source.sequence("shared", {.blocks = fixed_blocks{10}});
  drawing all;
  std::jthread concurrent([&] { all.draw(first, 5, 5); });
  all.draw(second, 5, 5);
  concurrent.join();
  EXPECT_EQ(all.distinct(), 50U);
  EXPECT_EQ(first.peek(), 60);
}

/// `peek` is what the store has allocated to all processes, `position` what this object gave out.
TEST(SequenceConformance, PeekIsTheLastAllocatedId) {
  const sequence_source source(make_memory_block_store());
  auto ids = source.sequence("peeked");
  EXPECT_EQ(ids.peek(), std::nullopt);
  EXPECT_EQ(ids.position(), std::nullopt);
  EXPECT_EQ(ids.next(), 1);
  EXPECT_EQ(ids.peek(), 20);
  EXPECT_EQ(ids.position(), 1);
  EXPECT_EQ(ids.next(), 2);
  EXPECT_EQ(ids.position(), 2);
  auto other = source.sequence("peeked");
  EXPECT_EQ(other.next(), 21);
  EXPECT_EQ(ids.peek(), 40);
  EXPECT_EQ(ids.next(), 3);
}

}  // namespace
}  // namespace holdfast::test
