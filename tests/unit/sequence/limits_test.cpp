// Options, limits, resets and block sizes of sequences.

#include <holdfast/sequence.hpp>

#include "scripted_store.hpp"
#include "sequence/block_sizing.hpp"
#include "sequence/id_range.hpp"
#include "support/failure_of.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;
using limits = std::numeric_limits<std::int64_t>;

errc refused(const sequence_options& options) {
  const sequence_source source(make_memory_block_store());
  return failure_of([&] { (void)source.sequence("n", options); }).code();
}

TEST(SequenceLimits, InvalidOptionsAreRefused) {
  EXPECT_EQ(refused({.blocks = fixed_blocks{0}}), errc::invalid_argument)
      << "the published design repeats one id without end";
  EXPECT_EQ(refused({.blocks = fixed_blocks{-1}}), errc::invalid_argument)
      << "the published design goes back over ids in use";
  EXPECT_EQ(refused({.blocks = fixed_blocks{largest_block + 1}}), errc::invalid_argument);
  EXPECT_EQ(refused({.blocks = fixed_blocks{20}, .max = 10}), errc::invalid_argument);
  EXPECT_EQ(refused({.blocks = adaptive_blocks{.smallest = 0}}), errc::invalid_argument);
  EXPECT_EQ(refused({.blocks = adaptive_blocks{.smallest = 10, .largest = 5}}),
            errc::invalid_argument);
  EXPECT_EQ(refused({.blocks = adaptive_blocks{.target = 0ms}}), errc::invalid_argument);
  EXPECT_EQ(refused({.increment = 0}), errc::invalid_argument);
  EXPECT_EQ(refused({.start = 5, .max = 4}), errc::invalid_argument);
  EXPECT_EQ(refused({.start = 5, .min = 6}), errc::invalid_argument);
  EXPECT_EQ(refused({.min = 3, .max = 2}), errc::invalid_argument);
  EXPECT_EQ(refused({.wait = -1ms}), errc::invalid_argument);
  EXPECT_EQ(refused({.low_water = 2.0}), errc::invalid_argument);
  const sequence_source source(make_memory_block_store());
  EXPECT_EQ(failure_of([&] { (void)source.sequence("bad name"); }).code(), errc::invalid_argument);
  EXPECT_EQ(
      failure_of([] { const sequence_source invalid(std::shared_ptr<block_store>{}); }).code(),
      errc::invalid_argument);
}

std::vector<std::int64_t> all_of(sequence& ids) {
  std::vector<std::int64_t> drawn;
  try {
    for (;;) drawn.push_back(ids.next());
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::out_of_range) << e.what();
  }
  return drawn;
}

TEST(SequenceLimits, UpDownAndInSteps) {
  const sequence_source source(make_memory_block_store());
  auto up = source.sequence("up", {.blocks = fixed_blocks{3}, .max = 7});
  EXPECT_EQ(all_of(up), (std::vector<std::int64_t>{1, 2, 3, 4, 5, 6, 7}));
  auto tens =
      source.sequence("tens", {.blocks = fixed_blocks{2}, .start = 10, .increment = 10, .max = 55});
  EXPECT_EQ(all_of(tens), (std::vector<std::int64_t>{10, 20, 30, 40, 50}));
  auto down =
      source.sequence("down", {.blocks = fixed_blocks{2}, .start = 3, .increment = -2, .min = -4});
  EXPECT_EQ(all_of(down), (std::vector<std::int64_t>{3, 1, -1, -3}));
  EXPECT_EQ(down.peek(), -3);
  EXPECT_EQ(down.position(), -3);
}

TEST(SequenceLimits, TheEndsOfTheRangeAreReachedAndNotPassed) {
  const sequence_source source(make_memory_block_store());
  auto top = source.sequence("top", {.blocks = fixed_blocks{2}, .start = limits::max() - 2});
  EXPECT_EQ(all_of(top),
            (std::vector<std::int64_t>{limits::max() - 2, limits::max() - 1, limits::max()}));
  auto bottom = source.sequence(
      "bottom", {.blocks = fixed_blocks{2}, .start = limits::min() + 1, .increment = -1});
  EXPECT_EQ(all_of(bottom), (std::vector<std::int64_t>{limits::min() + 1, limits::min()}));
  auto wide = source.sequence(
      "wide", {.blocks = fixed_blocks{1}, .start = limits::min(), .increment = limits::max()});
  EXPECT_EQ(all_of(wide), (std::vector<std::int64_t>{limits::min(), -1, limits::max() - 1}));
  auto last = source.sequence("last", {.blocks = fixed_blocks{4}});
  source.store().ensure_at_least("last", last_ordinal - 3);
  EXPECT_EQ(all_of(last),
            (std::vector<std::int64_t>{limits::max() - 2, limits::max() - 1, limits::max()}));
}

