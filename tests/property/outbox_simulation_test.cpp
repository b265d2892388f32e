// The outbox under every mishap that a seed can think of. HOLDFAST_OUTBOX_SEEDS=100000 runs that
// many (scripts/test --all does); HOLDFAST_SEED=n runs that one alone.

#include "property/outbox_simulation.hpp"

#include "support/seed.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace holdfast::test {
namespace {

std::uint64_t seed_count() {
  const char* const variable =
      std::getenv("HOLDFAST_OUTBOX_SEEDS");  // NOLINT(concurrency-mt-unsafe)
  return variable == nullptr || *variable == '\0' ? 400 : std::stoull(variable);
}

TEST(OutboxSimulation, KeepsItsPromisesUnderAnySeed) {
  if (const auto only = seed_from_environment()) {
    EXPECT_EQ(simulate({.seed = *only}).broken, "") << repeated_by(*only);
    return;
  }
  const auto seeds = seed_count();
  std::size_t deliveries = 0, crashes = 0;
  const auto first = first_seed();
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    const auto result = simulate({.seed = seed});
    ASSERT_EQ(result.broken, "") << repeated_by(seed);
    deliveries += result.deliveries;
    crashes += result.crashes;
  }
  EXPECT_GT(deliveries, seeds * 10) << "it does something";
  EXPECT_GT(crashes, seeds * 3) << "and things go wrong";
}

TEST(OutboxSimulation, SurvivesADeathAtEveryCall) {
  // Enumerated, not sampled: whoever makes a call dies before it, or after it. Each seed is a
  // course of events of its own.
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    const auto calls = simulate({.seed = seed, .kill_at = ~std::size_t{0}}).boundaries;
    ASSERT_GT(calls, 50U);
    for (std::size_t at = 0; at < 2 * calls; ++at) {
      ASSERT_EQ(simulate({.seed = seed, .kill_at = at}).broken, "")
          << "seed " << seed << ", killed at " << at;
    }
  }
}

TEST(OutboxSimulation, NoticesWhatIsWrong) {
  for (const auto bug :
       {planted::forgets_tokens, planted::forgets_events, planted::mixes_up_order,
        planted::repeats_effects, planted::fires_twice, planted::loses_with_a_lease,
        planted::recurs_blindly, planted::recurs_without_event}) {
    std::string broken;
    for (std::uint64_t seed = 1; seed <= 200 && broken.empty(); ++seed)
      broken = simulate({.seed = seed, .bug = bug}).broken;
    EXPECT_NE(broken, "") << "planted bug " << static_cast<int>(bug) << " was not noticed";
  }
}

TEST(OutboxSimulation, TheSameSeedIsTheSameRun) {
  const auto a = simulate({.seed = 7});
  const auto b = simulate({.seed = 7});
  EXPECT_EQ(a.boundaries, b.boundaries);
  EXPECT_EQ(a.deliveries, b.deliveries);
  EXPECT_EQ(a.crashes, b.crashes);
}

}  // namespace
}  // namespace holdfast::test
