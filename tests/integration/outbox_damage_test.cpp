// The damage campaign on Redis: every field of every structure of a lane is deleted, truncated or
// replaced, one at a time. After `fsck --repair` all other events are delivered, in order.
//
// HOLDFAST_OUTBOX_DAMAGE=all runs every case; otherwise every third.

#include <holdfast/database.hpp>
#include <holdfast/outbox.hpp>
#include <holdfast/redis.hpp>

#include "outbox/redis/backend.hpp"
#include "support/redis_server.hpp"
#include "support/shared_server.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

using detail::outbox::redis_lane;

/// One change of one structure by another program.
struct damage {
  std::string name{};
  redis_lane::key structure = redis_lane::entries;
  /// Commands without the key, which comes after the first word
  std::vector<std::vector<std::string>> commands{};
};

/// An outbox with events in every state. It can be put back into this state, and damaged.
class damaged_lane {
 public:
  damaged_lane() {
    publish_all();
    set_states();
    for (const auto& key : lane_.keys) {
      const auto dump = client_.call(redis::command("DUMP").key(key));
      dumps_.push_back(dump.is_nil() ? std::string() : dump.text());
    }
    lock_ = client_.call(redis::command("GET").key(lane_[redis_lane::lock])).text();
  }

  /// Puts every structure back into its first state.
  void restore() const {
    std::vector<redis::command> commands;
    for (std::size_t i = 0; i < lane_.keys.size(); ++i) {
      commands.push_back(redis::command("DEL").key(lane_.keys[i]));
      if (dumps_[i].empty() || i == redis_lane::lock) continue;
      commands.push_back(
          redis::command("RESTORE").key(lane_.keys[i]).arg("0").arg(dumps_[i]).arg("REPLACE"));
    }
    commands.push_back(
        redis::command("SET").key(lane_[redis_lane::lock]).arg(lock_).arg("PX").arg("3600000"));
    for (const auto& reply : client_.pipeline(commands)) (void)reply.checked();
  }

  void apply(const damage& damage) const {
    for (const auto& words : damage.commands) {
      redis::command command(words.front());
      command.key(lane_[damage.structure]);
      for (std::size_t i = 1; i < words.size(); ++i) command.arg(words[i]);
      (void)client_.call(command);
    }
  }

  [[nodiscard]] std::vector<damage> all_damages() const {
    std::vector<damage> result;
    for (const auto hash : {redis_lane::entries, redis_lane::claims, redis_lane::heads,
                            redis_lane::errors, redis_lane::tickets, redis_lane::meta})
      add_hash_damages(hash, result);
    for (const auto set : {redis_lane::pending, redis_lane::followers, redis_lane::parked,
                           redis_lane::done, redis_lane::expiry_due})
      add_set_damages(set, result);
    for (const auto& text : {std::string("x"), std::string("|"), lock_})
      result.push_back({.name = "lock '" + text + "' without an end",
                        .structure = redis_lane::lock,
                        .commands = {{"SET", text}}});
    for (std::size_t i = 1; i < lane_.keys.size(); ++i) {
      const auto structure = static_cast<redis_lane::key>(i);
      result.push_back(
          {.name = lane_.keys[i] + " deleted", .structure = structure, .commands = {{"DEL"}}});
      if (structure == redis_lane::lock) continue;
      result.push_back({.name = lane_.keys[i] + " is a string",
                        .structure = structure,
                        .commands = {{"SET", "x"}}});
    }
    return result;
  }

  /// Claims and acknowledges what is due, a few times. Returns the ids in the order of delivery.
  [[nodiscard]] std::vector<std::string> deliver(int rounds) const {
    std::vector<std::string> delivered;
    for (int round = 0; round < rounds; ++round) {
      const auto claim = box_.claim({.run = 2, .lease = std::chrono::minutes(10)});
      for (const auto& event : claim.events) {
        if (box_.ack(claim.fence, event)) delivered.push_back(event.event.id);
      }
      // They follow events that are settled now, and could not be parked before.
      std::vector<settlement> releases;
      for (const auto& [id, key] : claim.left_out)
        releases.push_back({.id = id, .key = key, .action = settlement::kind::release});
      if (!releases.empty()) (void)box_.settle(0, claim.fence, releases);
      if (claim.events.empty() && claim.parked.empty()) break;
    }
    return delivered;
  }

  void replay_parked() const {
    std::vector<std::string> ids;
    for (const auto& record : box_.admin().scan(scan_what::parked, {}, 1000).records)
      ids.push_back(record.details.event.id);
    if (!ids.empty()) (void)box_.admin().replay(ids);
  }

  [[nodiscard]] const outbox& box() const { return box_; }
  /// Key -> ids in the order of publishing; events without a key under ""
  [[nodiscard]] const std::map<std::string, std::vector<std::string>>& ids() const { return ids_; }
  [[nodiscard]] const std::string& skipped() const { return skipped_; }

