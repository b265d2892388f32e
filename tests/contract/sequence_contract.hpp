#pragma once

/// \file
/// The contract of a block store, as tests. Write a fixture with
/// `std::shared_ptr<holdfast::block_store> make()` that returns an empty store, and instantiate the
/// suite with it:
///
///     INSTANTIATE_TYPED_TEST_SUITE_P(mine, BlockStoreContract, my_fixture);

#include <holdfast/error.hpp>
#include <holdfast/sequence/block_store.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::test {

/// First and last ordinal of a block.
using ends = std::pair<std::int64_t, std::int64_t>;

template <class Fixture>
class BlockStoreContract : public ::testing::Test {
 protected:
  void SetUp() override { store_ = fixture_.make(); }

  /// The ends of the block that is granted; {0, -1} if it is empty.
  ends take(const std::string& name, std::int64_t count, std::int64_t limit = last_ordinal,
            bool cycle = false) {
    const block_request request{.name = name, .count = count, .limit = limit, .cycle = cycle};
    const auto grants = store_->allocate({&request, 1});
    EXPECT_EQ(grants.size(), 1U);
    const auto& block = grants.front().block;
    return block.has_next() ? ends{block.first(), block.last()} : ends{0, -1};
  }
  [[nodiscard]] std::int64_t last(const std::string& name) {
    const auto state = store_->peek(name);
    return state ? state->last : -1;
  }

  Fixture fixture_;
  std::shared_ptr<block_store> store_;
};

TYPED_TEST_SUITE_P(BlockStoreContract);

TYPED_TEST_P(BlockStoreContract, GrantsConsecutiveBlocks) {
  EXPECT_EQ(this->last("account.id"), -1);
  EXPECT_EQ(this->take("account.id", 20), (ends{1, 20}));
  EXPECT_EQ(this->take("account.id", 1), (ends{21, 21}));
  EXPECT_EQ(this->take("account.id", 1000), (ends{22, 1021}));
  EXPECT_EQ(this->last("account.id"), 1021);
}

TYPED_TEST_P(BlockStoreContract, GrantsManyAtOnceInTheOrderOfTheRequests) {
  (void)this->take("b", 5);
  const std::vector<block_request> requests{
      {.name = "c", .count = 3}, {.name = "a", .count = 1, .limit = 7}, {.name = "b", .count = 2}};
  const auto grants = this->store_->allocate(requests);
  ASSERT_EQ(grants.size(), 3U);
  EXPECT_EQ(grants[0].block.first(), 1);
  EXPECT_EQ(grants[0].block.last(), 3);
  EXPECT_EQ(grants[1].block.last(), 1);
  EXPECT_EQ(grants[2].block.first(), 6);
  EXPECT_EQ(grants[2].block.last(), 7);
}

TYPED_TEST_P(BlockStoreContract, ShortensTheLastBlock) {
  EXPECT_EQ(this->take("short", 20, 50), (ends{1, 20}));
  EXPECT_EQ(this->take("short", 20, 50), (ends{21, 40}));
  EXPECT_EQ(this->take("short", 20, 50), (ends{41, 50}));
  EXPECT_EQ(this->take("short", 20, 50), (ends{0, -1}));
  EXPECT_EQ(this->last("short"), 50);
  EXPECT_EQ(this->take("tiny", 20, 7), (ends{1, 7}));
  EXPECT_EQ(this->take("tiny", 20, 7), (ends{0, -1}));
}

TYPED_TEST_P(BlockStoreContract, StartsAgainWhenItCycles) {
  EXPECT_EQ(this->take("round", 4, 6, true), (ends{1, 4}));
  EXPECT_EQ(this->take("round", 4, 6, true), (ends{5, 6}));
  const auto before = this->store_->peek("round");
  EXPECT_EQ(this->take("round", 4, 6, true), (ends{1, 4}));
  const auto after = this->store_->peek("round");
  ASSERT_TRUE(before && after);
  EXPECT_EQ(after->epoch, before->epoch + 1);
  EXPECT_EQ(after->last, 4);
}

TYPED_TEST_P(BlockStoreContract, NeverOverflows) {
  EXPECT_EQ(this->store_->ensure_at_least("edge", last_ordinal - 5).last, last_ordinal - 5);
  EXPECT_EQ(this->take("edge", 3), (ends{last_ordinal - 4, last_ordinal - 2}));
  EXPECT_EQ(this->take("edge", largest_block), (ends{last_ordinal - 1, last_ordinal}));
  EXPECT_EQ(this->take("edge", 1), (ends{0, -1}));
  EXPECT_EQ(this->last("edge"), last_ordinal);
}

TYPED_TEST_P(BlockStoreContract, CountsExactlyAboveThePrecisionOfADouble) {
  constexpr std::int64_t odd = (std::int64_t{1} << 53U) + 1;
  EXPECT_EQ(this->store_->ensure_at_least("wide", odd).last, odd);
  EXPECT_EQ(this->take("wide", 2), (ends{odd + 1, odd + 2}));
  EXPECT_EQ(this->last("wide"), odd + 2);
}

TYPED_TEST_P(BlockStoreContract, RefusesInvalidRequests) {
  EXPECT_THROW(this->take("n", 0), error);
  EXPECT_THROW(this->take("n", -1), error);
  EXPECT_THROW(this->take("n", largest_block + 1), error);
  EXPECT_THROW(this->take("n", 1, 0), error);
  EXPECT_THROW(this->take("", 1), error);
  EXPECT_THROW(this->take("with space", 1), error);
  EXPECT_THROW(this->take("'; --", 1), error);
  EXPECT_THROW(this->take("\xC3\xA9", 1), error);
  EXPECT_THROW(this->take(std::string(129, 'n'), 1), error);
  EXPECT_EQ(this->take(std::string(128, 'n'), 1).second, 1);
  EXPECT_EQ(this->last("n"), -1);
}

