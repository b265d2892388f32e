// Far more writes than the database can take: memory stays bounded, every drop is counted, nobody
// waits beyond his deadline.

#include <holdfast/database.hpp>
#include <holdfast/store/write_behind.hpp>

#include "support/postgres_server.hpp"
#include "support/shared_server.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

/// scripts/test --all asks for more.
std::chrono::seconds duration() {
  const char* given = std::getenv("HOLDFAST_OVERLOAD_SECONDS");  // NOLINT(concurrency-mt-unsafe)
  return std::chrono::seconds(given == nullptr ? 10 : std::strtol(given, nullptr, 10));
}

/// Bytes of this process in memory.
std::size_t resident() {
  std::ifstream statm("/proc/self/statm");
  std::size_t pages = 0;
  statm >> pages >> pages;
  return pages * 4096;
}

/// A key that never came before, so that nothing is coalesced and every row in the table is one
/// operation.
entry fresh_entry(int producer, std::uint64_t number) {
  const auto now = system_clock()->now();
  return {.name = "n",
          .key = std::to_string(producer) + "-" + std::to_string(number),
          .as_of = now,
          .expire_on = now + 1h,
          .payload = std::string(200, 'x'),
          .payload_class = "c"};
}

class WriteBehindOverload : public ::testing::Test {
 protected:
  struct outcome {
    std::uint64_t accepted = 0;
    std::uint64_t refused = 0;
    steady::duration longest{};  // that a put took
    std::uint64_t slow = 0;      // puts that took more than 100 ms
    std::size_t most_pending = 0;
    std::size_t most_bytes = 0;
    std::size_t grown = 0;
  };

  WriteBehindOverload() {
    const auto& server = shared_server<postgres_server>();
    below_ = open(server.url(server.create_database("overload"))).store({.create_schema = true});
  }

  /// Two producers as fast as they can, and somebody who looks on.
  static outcome storm(write_behind& into, std::chrono::milliseconds time) {
    std::atomic<std::uint64_t> accepted{0};
    std::atomic<std::uint64_t> refused{0};
    std::atomic<steady::rep> longest{0};
    std::atomic<std::uint64_t> slow{0};
    outcome seen;
    {
      std::vector<std::jthread> producers;
      for (int p = 0; p < 2; ++p) {
        producers.emplace_back([&, p](std::stop_token stop) {
          steady::duration mine{};
          for (std::uint64_t number = 0; !stop.stop_requested(); ++number) {
            const auto one = fresh_entry(p, number);
            const auto begin = steady::now();
            try {
              into.put({&one, 1});
              ++accepted;
            } catch (const error& e) {
              EXPECT_EQ(e.code(), errc::timeout) << e.what();
              ++refused;
            }
            const auto took = steady::now() - begin;
            mine = std::max(mine, took);
            if (took > 100ms) ++slow;
          }
          auto before = longest.load();
          while (before < mine.count() && !longest.compare_exchange_weak(before, mine.count())) {
          }
        });
      }
      const auto end = steady::now() + time;
      std::size_t at_first = 0;
      while (steady::now() < end) {
        std::this_thread::sleep_for(20ms);
        const auto now = into.numbers();
        seen.most_pending = std::max<std::size_t>(seen.most_pending, now.pending);
        seen.most_bytes = std::max<std::size_t>(seen.most_bytes, now.pending_bytes);
        // Once the queue was full for a while.
        if (at_first == 0 && end - steady::now() < time * 3 / 4) at_first = resident();
        if (at_first != 0)
          seen.grown = std::max(seen.grown, std::max(resident(), at_first) - at_first);
      }
    }
    seen.accepted = accepted;
    seen.refused = refused;
    seen.longest = steady::duration(longest);
    seen.slow = slow;
    return seen;
  }

  std::shared_ptr<store> below_;
};

TEST_F(WriteBehindOverload, DropsAndCountsExactly) {
  const write_behind_options options{
      .max_entries = 5'000, .max_bytes = std::size_t{4} << 20U, .full = when_full::drop_oldest};
  const auto behind = make_write_behind(below_, options);
  const auto seen = storm(*behind, duration());
  const auto report = behind->close(steady::now() + 60s);
  const auto now = behind->numbers();
  std::cout << seen.accepted << " accepted, " << now.written << " written, " << now.dropped
            << " dropped; a put took "
            << std::chrono::duration_cast<std::chrono::microseconds>(seen.longest).count()
            << " us at most; memory grew by " << seen.grown / 1024 << " KB\n";
  EXPECT_EQ(report.unsaved + report.in_flight, 0U);
  EXPECT_GT(now.written, 1'000U);
  EXPECT_GE(seen.accepted, 10 * now.written) << "not much of an overload";
  EXPECT_EQ(now.queued, seen.accepted);
  EXPECT_EQ(now.coalesced + now.skipped + now.failed + now.pending, 0U);
  EXPECT_EQ(now.dropped, seen.accepted - now.written) << "every drop is counted";
  EXPECT_EQ(report.dropped, now.dropped);
  EXPECT_EQ(below_->count("n"), now.written) << "and every row is there";
  EXPECT_LE(seen.most_pending, options.max_entries);
  EXPECT_LE(seen.most_bytes, options.max_bytes);
  EXPECT_LE(seen.grown, std::size_t{64} << 20U);
  EXPECT_LE(seen.slow, 20 + seen.accepted / 1000) << "nobody waits for the database";
  EXPECT_LT(seen.longest, 60s);
}

TEST_F(WriteBehindOverload, BlocksNobodyBeyondHisDeadline) {
  const auto behind =
      make_write_behind(below_, {.max_entries = 200, .batch_entries = 100, .block_for = 1ms});
  const auto seen = storm(*behind, duration() / 3);
  EXPECT_TRUE(behind->close(steady::now() + 60s).complete());
  const auto now = behind->numbers();
  std::cout << seen.accepted << " accepted, " << seen.refused << " refused; a put took "
            << std::chrono::duration_cast<std::chrono::microseconds>(seen.longest).count()
            << " us at most\n";
  EXPECT_GT(seen.refused, 0U) << "not much of an overload";
  EXPECT_EQ(now.refused, seen.refused);
  EXPECT_EQ(now.queued, seen.accepted);
  EXPECT_EQ(now.written, seen.accepted) << "what was accepted is written";
  EXPECT_EQ(below_->count("n"), seen.accepted);
  EXPECT_LE(seen.slow, 20 + (seen.accepted + seen.refused) / 1000)
      << "a millisecond, and what a busy machine adds";
  EXPECT_LT(seen.longest, 60s);
}

}  // namespace
}  // namespace holdfast::test
