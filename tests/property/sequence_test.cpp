// Sequences with any start, increment, limit and block size, compared with a list of their ids. And
// many threads at once, while another process takes blocks between theirs: no id comes twice, and
// none is lower than an id that was returned before the call. HOLDFAST_SEED=n repeats one run.

#include <holdfast/id_generator.hpp>
#include <holdfast/sequence.hpp>

#include "support/seed.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using limits = std::numeric_limits<std::int64_t>;

/// A number near a value where arithmetic could go wrong.
std::int64_t edge(std::mt19937_64& random) {
  constexpr std::int64_t edges[]{limits::min(),          limits::min() / 2, -1,           0, 1,
                                 std::int64_t{1} << 53U, limits::max() / 2, limits::max()};
  const auto number = edges[random() % std::size(edges)];
  const auto distance = static_cast<std::int64_t>(random() % 40) - 20;
  std::int64_t sum = 0;
  return __builtin_add_overflow(number, distance, &sum) ? number : sum;
}

/// The first ids of a sequence, computed with 128 bits.
std::vector<std::int64_t> expected_ids(const sequence_options& options, std::size_t max_count) {
  __extension__ using wide = __int128;
  std::vector<std::int64_t> all;
  for (wide id = options.start; id >= options.min && id <= options.max && all.size() < max_count;
       id += options.increment)
    all.push_back(static_cast<std::int64_t>(id));
  return all;
}

std::string described(const sequence_options& options, std::int64_t block) {
  return "start " + std::to_string(options.start) + " increment " +
         std::to_string(options.increment) + " block " + std::to_string(block);
}

TEST(SequenceProperty, IdsAreAsExpected) {
  const auto seed = first_seed();
  SCOPED_TRACE(repeated_by(seed));
  std::mt19937_64 random(seed);
  for (int run = 0; run < 150; ++run) {
    sequence_options options{.blocks = fixed_blocks{static_cast<std::int64_t>(random() % 9) + 1}};
    options.start = edge(random);
    options.increment =
        random() % 3 == 0 ? edge(random) : static_cast<std::int64_t>(random() % 21) - 10;
    if (options.increment == 0) options.increment = 1;
    if (random() % 2 == 0) options.max = std::max(options.start, edge(random));
    if (random() % 2 == 0) options.min = std::min(options.start, edge(random));
    const auto expected = expected_ids(options, 60);
    auto& block = std::get<fixed_blocks>(options.blocks).size;
    block = std::min(block, static_cast<std::int64_t>(expected.size()));
    const bool ends = expected.size() < 60;
    options.cycle = ends && random() % 2 == 0;
    const sequence_source source(make_memory_block_store());
    auto ids = source.sequence("any", options);
    SCOPED_TRACE(described(options, block));
    for (const auto id : expected) ASSERT_EQ(ids.next(), id);
    if (!ends) continue;
    if (options.cycle) {
      ASSERT_EQ(ids.next(), expected.front());
    } else {
      try {
        (void)ids.next();
        FAIL() << "the sequence must end here";
      } catch (const error& e) {
        ASSERT_EQ(e.code(), errc::out_of_range);
      }
      ASSERT_EQ(ids.peek(), expected.back());
    }
  }
}

/// Counters in memory behind a delay, with another process that takes blocks between.
class busy_store final : public block_store {
 public:
  /// `interval`: the other process takes a block after this many; 0: never.
  busy_store(std::chrono::microseconds latency, int interval)
      : latency_(latency), interval_(interval) {}

  std::vector<block_grant> allocate(std::span<const block_request> requests) override {
    if (latency_.count() != 0) std::this_thread::sleep_for(latency_ / 2);
    if (interval_ != 0 && ++calls_ % static_cast<unsigned>(interval_) == 0) {
      const block_request other{.name = requests.front().name, .count = 3};
      (void)counters_->allocate({&other, 1});
    }
    auto grants = counters_->allocate(requests);
    if (latency_.count() != 0) std::this_thread::sleep_for(latency_ / 2);
    return grants;
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

 private:
  const std::shared_ptr<block_store> counters_ = make_memory_block_store();
  const std::chrono::microseconds latency_;
  const int interval_;
  std::atomic<unsigned> calls_{0};
};

struct load {
  block_policy blocks;
  std::chrono::microseconds latency;
  int interval;  // of blocks that another process takes; 0: never
  bool handles;
};

void draw_on_threads(const load& load, int threads, std::chrono::milliseconds length) {
  const sequence_source source(std::make_shared<busy_store>(load.latency, load.interval));
  auto ids = source.sequence("stress", {.blocks = load.blocks, .wait = 5min});
  std::atomic<std::int64_t> highest{0};
  std::atomic<bool> stop{false};
  std::vector<std::vector<std::int64_t>> drawn(static_cast<std::size_t>(threads));
  {
    std::vector<std::jthread> running;
    running.reserve(drawn.size());
    for (auto& own : drawn) {
      running.emplace_back([&] {
        constexpr std::size_t max_ids = 200'000;
        std::optional<sequence_handle> handle;
        if (load.handles) handle.emplace(ids.handle());
        std::int64_t last = 0;
        std::minstd_rand random(static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(&own)));
        while ((own.empty() || !stop.load(std::memory_order_relaxed)) && own.size() < max_ids) {
          if (handle) {
            own.push_back(handle->next());
          } else {
            // An id that a call returned before this one began is lower.
            const auto before = highest.load();
            if (random() % 16 == 0) {
              auto block = ids.next_n(static_cast<std::int64_t>(random() % 5) + 1);
              ASSERT_GT(block.first(), before);
              while (block.has_next()) own.push_back(block.next());
            } else if (const auto id =
                           random() % 16 == 1 ? ids.try_next() : std::optional(ids.next())) {
              ASSERT_GT(*id, before);
              own.push_back(*id);
            } else {
              continue;
            }
            for (auto current = before;
                 current < own.back() && !highest.compare_exchange_weak(current, own.back());) {
            }
          }
          ASSERT_GT(own.back(), last);
          last = own.back();
        }
      });
    }
    std::this_thread::sleep_for(length);
    stop = true;
  }
  std::vector<std::int64_t> all;
  for (const auto& own : drawn) all.insert(all.end(), own.begin(), own.end());
  std::sort(all.begin(), all.end());
  ASSERT_EQ(std::adjacent_find(all.begin(), all.end()), all.end()) << "an id came twice";
  ASSERT_FALSE(all.empty());
  EXPECT_LE(all.back(), ids.peek());
}