 private:
  void publish(const std::string& key, int count) {
    for (int i = 0; i < count; ++i)
      ids_[key].push_back(box_.publish({.type = "t", .key = key, .payload = "\"" + key + "\""}).id);
  }
  void publish_all() {
    // Keyed first, so that each claim below takes what it is meant for.
    publish("skipped", 1);
    const auto first = box_.claim();
    skipped_ = first.events.at(0).event.id;
    EXPECT_TRUE(box_.park(first.fence, first.events[0], park_policy::skip, "skipped"));
    publish("skipped", 2);
    publish("blocked", 3);
    publish("claimed", 4);
    publish("retried", 2);
    publish("", 2);
  }
  void set_states() {
    const auto claim = box_.claim({.run = 2, .lease = std::chrono::milliseconds(1)});
    for (const auto& event : claim.events) {
      if (event.event.id == ids_["blocked"].front()) {
        EXPECT_TRUE(box_.park(claim.fence, event, park_policy::block, "blocked"));
      }
      if (event.event.id == ids_["retried"].front()) {
        EXPECT_TRUE(box_.fail(claim.fence, event, std::chrono::milliseconds(1), "later"));
      }
      if (event.event.id == ids_[""].front()) {
        EXPECT_EQ(box_.effect_once(claim.fence, event, {}).status, commit_status::done);
        EXPECT_TRUE(box_.park(claim.fence, event, park_policy::skip, "parked"));
      }
      if (event.event.id == ids_["skipped"][1]) {
        EXPECT_TRUE(box_.ack(claim.fence, event));
      }
    }
    auto& skipped = ids_["skipped"];
    skipped.erase(skipped.begin() + 1);
    publish("new", 3);
    publish("other", 2);
    publish("", 1);
    (void)box_.schedule("ticket", std::chrono::hours(1), {.type = "t", .key = "ticket"});
    EXPECT_TRUE(box_.lock(0, "owner", std::chrono::hours(1)).held);
    std::this_thread::sleep_for(
        std::chrono::milliseconds(5));  // leases and delays of a millisecond
    EXPECT_TRUE(box_.admin().check().well());
  }

  void add_hash_damages(redis_lane::key hash, std::vector<damage>& result) const {
    const auto pairs = client_.call(redis::command("HGETALL").key(lane_[hash])).elements();
    for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
      const auto& field = pairs[i].text();
      const auto& value = pairs[i + 1].text();
      const auto add = [&](const std::string& kind, std::vector<std::string> command) {
        result.push_back({.name = lane_[hash] + " " + field + " " + kind,
                          .structure = hash,
                          .commands = {std::move(command)}});
      };
      add("deleted", {"HDEL", field});
      add("cut", {"HSET", field, value.substr(0, value.size() / 2)});
      add("empty", {"HSET", field, ""});
      add("replaced", {"HSET", field, "x"});
      // The value of another field
      add("exchanged", {"HSET", field, pairs[(i + 3) % pairs.size()].text()});
    }
  }
  void add_set_damages(redis_lane::key set, std::vector<damage>& result) const {
    const auto pairs =
        client_.call(redis::command("ZRANGE").key(lane_[set]).arg("0").arg("-1").arg("WITHSCORES"))
            .elements();
    for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
      const auto& member = pairs[i].text();
      const auto& score = pairs[i + 1].text();
      const auto add = [&](const std::string& kind,
                           std::vector<std::vector<std::string>> commands) {
        result.push_back({.name = lane_[set] + " " + member + " " + kind,
                          .structure = set,
                          .commands = std::move(commands)});
      };
      add("removed", {{"ZREM", member}});
      add("cut", {{"ZREM", member}, {"ZADD", score, member.substr(0, member.size() / 2)}});
      add("replaced", {{"ZREM", member}, {"ZADD", score, "x"}});
      for (const char* other : {"inf", "-inf", "1e300", "-5", "7"})
        add(other, {{"ZADD", other, member}});
    }
  }

  const redis_server::endpoint& server_ = shared_server<redis_server>();
  std::string prefix_ = "{" + server_.unique_prefix("damage") + "}";
  redis_lane lane_ = detail::outbox::make_lanes(prefix_, 1).front();
  redis::client client_{server_.url()};
  outbox box_ = open(server_.url()).outbox({.prefix = prefix_});
  std::map<std::string, std::vector<std::string>> ids_{};
  std::string skipped_{};
  std::vector<std::string> dumps_{};
  std::string lock_{};
};

/// The id of an event whose entry was damaged, and which may therefore be lost or parked.
std::string damaged_event(const damage& damage, const damaged_lane& lane) {
  if (damage.structure != redis_lane::entries) return {};
  for (const auto& [key, ids] : lane.ids()) {
    for (const auto& id : ids) {
      if (damage.name.find(id) != std::string::npos) return id;
    }
  }
  return {};
}

