// The definition of a sequence: what all its users must agree on, and how it is changed.

#include "sequence/definition.hpp"

#include <holdfast/sequence.hpp>

#include "scripted_store.hpp"
#include "support/failure_of.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <set>
#include <string>

namespace holdfast::test {
namespace {

using detail::sequence::definition_of;
using detail::sequence::last_after_redefinition;
using detail::sequence::read_definition;

TEST(SequenceDefinition, IsWrittenAndRead) {
  const sequence_options options{.start = 100, .increment = -7, .min = -1000, .cycle = true};
  EXPECT_EQ(definition_of(options), "start=100 increment=-7 end=-999 cycle=yes");
  EXPECT_EQ(definition_of({}), "start=1 increment=1 end=9223372036854775807 cycle=no");
  sequence_options read;
  read_definition(definition_of(options) + " fence=none", read);
  EXPECT_EQ(definition_of(read), definition_of(options));
  EXPECT_EQ(failure_of([&] { read_definition("start=1 increment=x", read); }).code(),
            errc::malformed);
}

TEST(SequenceDefinition, AnotherOneIsRefused) {
  const sequence_source source(make_memory_block_store());
  auto first = source.sequence("shared");
  EXPECT_EQ(first.next(), 1);
  for (const auto& options : {sequence_options{.start = 2}, sequence_options{.increment = 2},
                              sequence_options{.max = 1000}, sequence_options{.cycle = true}}) {
    auto other = source.sequence("shared", options);
    const auto failure = failure_of([&] { (void)other.next(); });
    EXPECT_EQ(failure.code(), errc::invalid_argument) << failure.what();
    EXPECT_NE(std::string(failure.what()).find(definition_of(options)), std::string::npos)
        << failure.what();
    EXPECT_EQ(failure_of([&] { (void)other.peek(); }).code(), errc::invalid_argument);
    EXPECT_EQ(failure_of([&] { (void)other.ensure_at_least(500); }).code(), errc::invalid_argument);
    EXPECT_EQ(failure_of([&] { other.reset_unsafe(options.start, {}); }).code(),
              errc::invalid_argument);
  }
  EXPECT_EQ(source.sequence("shared", {.blocks = fixed_blocks{5}, .max = last_ordinal}).next(), 21)
      << "sizes of blocks may differ, and limits that mean the same";
}

TEST(SequenceDefinition, IsChangedOnPurpose) {
  const sequence_source source(make_memory_block_store());
  auto before = source.sequence("shared", {.increment = 10});
  std::set<std::int64_t> ids;
  for (int i = 0; i < 25; ++i) ids.insert(before.next());  // 40 ids are leased: up to 391
  auto after = source.sequence("shared", {.increment = 3});
  const auto stored = after.definition();
  ASSERT_TRUE(stored);
  EXPECT_EQ(failure_of([&] { after.redefine("start=1 increment=1 end=5 cycle=no"); }).code(),
            errc::duplicate);
  after.redefine(*stored);
  for (int i = 0; i < 100; ++i) {
    const auto id = after.next();
    EXPECT_GT(id, 391);
    EXPECT_TRUE(ids.insert(id).second);
  }
  for (int i = 0; i < 15; ++i)
    EXPECT_TRUE(ids.insert(before.next()).second) << "what it has leased";
  EXPECT_EQ(failure_of([&] { (void)before.next(); }).code(), errc::invalid_argument);
}

TEST(SequenceDefinition, CannotTurnAround) {
  EXPECT_EQ(failure_of([] { (void)last_after_redefinition({}, {.increment = -1}, 10); }).code(),
            errc::invalid_argument);
  EXPECT_EQ(
      failure_of([] { (void)last_after_redefinition({.max = 100, .cycle = true}, {}, 10); }).code(),
      errc::invalid_argument);
  EXPECT_EQ(failure_of([] { (void)last_after_redefinition({}, {.max = 10}, 10); }).code(),
            errc::out_of_range);
  EXPECT_EQ(last_after_redefinition({}, {.max = 11}, 10), 10);
}

/// Any number of changes: no id comes twice.
TEST(SequenceDefinition, ManyChangesRepeatNoId) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    std::mt19937 random(seed);
    const auto draw_number = [&](std::int64_t low, std::int64_t high) {
      return std::uniform_int_distribution<std::int64_t>(low, high)(random);
    };
    const bool down = seed % 2 == 0;
    const auto random_options = [&] {
      const auto step = draw_number(1, 12);
      return sequence_options{.start = draw_number(-500, 500), .increment = down ? -step : step};
    };
    auto options = random_options();
    std::int64_t last = 0;
    std::set<std::int64_t> ids;
    for (int change = 0; change < 10; ++change) {
      const detail::sequence::id_range range(options);
      for (auto count = draw_number(0, 30); count > 0; --count)
        ASSERT_TRUE(ids.insert(range.id(++last)).second) << "seed " << seed;
      const auto next = random_options();
      last = last_after_redefinition(options, next, last);
      options = next;
    }
  }
}

/// A store that lost the raise, as a standby that lagged: the sequence raises it again.
TEST(SequenceDefinition, ARaiseThatTheStoreForgotIsRepeated) {
  const auto store = std::make_shared<scripted_store>();
  const sequence_source source(store);
  auto ids = source.sequence("raised");
  EXPECT_EQ(ids.ensure_at_least(5000), 5000);
  store->forget();
  EXPECT_EQ(ids.next(), 5001);
  EXPECT_GE(ids.peek(), 5001);
}

}  // namespace
}  // namespace holdfast::test
