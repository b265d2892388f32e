// Ids of sequences with any start, step, limit and block: against a list that is counted out. And many threads at once, with
// another process that takes blocks between theirs: no id twice, and none that is lower than one that was there before the call.
// HOLDFAST_SEED=n repeats one run.

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
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using limits = std::numeric_limits<std::int64_t>;

/// A start near something where arithmetic goes wrong.
std::int64_t edge(std::mt19937_64& random) {
  constexpr std::int64_t places[]{limits::min(), limits::min() / 2, -1, 0, 1, std::int64_t{1} << 53U, limits::max() / 2, limits::max()};
  const auto at = places[random() % std::size(places)];
  const auto by = static_cast<std::int64_t>(random() % 40) - 20;
  std::int64_t sum = 0;
  return __builtin_add_overflow(at, by, &sum) ? at : sum;
}

/// Every id that a sequence can have, at most so many, worked out with wide numbers.
std::vector<std::int64_t> counted_out(const sequence_options& of, std::size_t most) {
  __extension__ using wide = __int128;
  std::vector<std::int64_t> all;
  for (wide id = of.start; id >= of.min && id <= of.max && all.size() < most; id += of.increment)
    all.push_back(static_cast<std::int64_t>(id));
  return all;
}

std::string described(const sequence_options& options, std::int64_t block) {
  return "start " + std::to_string(options.start) + " increment " + std::to_string(options.increment) + " block " + std::to_string(block);
}

TEST(SequenceProperty, IdsAreThoseThatAreCountedOut) {
  const auto seed = first_seed();
  SCOPED_TRACE(repeated_by(seed));
  std::mt19937_64 random(seed);
  for (int run = 0; run < 150; ++run) {
    sequence_options options{.blocks = fixed_blocks{static_cast<std::int64_t>(random() % 9) + 1}};
    options.start = edge(random);
    options.increment = random() % 3 == 0 ? edge(random) : static_cast<std::int64_t>(random() % 21) - 10;
    if (options.increment == 0) options.increment = 1;
    if (random() % 2 == 0) options.max = std::max(options.start, edge(random));
    if (random() % 2 == 0) options.min = std::min(options.start, edge(random));
    const auto expected = counted_out(options, 60);
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
        FAIL() << "there is no id after the last";
      } catch (const error& e) {
        ASSERT_EQ(e.code(), errc::out_of_range);
      }
      ASSERT_EQ(ids.peek(), expected.back());
    }
  }
}

/// Memory behind a delay, with somebody else who takes blocks between.
class busy_store final : public block_store {
 public:
  busy_store(std::chrono::microseconds latency, int foreign) : latency_(latency), foreign_(foreign) {}

  std::vector<block_grant> allocate(std::span<const block_request> requests) override {
    if (latency_.count() != 0) std::this_thread::sleep_for(latency_ / 2);
    if (foreign_ != 0 && ++calls_ % static_cast<unsigned>(foreign_) == 0) {
      const block_request other{.name = requests.front().name, .count = 3};
      (void)below_->allocate({&other, 1});
    }
    auto granted = below_->allocate(requests);
    if (latency_.count() != 0) std::this_thread::sleep_for(latency_ / 2);
    return granted;
  }
  std::optional<counter_state> peek(std::string_view name) override { return below_->peek(name); }
  counter_state ensure_at_least(std::string_view name, std::int64_t ordinal) override { return below_->ensure_at_least(name, ordinal); }
  bool reset(std::string_view name, std::int64_t ordinal, counter_state expected) override {
    return below_->reset(name, ordinal, expected);
  }
  bool give_back(std::string_view name, std::int64_t last_used, counter_state granted) override {
    return below_->give_back(name, last_used, granted);
  }
  std::vector<named_counter> list(std::size_t limit, std::string_view after) override { return below_->list(limit, after); }
  std::vector<std::string> unsafe_settings() override { return {}; }
  std::shared_ptr<block_store> for_child() const override { return below_->for_child(); }

 private:
  const std::shared_ptr<block_store> below_ = make_memory_block_store();
  const std::chrono::microseconds latency_;
  const int foreign_;
  std::atomic<unsigned> calls_{0};
};

