#pragma once

/// \file
/// The contracts of a block store and of the sequences on it, as tests. Write a fixture with
/// `std::shared_ptr<holdfast::block_store> make()` that returns an empty store, and instantiate the
/// suite with it:
///
///     INSTANTIATE_TYPED_TEST_SUITE_P(mine, BlockStoreContract, my_fixture);

#include <holdfast/error.hpp>
#include <holdfast/sequence.hpp>
#include <holdfast/sequence/block_store.hpp>

#include "support/failure_of.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
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

// ---- sequence() itself, as several processes use it.

/// The contract of sequences, as tests. Write a fixture with
/// `holdfast::sequence sequence(std::string_view name, sequence_options options)` that opens one as
/// another process would, on the same counters each time.
template <class Fixture>
class SequenceContract : public ::testing::Test {
 protected:
  [[nodiscard]] holdfast::sequence open(std::string_view name, sequence_options options = {}) {
    options.wait = std::chrono::minutes(1);
    return fixture_.sequence(name, std::move(options));
  }

  Fixture fixture_;
};

TYPED_TEST_SUITE_P(SequenceContract);

TYPED_TEST_P(SequenceContract, GivesEveryIdOnceAndInOrder) {
  auto first = this->open("account.id");
  auto second = this->open("account.id", {.blocks = adaptive_blocks{.smallest = 3, .largest = 50}});
  std::set<std::int64_t> ids;
  std::int64_t before = 0;
  for (int i = 0; i < 100; ++i) {
    const auto id = first.next();
    EXPECT_GT(id, before);
    before = id;
    EXPECT_TRUE(ids.insert(id).second);
    EXPECT_TRUE(ids.insert(second.next()).second);
  }
  auto block = second.next_n(30);
  while (block.has_next()) EXPECT_TRUE(ids.insert(block.next()).second);
  auto handle = first.handle();
  for (int i = 0; i < 30; ++i) EXPECT_TRUE(ids.insert(handle.next()).second);
  EXPECT_LE(*ids.rbegin(), first.peek().value_or(0)) << "no id in use is beyond peek";
}

TYPED_TEST_P(SequenceContract, IsRaisedAboveImportedIds) {
  auto ids = this->open("import");
  const auto first = ids.next();
  const auto imported = first + 100'000;
  EXPECT_GE(ids.ensure_at_least(imported), imported);
  EXPECT_GE(ids.peek(), imported);
  EXPECT_GT(this->open("import").next(), imported);
}

/// Both users draw until nothing is left: every id comes once, and the last one is the limit.
TYPED_TEST_P(SequenceContract, EndsAtItsLimit) {
  std::string name = "limited";
  std::int64_t limit = 111;
  // clock_fence begins at the time, a million ids in a second. A slow machine tries again.
  for (std::int64_t ahead = 500'000; this->open("probe").next() > 1000'000'000; ahead *= 2) {
    limit = this->open("probe").next() + ahead;
    name += "again";
    if (failure_of([&] {
          (void)this->open(name, {.max = limit}).next();
          throw error(errc::duplicate, "there are ids");
        }).code() == errc::duplicate)
      break;
  }
  auto first = this->open(name, {.max = limit});
  auto second = this->open(name, {.max = limit});
  std::set<std::int64_t> ids;
  for (int i = 0; i < 5; ++i) ids.insert(second.next());
  if (limit > 111) (void)first.ensure_at_least(limit - 111);
  const auto draw_all = [&](sequence& drawn) {
    return failure_of([&] {
      for (int i = 0; i < 1000; ++i) ASSERT_TRUE(ids.insert(drawn.next()).second);
    });
  };
  const auto ended = draw_all(first);
  EXPECT_EQ(ended.code(), errc::out_of_range) << ended.what();
  EXPECT_EQ(draw_all(second).code(), errc::out_of_range);
  EXPECT_EQ(ids.size(), limit > 111 ? 131U : 111U);
  EXPECT_EQ(*ids.rbegin(), limit);
  EXPECT_EQ(first.peek(), limit);
  EXPECT_EQ(failure_of([&] { (void)first.next_n(1); }).code(), errc::out_of_range);
  EXPECT_EQ(failure_of([&] { (void)first.ensure_at_least(limit + 1); }).code(), errc::out_of_range);
}

TYPED_TEST_P(SequenceContract, RefusesAnotherDefinition) {
  auto ids = this->open("defined", {.start = 10, .increment = 5});
  const auto first = ids.next();
  EXPECT_EQ(first % 5, 0);
  for (const auto& options :
       {sequence_options{}, sequence_options{.start = 10}, sequence_options{.increment = 5},
        sequence_options{.start = 10, .increment = 5, .max = 4'000'000'000'000'000'000}}) {
    auto other = this->open("defined", options);
    for (const auto& refused :
         {failure_of([&] { (void)other.next(); }), failure_of([&] { (void)other.peek(); }),
          failure_of([&] { (void)other.ensure_at_least(first + 500); })}) {
      EXPECT_EQ(refused.code(), errc::invalid_argument) << refused.what();
      EXPECT_NE(std::string(refused.what()).find("start=10 increment=5"), std::string::npos)
          << refused.what();
    }
  }
  for (int i = 0; i < 50; ++i) EXPECT_EQ(ids.next() % 5, 0);
  EXPECT_EQ(this->open("defined", {.start = 10, .increment = 5}).next() % 5, 0);
}

TYPED_TEST_P(SequenceContract, ChangesItsDefinitionOnPurpose) {
  auto before = this->open("changed", {.increment = 10});
  std::set<std::int64_t> ids;
  for (int i = 0; i < 25; ++i) ids.insert(before.next());
  const auto peeked = before.peek().value_or(0);
  auto after = this->open("changed", {.start = peeked + 5, .increment = 3});
  const auto definition = after.definition();
  ASSERT_TRUE(definition);
  after.redefine(*definition);
  for (int i = 0; i < 50; ++i) {
    const auto id = after.next();
    EXPECT_GT(id, peeked);
    EXPECT_TRUE(ids.insert(id).second);
  }
  const auto refused = failure_of([&] {
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(ids.insert(before.next()).second);
  });
  EXPECT_EQ(refused.code(), errc::invalid_argument) << refused.what();
  EXPECT_EQ(failure_of([&] { after.redefine(*definition); }).code(), errc::duplicate);
}

TYPED_TEST_P(SequenceContract, ManySequencesAtOnce) {
  std::vector<holdfast::sequence> all;
  for (int i = 0; i < 12; ++i) all.push_back(this->open("s" + std::to_string(i % 6)));
  std::vector<std::vector<std::int64_t>> drawn(all.size());
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < all.size(); ++i)
      threads.emplace_back([&, i] {
        for (int k = 0; k < 60; ++k) drawn[i].push_back(all[i].next());
      });
  }
  for (std::size_t i = 0; i < 6; ++i) {
    std::set<std::int64_t> ids(drawn[i].begin(), drawn[i].end());
    ids.insert(drawn[i + 6].begin(), drawn[i + 6].end());
    EXPECT_EQ(ids.size(), 120U);
  }
}

REGISTER_TYPED_TEST_SUITE_P(SequenceContract, GivesEveryIdOnceAndInOrder, IsRaisedAboveImportedIds,
                            EndsAtItsLimit, RefusesAnotherDefinition, ChangesItsDefinitionOnPurpose,
                            ManySequencesAtOnce);

}  // namespace holdfast::test
