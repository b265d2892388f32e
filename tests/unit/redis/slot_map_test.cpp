#include "redis/slot_map.hpp"

#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

namespace {

using namespace holdfast;
using namespace holdfast::detail::redis;

reply slots_reply(std::vector<std::tuple<int, int, std::vector<std::string>>> ranges) {
  reply::list result;
  for (const auto& [first, last, hosts] : ranges) {
    reply::list range{reply(std::int64_t{first}), reply(std::int64_t{last})};
    std::int64_t port = 7000;
    for (const auto& host : hosts) {
      range.emplace_back(reply::list{host == "nil" ? reply() : reply(host),
                                     reply(port + first % 10), reply(std::string("id"))});
      port += 100;
    }
    result.emplace_back(std::move(range));
  }
  return reply(std::move(result));
}

TEST(RedisSlotMap, ReadsClusterSlots) {
  slot_map map(slots_reply({{0, 8190, {"127.0.0.1", "127.0.0.1"}}, {8191, 16382, {"nil"}}}),
               "10.0.0.9:7000");
  ASSERT_NE(map.master_of(0), nullptr);
  EXPECT_EQ(*map.master_of(8190), "127.0.0.1:7000");
  EXPECT_EQ(*map.master_of(8191), "10.0.0.9:7001");
  EXPECT_EQ(map.master_of(16383), nullptr);
  EXPECT_EQ(map.covered(), 16383U);
  ASSERT_EQ(map.nodes().size(), 3U);
  EXPECT_FALSE(map.nodes()[1].master);
  map.move(5, "10.0.0.9:7001");
  EXPECT_EQ(*map.master_of(5), "10.0.0.9:7001");
  EXPECT_EQ(*map.master_of(4), "127.0.0.1:7000");
  map.move(16383, "new:1");
  EXPECT_EQ(*map.master_of(16383), "new:1");
}

TEST(RedisSlotMap, TranslatesAddressesAndRefusesNonsense) {
  const auto translate = [](const std::string& address) { return "proxy-of-" + address; };
  EXPECT_EQ(*slot_map(slots_reply({{0, 0, {"a"}}}), "x:1", translate).master_of(0),
            "proxy-of-a:7000");
  EXPECT_THROW(slot_map(reply(std::string("OK")), "x:1"), error);
  EXPECT_THROW(slot_map(slots_reply({{0, 16384, {"a"}}}), "x:1"), error);
  EXPECT_THROW(slot_map(slots_reply({{5, 4, {"a"}}}), "x:1"), error);
  EXPECT_THROW(slot_map(slots_reply({{0, 5, {}}}), "x:1"), error);
  EXPECT_THROW(slot_map(slots_reply({{0, 5, {"a b"}}}), "x:1"), error);
}

}  // namespace