TEST(SequenceLimits, ItBeginsAgainWhenItCycles) {
  const sequence_source source(make_memory_block_store());
  auto ids =
      source.sequence("round", {.blocks = fixed_blocks{2}, .start = 5, .max = 9, .cycle = true});
  for (int lap = 0; lap < 3; ++lap) {
    for (std::int64_t i = 5; i <= 9; ++i) EXPECT_EQ(ids.next(), i);
  }
  EXPECT_EQ(failure_of([&] { (void)ids.next_n(6); }).code(), errc::out_of_range);
}

TEST(SequenceLimits, LowWaterIsReportedOnce) {
  std::vector<low_water_report> reports;
  const sequence_source source(make_memory_block_store());
  auto ids = source.sequence("low", {.blocks = fixed_blocks{10},
                                     .max = 100,
                                     .low_water = 0.25,
                                     .on_low_water = [&](const low_water_report& report) {
                                       reports.push_back(report);
                                       throw 1;  // NOLINT: dropped by the refiller
                                     }});
  EXPECT_EQ(all_of(ids).size(), 100U);
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_EQ(reports[0].name, "low");
  EXPECT_EQ(reports[0].remaining, 20U);
  EXPECT_DOUBLE_EQ(reports[0].remaining_fraction, 0.2);
}

TEST(SequenceLimits, EnsuredIdsAreNotGrantedAgain) {
  const sequence_source source(make_memory_block_store());
  auto ids = source.sequence("import", {.start = 10, .increment = 5});
  EXPECT_EQ(ids.ensure_at_least(3), std::nullopt) << "nothing was allocated";
  EXPECT_EQ(ids.ensure_at_least(22), 20);
  EXPECT_EQ(ids.next(), 25);
  EXPECT_EQ(ids.ensure_at_least(11), ids.peek());
  EXPECT_EQ(ids.next(), 30) << "an existing lease stays valid";
  auto small = source.sequence("small", {.max = 100});
  EXPECT_EQ(failure_of([&] { (void)small.ensure_at_least(101); }).code(), errc::out_of_range);
}

TEST(SequenceLimits, AResetNeedsTheStateOfTheCounter) {
  const sequence_source source(make_memory_block_store());
  auto ids = source.sequence("again");
  auto other = source.sequence("again");
  for (int i = 1; i <= 25; ++i) EXPECT_EQ(ids.next(), i);
  EXPECT_EQ(other.next(), 41);
  const auto state = ids.counter();
  EXPECT_EQ(failure_of([&] { ids.reset_unsafe(1, {.last = 3, .epoch = state.epoch}); }).code(),
            errc::duplicate);
  EXPECT_EQ(failure_of([&] { ids.reset_unsafe(0, state); }).code(), errc::invalid_argument);
  ids.reset_unsafe(101, state);
  EXPECT_EQ(failure_of([&] { ids.reset_unsafe(101, state); }).code(), errc::duplicate)
      << "the epoch has moved on";
  EXPECT_EQ(ids.next(), 101);
  EXPECT_EQ(other.next(), 42) << "existing leases stay valid";
  ids.reset_unsafe(1, ids.counter());
  EXPECT_EQ(ids.next(), 1) << "also backwards";
  EXPECT_EQ(ids.next(), 2);
  EXPECT_EQ(ids.position(), 2);
  for (int i = 43; i <= 60; ++i) EXPECT_EQ(other.next(), i);
  EXPECT_EQ(other.next(), 21) << "a new epoch does not mean that the store forgot";
}

TEST(SequenceLimits, UnusedIdsGoBackIfNoBlockFollowed) {
  const sequence_source source(make_memory_block_store());
  auto ids = source.sequence("back", {.give_back = true});
  for (int i = 1; i <= 7; ++i) EXPECT_EQ(ids.next(), i);
  const auto report = ids.close(steady::now() + 10s);
  EXPECT_TRUE(report.given_back);
  EXPECT_EQ(report.unused, 13U);
  auto next = source.sequence("back", {.give_back = true});
  EXPECT_EQ(next.peek(), 7);
  EXPECT_EQ(next.next(), 8);
  auto other = source.sequence("back");
  EXPECT_EQ(other.next(), 28);
  EXPECT_FALSE(next.close(steady::now() + 10s).given_back) << "there is a later block";
  EXPECT_EQ(other.peek(), 47);
}