TEST(SequenceStress, TwoThreadsOnTinyBlocks) {
  draw_on_threads({fixed_blocks{1}, 0us, 0, false}, 2, 150ms);
}
TEST(SequenceStress, TwoThreadsAdaptive) {
  draw_on_threads({adaptive_blocks{}, 0us, 0, false}, 2, 150ms);
}
TEST(SequenceStress, FourThreadsWithAnotherProcessBetween) {
  draw_on_threads({fixed_blocks{20}, 0us, 2, false}, 4, 200ms);
}
TEST(SequenceStress, FourThreadsAdaptiveWithAnotherProcessBetween) {
  draw_on_threads({adaptive_blocks{.smallest = 4, .largest = 64}, 200us, 3, false}, 4, 300ms);
}
TEST(SequenceStress, ASlowStore) {
  draw_on_threads({adaptive_blocks{}, 2000us, 2, false}, 4, 300ms);
}
TEST(SequenceStress, AVerySlowStore) {
  draw_on_threads({fixed_blocks{20}, 20'000us, 2, false}, 3, 300ms);
}
TEST(SequenceStress, HandlesOnThreads) {
  draw_on_threads({adaptive_blocks{}, 200us, 3, true}, 4, 200ms);
}

TEST(IdGenerators, MakeDifferentIds) {
  local_ids counter(5);
  EXPECT_EQ(counter.next(), 5);
  EXPECT_EQ(counter.next(), 6);
  uuid_v4_ids random;
  EXPECT_NE(random.next(), random.next());
  EXPECT_EQ(random.next().version(), 4);
  uuid_v7_ids by_time;
  uuid before;
  for (int i = 0; i < 2000; ++i) {
    const auto id = by_time.next();
    const auto text = id.to_string();
    ASSERT_EQ(id.version(), 7);
    ASSERT_EQ(text.size(), 36U);
    ASSERT_EQ(text[14], '7');
    ASSERT_GT(id, before);
    ASSERT_GT(text, before.to_string());
    ASSERT_EQ(uuid::parse(text), id);
    before = id;
  }
}

TEST(IdGenerators, AUuidIsReadInEitherCase) {
  const auto id = uuid::parse("550E8400-e29b-41d4-a716-446655440000");
  EXPECT_EQ(id.to_string(), "550e8400-e29b-41d4-a716-446655440000");
  EXPECT_EQ(id.bytes[0], 0x55);
  EXPECT_EQ(id.bytes[15], 0);
  EXPECT_EQ(uuid().to_string(), "00000000-0000-0000-0000-000000000000");
  for (const char* wrong :
       {"", "550e8400e29b41d4a716446655440000", "550e8400-e29b-41d4-a716-44665544000g"})
    EXPECT_THROW((void)uuid::parse(wrong), error) << wrong;
}

/// Versions 7 of many threads: all different, and growing in each thread.
TEST(IdGenerators, VersionSevenGrowsOnEveryThread) {
  std::vector<std::vector<uuid>> drawn(4);
  {
    std::vector<std::jthread> threads;
    for (auto& own : drawn)
      threads.emplace_back([&own] {
        for (int i = 0; i < 2000; ++i) own.push_back(uuid::v7());
      });
  }
  std::unordered_set<uuid> all;
  for (const auto& own : drawn) {
    EXPECT_TRUE(std::is_sorted(own.begin(), own.end()));
    all.insert(own.begin(), own.end());
  }
  EXPECT_EQ(all.size(), 8000U);
}

/// A class that gets its generator at run time.
class numbered_things {
 public:
  explicit numbered_things(any_id_generator<std::int64_t> ids) : ids_(std::move(ids)) {}
  std::int64_t add() { return ids_.next(); }

 private:
  any_id_generator<std::int64_t> ids_;
};

TEST(IdGenerators, AnyGeneratorHoldsEveryKind) {
  const sequence_source source(make_memory_block_store());
  EXPECT_EQ(numbered_things(source.sequence("a")).add(), 1);
  EXPECT_EQ(numbered_things(source.sequence("a").handle()).add(), 21);
  EXPECT_EQ(numbered_things(local_ids(7)).add(), 7);
  const auto shared = std::make_shared<sequence>(source.sequence("b"));
  numbered_things first(shared);
  numbered_things second(shared);
  EXPECT_EQ(first.add(), 1);
  EXPECT_EQ(second.add(), 2);
  any_id_generator<uuid> unique = uuid_v7_ids();
  const auto before = unique.next();
  unique = uuid_v7_ids();
  EXPECT_GT(unique.next(), before);
}

}  // namespace
}  // namespace holdfast::test