TYPED_TEST_P(BlockStoreContract, ComparesNamesByteByByte) {
  EXPECT_EQ(this->take("abc", 5), (ends{1, 5}));
  EXPECT_EQ(this->take("ABC", 5), (ends{1, 5}));
  EXPECT_EQ(this->take("abc.", 5), (ends{1, 5}));
  EXPECT_EQ(this->take("abc", 5), (ends{6, 10}));
}

TYPED_TEST_P(BlockStoreContract, RaisesButNeverLowers) {
  EXPECT_EQ(this->store_->ensure_at_least("import", 1000).last, 1000);
  EXPECT_EQ(this->store_->ensure_at_least("import", 10).last, 1000);
  EXPECT_EQ(this->take("import", 5), (ends{1001, 1005}));
  EXPECT_EQ(this->store_->ensure_at_least("import", 1005).last, 1005);
}

TYPED_TEST_P(BlockStoreContract, ResetsOnlyTheExpectedState) {
  EXPECT_FALSE(this->store_->reset("r", 0, {}));
  (void)this->take("r", 10);
  const auto state = this->store_->peek("r");
  ASSERT_TRUE(state);
  EXPECT_FALSE(this->store_->reset("r", 0, {.last = state->last - 1, .epoch = state->epoch}));
  EXPECT_FALSE(this->store_->reset("r", 0, {.last = state->last, .epoch = state->epoch + 1}));
  EXPECT_TRUE(this->store_->reset("r", 3, *state));
  EXPECT_FALSE(this->store_->reset("r", 3, *state)) << "the epoch has changed";
  EXPECT_EQ(this->store_->peek("r"), (counter_state{.last = 3, .epoch = state->epoch + 1}));
  EXPECT_EQ(this->take("r", 2), (ends{4, 5}));
}

TYPED_TEST_P(BlockStoreContract, TakesBackOnlyTheLastBlock) {
  (void)this->take("g", 20);
  const auto granted = this->store_->peek("g");
  ASSERT_TRUE(granted);
  EXPECT_TRUE(this->store_->give_back("g", 7, *granted));
  EXPECT_EQ(this->take("g", 20), (ends{8, 27}));
  EXPECT_FALSE(this->store_->give_back("g", 7, *granted)) << "there is a later block";
  EXPECT_EQ(this->last("g"), 27);
  EXPECT_FALSE(this->store_->give_back("missing", 0, *granted));
}

TYPED_TEST_P(BlockStoreContract, ListsCountersInTheOrderOfTheirNames) {
  for (const char* name : {"b", "B", "a.1", "a"}) (void)this->take(name, 2);
  const auto page = this->store_->list(3);
  ASSERT_EQ(page.size(), 3U);
  EXPECT_EQ(page[0].name, "B");
  EXPECT_EQ(page[1].name, "a");
  EXPECT_EQ(page[2].name, "a.1");
  EXPECT_EQ(page[2].state.last, 2);
  const auto rest = this->store_->list(3, page.back().name);
  ASSERT_EQ(rest.size(), 1U);
  EXPECT_EQ(rest[0].name, "b");
}

/// All clients start at the same moment with an empty table. The counter is created once, and no
/// client gets an error.
TYPED_TEST_P(BlockStoreContract, ManyClientsCreateTheFirstCounterAtOnce) {
  constexpr int clients = 8;
  constexpr int blocks = 5;
  std::vector<std::vector<std::int64_t>> firsts(clients);
  std::atomic<bool> go{false};
  std::atomic<int> errors{0};
  {
    std::vector<std::jthread> threads;
    threads.reserve(clients);
    for (int i = 0; i < clients; ++i) {
      threads.emplace_back([&, i] {
        while (!go) std::this_thread::yield();
        for (int k = 0; k < blocks; ++k) {
          try {
            firsts[static_cast<std::size_t>(i)].push_back(this->take("race", 10).first);
          } catch (const error& e) {
            ++errors;
            ADD_FAILURE() << e.what();
          }
        }
      });
    }
    go = true;
  }
  EXPECT_EQ(errors, 0);
  std::vector<std::int64_t> all;
  for (const auto& own : firsts) all.insert(all.end(), own.begin(), own.end());
  std::sort(all.begin(), all.end());
  for (std::size_t i = 0; i < all.size(); ++i)
    EXPECT_EQ(all[i], static_cast<std::int64_t>(10 * i + 1));
  EXPECT_EQ(this->last("race"), clients * blocks * 10);
}

REGISTER_TYPED_TEST_SUITE_P(BlockStoreContract, GrantsConsecutiveBlocks,
                            GrantsManyAtOnceInTheOrderOfTheRequests, ShortensTheLastBlock,
                            StartsAgainWhenItCycles, NeverOverflows,
                            CountsExactlyAboveThePrecisionOfADouble, RefusesInvalidRequests,
                            ComparesNamesByteByByte, RaisesButNeverLowers,
                            ResetsOnlyTheExpectedState, TakesBackOnlyTheLastBlock,
                            ListsCountersInTheOrderOfTheirNames,
                            ManyClientsCreateTheFirstCounterAtOnce);

}  // namespace holdfast::test