TEST(SequenceLimits, CloseDoesNotThrowWhatTheStoreThrows) {
  const auto store = std::make_shared<scripted_store>();
  store->on_give_back(
      [] { throw 7; });  // NOLINT(hicpp-exception-baseclass): a store of the user may
  const sequence_source source(store);
  auto ids = source.sequence("thrown", {.give_back = true});
  EXPECT_EQ(ids.next(), 1);
  const auto report = ids.close(steady::now() + 10s);
  EXPECT_FALSE(report.given_back);
  EXPECT_EQ(report.unused, 19U);
}

TEST(SequenceLimits, InvalidatedIdsAreNotUsed) {
  const sequence_source source(make_memory_block_store());
  auto ids = source.sequence("restored");
  EXPECT_EQ(ids.next(), 1);
  ids.invalidate();
  EXPECT_EQ(ids.position(), 1);
  EXPECT_EQ(ids.next(), 21);
}

TEST(SequenceBlock, GivesEachNumberOnce) {
  sequence_block block(5, 11, 3);
  EXPECT_EQ(block.size(), 3U);
  EXPECT_EQ(block.next(), 5);
  sequence_block moved(std::move(block));
  EXPECT_FALSE(block.has_next());  // NOLINT(bugprone-use-after-move): this is tested
  EXPECT_EQ(moved.next(), 8);
  EXPECT_EQ(moved.next(), 11);
  EXPECT_EQ(failure_of([&] { (void)moved.next(); }).code(), errc::out_of_range)
      << "the published design continues with ids of other blocks";
  sequence_block top(limits::max() - 1, limits::max());
  EXPECT_EQ(top.next(), limits::max() - 1);
  EXPECT_EQ(top.next(), limits::max());
  EXPECT_FALSE(top.has_next());
  EXPECT_EQ(sequence_block(3, 1, -1).size(), 3U);
  EXPECT_EQ(sequence_block(3, 4, -1).size(), 0U);
  EXPECT_EQ(sequence_block(limits::min(), limits::max()).size(),
            std::numeric_limits<std::uint64_t>::max());
  static_assert(!std::is_copy_constructible_v<sequence_block> &&
                !std::is_copy_constructible_v<sequence> &&
                !std::is_copy_constructible_v<sequence_handle>);
}

/// From 0 to a million ids per second, and back.
TEST(SequenceSizing, BlocksFollowTheRate) {
  detail::sequence::block_sizing sizing(adaptive_blocks{});
  steady::time_point now{};
  std::uint64_t drawn = 0;
  constexpr std::uint64_t plenty = std::uint64_t{1} << 62U;
  EXPECT_EQ(sizing.next_size(now, drawn, {}, plenty), 20);
  int refills = 0;
  // A million a second, from the first moment
  for (std::int64_t size = 20; size < 900'000; ++refills) {
    ASSERT_LT(refills, 8);
    drawn += static_cast<std::uint64_t>(size);
    now += std::chrono::microseconds(size);
    sizing.record_latency(2000us);
    size = sizing.next_size(now, drawn, {}, plenty);
  }
  EXPECT_GT(sizing.margin(1 << 20), 1'000'000U * 2 / 1000)
      << "requested before the last two milliseconds";
  for (int second = 0; second < 5; ++second) {
    drawn += 1'000'000;
    now += 1s;
    EXPECT_NEAR(static_cast<double>(sizing.next_size(now, drawn, {}, plenty)), 1e6, 1e5)
        << "one block a second";
  }
  drawn += 10;
  now += 60s;
  EXPECT_EQ(sizing.next_size(now, drawn, {}, plenty), 20)
      << "idle: little is lost when the process dies";
  EXPECT_EQ(sizing.next_size(now, drawn, {}, 10'240), 10)
      << "near the end a block leaves ids for other processes";
  EXPECT_EQ(sizing.next_size(now, drawn, {}, 5), 1);
  now += 1s;
  EXPECT_EQ(sizing.next_size(now, drawn - 5, {}, plenty), 20)
      << "tickets that were put back are not a burst";
  detail::sequence::block_sizing fixed(fixed_blocks{7});
  EXPECT_EQ(fixed.next_size(now, drawn, {}, plenty), 7);
  EXPECT_EQ(fixed.margin(7), 0U);
}

}  // namespace
}  // namespace holdfast::test