void expect_order(const damaged_lane& lane, const std::vector<std::string>& delivered,
                  const std::string& excepted) {
  for (const auto& [key, ids] : lane.ids()) {
    std::ptrdiff_t last = -1;
    for (const auto& id : ids) {
      EXPECT_LE(std::ranges::count(delivered, id), 1) << "delivered twice: " << id;
      const auto position = std::ranges::find(delivered, id);
      if (position == delivered.end()) {
        EXPECT_EQ(id, excepted) << "not delivered, of key '" << key << "'";
        continue;
      }
      if (key.empty() || id == lane.skipped() || id == excepted) continue;
      EXPECT_GT(position - delivered.begin(), last) << "out of order, of key '" << key << "'";
      last = position - delivered.begin();
    }
  }
}

TEST(OutboxDamage, EveryFieldIsRepaired) {
  const damaged_lane lane;
  ASSERT_FALSE(::testing::Test::HasFailure());
  const auto damages = lane.all_damages();
  const char* const selection =
      std::getenv("HOLDFAST_OUTBOX_DAMAGE");  // NOLINT(concurrency-mt-unsafe)
  const bool all = selection != nullptr && std::string_view(selection) == "all";
  std::size_t runs = 0;
  for (std::size_t i = 0; i < damages.size(); i += all ? 1 : 3) {
    const auto& damage = damages[i];
    SCOPED_TRACE("case " + std::to_string(i) + ": " + damage.name);
    lane.restore();
    lane.apply(damage);
    (void)lane.box().admin().check(true);
    EXPECT_TRUE(lane.box().admin().check().well()) << "one repair is enough";
    auto delivered = lane.deliver(20);
    lane.replay_parked();
    for (const auto& id : lane.deliver(20)) delivered.push_back(id);
    expect_order(lane, delivered, damaged_event(damage, lane));
    EXPECT_TRUE(lane.box().admin().check().well());
    ++runs;
  }
  std::cout << runs << " of " << damages.size() << " cases\n";
}

/// Without a repair: the events of the other keys are delivered.
TEST(OutboxDamage, NoFieldStopsTheLane) {
  const damaged_lane lane;
  ASSERT_FALSE(::testing::Test::HasFailure());
  const auto damages = lane.all_damages();
  const char* const selection =
      std::getenv("HOLDFAST_OUTBOX_DAMAGE");  // NOLINT(concurrency-mt-unsafe)
  const bool all = selection != nullptr && std::string_view(selection) == "all";
  for (std::size_t i = 1; i < damages.size(); i += all ? 1 : 3) {
    const auto& damage = damages[i];
    if (damage.commands.front().front() == "DEL" ||
        damage.commands.front() == std::vector<std::string>{"SET", "x"})
      continue;  // of a whole structure
    SCOPED_TRACE("case " + std::to_string(i) + ": " + damage.name);
    lane.restore();
    lane.apply(damage);
    const auto delivered = lane.deliver(30);
    // Two keys that have nothing in common with the other events. At most one of them is damaged.
    std::size_t complete = 0;
    for (const char* key : {"new", "other"}) {
      const auto& ids = lane.ids().at(key);
      complete += std::ranges::all_of(ids,
                                      [&](const auto& id) {
                                        return std::ranges::find(delivered, id) != delivered.end();
                                      })
                      ? 1U
                      : 0U;
    }
    EXPECT_GE(complete, damage.name.find("paused") != std::string::npos ? 0U : 1U);
  }
}

/// A check takes few round trips, and no more for many events of one key than for many keys.
TEST(OutboxDamage, ACheckReadsInPages) {
  constexpr std::size_t count = 5000;
  for (const bool one_key : {true, false}) {
    const auto& server = shared_server<redis_server>();
    const auto client = std::make_shared<redis::client>(server.url());
    const auto prefix = "{" + server.unique_prefix("pages") + "}";
    const outbox box(
        std::make_shared<detail::outbox::redis_backend>(client, outbox_options{.prefix = prefix}),
        {.prefix = prefix});
    std::vector<event> events;
    for (std::size_t i = 0; i < count; ++i)
      events.push_back({.type = "t", .key = one_key ? "k" : "k" + std::to_string(i)});
    for (const auto& receipt : box.publish_all(events)) ASSERT_TRUE(receipt.safe());
    auto calls = client->count().calls;
    auto report = box.admin().check();
    EXPECT_TRUE(report.well());
    EXPECT_EQ(report.events, count);
    EXPECT_LT(client->count().calls - calls, count / 50);
    // Everything is damaged at once: each finding takes a bounded number of steps.
    for (const char* structure : {":pending", ":heads", ":followers", ":claims"}) {
      SCOPED_TRACE(structure);
      (void)server.run({"DEL", prefix + structure});
      calls = client->count().calls;
      (void)box.admin().check(true);
      EXPECT_LT(client->count().calls - calls, count / 20);
      EXPECT_TRUE(box.admin().check().well());
    }
    const auto claim = box.claim({.most = 1000, .run = 1000});
    EXPECT_EQ(claim.events.size(), 1000U);
    for (std::size_t i = 1; one_key && i < claim.events.size(); ++i)
      EXPECT_LT(claim.events[i - 1].sequence, claim.events[i].sequence);
  }
}

}  // namespace
}  // namespace holdfast::test
