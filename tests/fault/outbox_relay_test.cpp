// Relays on a disk that is full for a while.

#include <holdfast/error.hpp>
#include <holdfast/outbox/memory.hpp>
#include <holdfast/outbox/relay.hpp>

#include "support/limited_disk.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

namespace {

using holdfast::delivery;
using holdfast::test::limited_disk;

class OutboxRelayFault : public ::testing::Test {
 protected:
  holdfast::outbox outbox_{holdfast::make_memory_outbox()};
  std::vector<std::string> acknowledged_{};

  /// Delivers events until one fails, or this many.
  int deliver(const holdfast::event_handler& handler, int count) {
    for (int i = 0; i < count; ++i) {
      outbox_.publish({.type = "t", .payload = "{\"n\":\"" + std::string(3000, 'x') + "\"}"});
      const auto claim = outbox_.claim({.most = 1});
      const delivery one(outbox_, claim.events.at(0), claim.fence, {});
      try {
        if (!handler(one).is_done()) return i;
      } catch (const holdfast::error&) {
        return i;
      }
      acknowledged_.push_back(holdfast::relay::to_json(one));
    }
    return count;
  }
  static std::vector<std::string> lines_of(const std::filesystem::path& file) {
    std::vector<std::string> lines;
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
  }
};

TEST_F(OutboxRelayFault, AFullDiskDoesNotLoseTheNextEvent) {
  limited_disk disk;
  const auto file = disk.path() / "events.jsonl";
  const auto handler = holdfast::relay::json_lines(file.string());
  ASSERT_EQ(deliver(handler, 1), 1);
  disk.leave(8192);
  ASSERT_LT(deliver(handler, 100), 100) << "the disk did not become full";
  disk.leave(1 << 20U);
  ASSERT_EQ(deliver(handler, 3), 3);
  EXPECT_EQ(lines_of(file), acknowledged_) << "half a line stays, or the next one is behind it";
}

TEST_F(OutboxRelayFault, AHalfLineOfAnEarlierRunIsNotContinued) {
  limited_disk disk;
  const auto file = disk.path() / "events.jsonl";
  std::ofstream(file) << "{\"v\":1,\"id\":\"half";
  ASSERT_EQ(deliver(holdfast::relay::json_lines(file.string()), 2), 2);
  auto expected = acknowledged_;
  expected.insert(expected.begin(), "{\"v\":1,\"id\":\"half");
  EXPECT_EQ(lines_of(file), expected);
}

}  // namespace
