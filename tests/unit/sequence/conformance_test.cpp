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

/// Draws ids on many threads at once, and keeps them.
class drawing {
 public:
  template <class Generator>
  void draw(Generator& from, int threads, int each) {
    std::vector<std::jthread> running;
    running.reserve(static_cast<std::size_t>(threads));
    for (int i = 0; i < threads; ++i) {
      running.emplace_back([&] {
        std::vector<std::int64_t> mine;
        mine.reserve(static_cast<std::size_t>(each));
        for (int k = 0; k < each; ++k) mine.push_back(from.next());
        EXPECT_TRUE(std::is_sorted(mine.begin(), mine.end()));
        const std::scoped_lock lock(mutex_);
        drawn_ += mine.size();
        ids_.insert(mine.begin(), mine.end());
      });
    }
  }
  [[nodiscard]] std::size_t distinct() const { return ids_.size(); }
  [[nodiscard]] std::size_t drawn() const { return drawn_; }

 private:
  std::mutex mutex_;
  std::set<std::int64_t> ids_;
  std::size_t drawn_ = 0;
};

/// The numbers of the seed: with blocks of 20 and nothing fetched ahead, 300 ids leave the counter at exactly 300.
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
  auto one = source.sequence("shared", {.blocks = fixed_blocks{10}});
  auto other = source.sequence("shared", {.blocks = fixed_blocks{10}});
  drawing all;
  std::jthread beside([&] { all.draw(one, 5, 5); });
  all.draw(other, 5, 5);
  beside.join();
  EXPECT_EQ(all.distinct(), 50U);
  EXPECT_EQ(one.peek(), 60);
}

/// What peek says is what the store has allocated, to anybody; what was given out here is the position.
TEST(SequenceConformance, PeekIsTheLastIdAllocatedToAnybody) {
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