struct load {
  block_policy blocks;
  std::chrono::microseconds latency;
  int foreign;  // every so many blocks somebody else has one
  bool handles;
};

void draw_on_threads(const load& how, int threads, std::chrono::milliseconds length) {
  const sequence_source source(std::make_shared<busy_store>(how.latency, how.foreign));
  auto ids = source.sequence("stress", {.blocks = how.blocks, .wait = 5min});
  std::atomic<std::int64_t> highest{0};
  std::atomic<bool> stop{false};
  std::vector<std::vector<std::int64_t>> drawn(static_cast<std::size_t>(threads));
  {
    std::vector<std::jthread> running;
    running.reserve(drawn.size());
    for (auto& mine : drawn) {
      running.emplace_back([&] {
        constexpr std::size_t enough = 200'000;
        std::optional<sequence_handle> own;
        if (how.handles) own.emplace(ids.handle());
        std::int64_t last = 0;
        std::minstd_rand random(static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(&mine)));
        while ((mine.empty() || !stop.load(std::memory_order_relaxed)) && mine.size() < enough) {
          if (own) {
            mine.push_back(own->next());
          } else {
            // An id that a call returned before this one began is lower.
            const auto before = highest.load();
            if (random() % 16 == 0) {
              auto block = ids.next_n(static_cast<std::int64_t>(random() % 5) + 1);
              ASSERT_GT(block.first(), before);
              while (block.has_next()) mine.push_back(block.next());
            } else if (const auto maybe = random() % 16 == 1 ? ids.try_next() : std::optional(ids.next())) {
              ASSERT_GT(*maybe, before);
              mine.push_back(*maybe);
            } else {
              continue;
            }
            for (auto seen = before; seen < mine.back() && !highest.compare_exchange_weak(seen, mine.back());) {
            }
          }
          ASSERT_GT(mine.back(), last);
          last = mine.back();
        }
      });
    }
    std::this_thread::sleep_for(length);
    stop = true;
  }
  std::vector<std::int64_t> all;
  for (const auto& mine : drawn) all.insert(all.end(), mine.begin(), mine.end());
  std::sort(all.begin(), all.end());
  ASSERT_EQ(std::adjacent_find(all.begin(), all.end()), all.end()) << "an id came twice";
  ASSERT_FALSE(all.empty());
  EXPECT_LE(all.back(), ids.peek());
}

TEST(SequenceStress, TwoThreadsOnTinyBlocks) { draw_on_threads({fixed_blocks{1}, 0us, 0, false}, 2, 150ms); }
TEST(SequenceStress, TwoThreadsAdaptive) { draw_on_threads({adaptive_blocks{}, 0us, 0, false}, 2, 150ms); }
TEST(SequenceStress, FourThreadsWithAnotherProcessBetween) { draw_on_threads({fixed_blocks{20}, 0us, 2, false}, 4, 200ms); }
TEST(SequenceStress, FourThreadsAdaptiveWithAnotherProcessBetween) {
  draw_on_threads({adaptive_blocks{.smallest = 4, .largest = 64}, 200us, 3, false}, 4, 300ms);
}
TEST(SequenceStress, ASlowStore) { draw_on_threads({adaptive_blocks{}, 2000us, 2, false}, 4, 300ms); }
TEST(SequenceStress, AVerySlowStore) { draw_on_threads({fixed_blocks{20}, 20'000us, 2, false}, 3, 300ms); }
TEST(SequenceStress, HandlesOnThreads) { draw_on_threads({adaptive_blocks{}, 200us, 3, true}, 4, 200ms); }

TEST(IdGenerators, MakeDifferentIds) {
  local_ids counter(5);
  EXPECT_EQ(counter.next(), 5);
  EXPECT_EQ(counter.next(), 6);
  uuid_v4_ids random;
  EXPECT_NE(random.next(), random.next());
  EXPECT_EQ(random.next()[14], '4');
  uuid_v7_ids by_time;
  std::string before;
  for (int i = 0; i < 2000; ++i) {
    auto id = by_time.next();
    ASSERT_EQ(id.size(), 36U);
    ASSERT_EQ(id[14], '7');
    ASSERT_GT(id, before);
    before = std::move(id);
  }
}

}  // namespace
}  // namespace holdfast::test
