#include <holdfast/store/memory.hpp>

#include "support/model_store.hpp"
#include "support/seed.hpp"
#include "support/virtual_clock.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

// The memory store does what the model does, step by step, as long as nothing has to leave; and
// what may leave never goes back in time. HOLDFAST_SEED=n runs that seed alone.

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

class walk {
 public:
  explicit walk(std::uint64_t seed) : random_(seed) {}
  // Not std::uniform_int_distribution: a seed must mean the same steps with every standard library.
  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(random_() % bound); }

  [[nodiscard]] entry some_entry(timestamp now) {
    entry e{.name = some_name(),
            .key = some_key(),
            .as_of = now - 1us * static_cast<std::int64_t>(below(20)),
            .payload = std::string(below(4) * 40, static_cast<char>('a' + below(26))),
            .payload_class = "test.payload",
            .realm = some_realm()};
    if (below(20) == 0) e.as_of = now + 1min * static_cast<int>(below(10));
    e.expire_on = std::max(e.as_of, now) + 100ms * static_cast<int>(below(60));
    if (below(8) == 0) {
      e.payload.reset();
      if (below(2) == 0) e.payload_class.clear();
    }
    return e;
  }
  std::string some_name() { return below(3) == 0 ? "a" : "b"; }
  std::string some_realm() { return below(3) == 0 ? "acme" : ""; }
  std::string some_key() { return std::to_string(below(40)); }

 private:
  std::mt19937_64 random_;
};

/// So many, or only the seed of the environment.
std::vector<std::uint64_t> seeds(std::size_t count) {
  if (const auto only = seed_from_environment()) return {*only};
  std::vector<std::uint64_t> all(count);
  std::iota(all.begin(), all.end(), first_seed());
  return all;
}

TEST(StoreMemoryProperty, DoesWhatTheModelDoes) {
  for (const auto seed : seeds(40)) {
    SCOPED_TRACE(repeated_by(seed));
    walk at(seed);
    const auto clock = std::make_shared<virtual_clock>();
    const auto store = make_memory_store({.shards = std::size_t{1} << (seed % 5), .clock = clock});
    model_store model({.clock = clock});
    for (int step = 0; step < 1000; ++step) {
      clock->advance(1ms * static_cast<int>(at.below(30)));
      const auto now = clock->now();
      const std::string name = at.some_name();
      const std::string realm = at.some_realm();
      const place where(name, realm);
      switch (at.below(8)) {
        case 0:
        case 1: {
          const auto e = at.some_entry(now);
          store->put(e);
          model.put(e);
          break;
        }
        case 2: {
          std::vector<entry> batch;
          for (std::size_t i = at.below(12); i-- > 0;) batch.push_back(at.some_entry(now));
          store->put(batch);
          model.put(batch);
          break;
        }
        case 3: {
          const auto key = at.some_key();
          const auto found = model.find(where, key);
          const auto version = found && at.below(4) != 0 ? found->as_of : now;
          ASSERT_EQ(store->erase(where, key, version), model.erase(where, key, version));
          break;
        }
        case 4: {
          // Which of them leave first is free, so all of them must.
          const auto before = now - 1s + 100ms * static_cast<int>(at.below(20));
          ASSERT_EQ(store->expire(before, 1'000'000), model.expire(before, 1'000'000));
          break;
        }
        case 5: {
          const auto limit = at.below(15);
          const auto after = at.below(3) == 0 ? std::string() : at.some_key();
          const auto ours = store->find_all(where, limit, after);
          const auto its = model.find_all(where, limit, after);
          ASSERT_EQ(ours.entries, its.entries);
          ASSERT_EQ(ours.next, its.next);
          break;
        }
        case 6:
          ASSERT_EQ(store->count(where), model.count(where));
          break;
        default: {
          const auto key = at.some_key();
          ASSERT_EQ(store->find(where, key), model.find(where, key));
        }
      }
    }
    EXPECT_EQ(store->stats().evicted, 0U);
  }
}

TEST(StoreMemoryProperty, NeverGoesBackWhileTheEntryIsThere) {
  for (const auto seed : seeds(20)) {
    SCOPED_TRACE(repeated_by(seed));
    walk at(seed);
    const auto clock = std::make_shared<virtual_clock>();
    const std::size_t bound = 1 + at.below(60);
    const auto store = make_memory_store({.max_entries = bound,
                                          .max_bytes = 4'000 + 1'000 * at.below(20),
                                          .shards = std::size_t{1} << (seed % 4),
                                          .clock = clock});
    std::uint64_t expected_to_be_there = 0;
    for (int step = 0; step < 1500; ++step) {
      clock->advance(1ms);
      auto e = at.some_entry(clock->now());
      e.as_of = std::min(e.as_of, clock->now());
      const auto before = store->find(place(e), e.key);
      store->put(e);
      const auto after = store->find(place(e), e.key);
      ASSERT_TRUE(after) << "what was just written is there";
      ASSERT_EQ(after->as_of, before ? std::max(before->as_of, e.as_of) : e.as_of);
      expected_to_be_there = store->stats().entries;
      ASSERT_LE(expected_to_be_there, bound);
    }
    std::uint64_t counted = 0;
    for (const char* name : {"a", "b"})
      counted += store->count(name) + store->count({name, "acme"});
    EXPECT_EQ(counted, expected_to_be_there);
  }
}

}  // namespace
}  // namespace holdfast::test
