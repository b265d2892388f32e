// Pipelines, redirects, scripts and doubt, without a server.

#include "redis/delivery.hpp"

#include <holdfast/key/redis.hpp>

#include "redis/flight.hpp"
#include "redis/server_error.hpp"
#include "redis/slot_map.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace holdfast;
using namespace holdfast::redis;
using namespace std::chrono_literals;

constexpr std::string_view here = "127.0.0.1:7000";

reply said(std::string_view text) { return reply(server_error(text)); }
reply ok() { return reply(std::string("OK")); }
const error lost(errc::unavailable, "the connection was lost", {.transient = true});

void answer(delivery& to, std::size_t index, std::vector<reply> replies) { to.answered(index, replies, here); }

TEST(RedisVerdict, FollowsOnlyWhatIsWhole) {
  EXPECT_EQ(judge(said("MOVED 3999 127.0.0.1:6381"), here).address, "127.0.0.1:6381");
  EXPECT_EQ(judge(said("MOVED 3999 127.0.0.1:6381"), here).slot, 3999);
  EXPECT_EQ(judge(said("MOVED 3999 :6381"), here).address, "127.0.0.1:6381");
  EXPECT_EQ(judge(said("MOVED 3999 ?:6381"), here).address, "127.0.0.1:6381");
  EXPECT_EQ(judge(said("ASK 3999 ::1:6381"), here).address, "::1:6381");
  EXPECT_EQ(judge(said("ASK 3999 host.example:6381"), here).what, verdict::kind::ask);
  for (const char* bad : {"MOVED", "MOVED 1", "MOVED x 127.0.0.1:1", "MOVED 16384 127.0.0.1:1", "MOVED 1 127.0.0.1", "MOVED 1 127.0.0.1:0",
                          "MOVED 1 127.0.0.1:65536", "MOVED 1 /etc/passwd:1", "MOVED -1 127.0.0.1:1", "MOVEDX 1 127.0.0.1:1"})
    EXPECT_EQ(judge(said(bad), here).what, verdict::kind::take) << bad;
  for (const char* again :
       {"TRYAGAIN Multiple keys request during rehashing of slot", "CLUSTERDOWN The cluster is down", "CLUSTERDOWN Hash slot not served",
        "LOADING Redis is loading the dataset in memory", "LOADING Valkey is loading the dataset in memory",
        "READONLY You can't write against a read only replica.", "MASTERDOWN Link with MASTER is down",
        "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
        "UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)"})
    EXPECT_EQ(judge(said(again), here).what, verdict::kind::again) << again;
  EXPECT_EQ(judge(said("NOSCRIPT No matching script. Please use EVAL."), here).what, verdict::kind::no_script);
  // It ended like this, but it ran.
  EXPECT_EQ(judge(said("NOSCRIPT of my own"), here).what, verdict::kind::take);
  EXPECT_EQ(judge(said("READONLY You can't write script: abc, on @user_script:1."), here).what, verdict::kind::take);
  EXPECT_EQ(judge(ok(), here).what, verdict::kind::take);
}

TEST(RedisVerdict, WordsOfAScriptAreNotTheServers) {
  // redis.error_reply('BUSY ...') at the end of a script that has written: sent again, it would write again.
  for (const char* own : {"BUSY the lane has another worker", "TRYAGAIN later", "LOADING is not over", "READONLY lane", "CLUSTERDOWN by us",
                          "MASTERDOWN by us", "UNBLOCKED client unblocked via CLIENT UNBLOCK"})
    EXPECT_EQ(judge(said(own), here).what, verdict::kind::take) << own;
}

TEST(RedisServerError, ClassesAreThoseOfTheCaller) {
  const auto is = [](std::string_view text, errc code, bool transient) {
    const auto made = server_error(text);
    EXPECT_EQ(made.code(), code) << text;
    EXPECT_EQ(made.transient(), transient) << text;
    EXPECT_FALSE(made.in_doubt()) << text;
  };
  is("OOM command not allowed", errc::unavailable, true);
  is("NOREPLICAS Not enough good replicas to write.", errc::unavailable, true);
  is("NOAUTH Authentication required.", errc::permission, false);
  is("WRONGPASS invalid username-password pair", errc::permission, false);
  is("NOPERM this user has no permissions", errc::permission, false);
  is("WRONGTYPE Operation against a key", errc::invalid_argument, false);
  is("ERR unknown command 'x'", errc::grammar, false);
  is("ERR value is not an integer or out of range", errc::invalid_argument, false);
  is("CROSSSLOT Keys in request don't hash to the same slot", errc::invalid_argument, false);
  is("ERR max number of clients reached", errc::unavailable, true);
  is("UNBLOCKED force unblock from blocking operation", errc::unavailable, true);
  is("", errc::invalid_argument, false);
  EXPECT_EQ(server_error("oops").backend_code(), "ERR");
  EXPECT_FALSE(server_error("").message().empty());
}

TEST(RedisDelivery, AnswersInTheOrderOfTheCommands) {
  const std::array<command, 3> commands{command("GET").key("a"), command("GET").key("b"), command("GET").key("c")};
  delivery made(commands, {.cluster = true, .attempts = 5});
  ASSERT_EQ(made.waiting().size(), 3U);
  EXPECT_EQ(made.at(0).slot, key::redis_slot("a"));
  answer(made, 2, {reply(std::int64_t{3})});
  answer(made, 0, {said("MOVED 15495 127.0.0.1:7001")});
  answer(made, 1, {reply(std::int64_t{2})});
  auto next = made.end_round();
  EXPECT_TRUE(next.refresh);
  EXPECT_EQ(next.pause.count(), 0);
  ASSERT_EQ(next.moved.size(), 1U);
  EXPECT_EQ(next.moved[0].slot, 15495);
  EXPECT_EQ(made.waiting(), std::vector<std::size_t>{0});
  EXPECT_TRUE(made.at(0).target.empty());  // the map knows
  answer(made, 0, {reply(std::int64_t{1})});
  (void)made.end_round();
  EXPECT_TRUE(made.waiting().empty());
  const auto replies = made.take();
  for (std::int64_t i = 0; i < 3; ++i) EXPECT_EQ(replies[static_cast<std::size_t>(i)].integer(), i + 1);
}

TEST(RedisDelivery, AskIsForOnce) {
  const command one = command("GET").key("a");
  delivery made({&one, 1}, {.cluster = true, .attempts = 5});
  answer(made, 0, {said("ASK 15495 127.0.0.1:7001")});
  auto next = made.end_round();
  EXPECT_FALSE(next.refresh);
  EXPECT_TRUE(next.moved.empty());
  EXPECT_TRUE(made.at(0).asking);
  EXPECT_EQ(made.at(0).target, "127.0.0.1:7001");
  known_scripts scripts;
  flight out(made, "127.0.0.1:7001", scripts);
  out.add(0);
  EXPECT_TRUE(out.bytes().starts_with("*1\r\n$6\r\nASKING\r\n"));
  EXPECT_TRUE(out.take(ok()));  // to ASKING
  EXPECT_FALSE(out.complete());
  EXPECT_TRUE(out.take(said("TRYAGAIN Multiple keys request during rehashing of slot")));
  EXPECT_TRUE(out.complete());
  out.land(nullptr);
  next = made.end_round();
  EXPECT_GT(next.pause.count(), 0);
  EXPECT_FALSE(made.at(0).asking);
  EXPECT_TRUE(made.at(0).target.empty());
}

TEST(RedisDelivery, AskGoesToTheTranslatedAddress) {
  const command one = command("GET").key("a");
  delivery made({&one, 1}, {.cluster = true, .attempts = 5, .translate = [](const std::string& from) { return "proxy-of-" + from; }});
  answer(made, 0, {said("ASK 15495 10.0.0.1:7001")});
  (void)made.end_round();
  EXPECT_EQ(made.at(0).target, "proxy-of-10.0.0.1:7001");
}

TEST(RedisDelivery, ForgottenScriptCostsNoAttempt) {
  const script body("return 1");
  const command one = command(body);
  delivery made({&one, 1}, {.attempts = 1});
  answer(made, 0, {said("NOSCRIPT No matching script. Please use EVAL.")});
  (void)made.end_round();
  ASSERT_EQ(made.waiting().size(), 1U);
  EXPECT_TRUE(made.at(0).whole);
  answer(made, 0, {said("NOSCRIPT No matching script. Please use EVAL.")});  // it had the text: this is the answer
  (void)made.end_round();
  EXPECT_TRUE(made.waiting().empty());
}

TEST(RedisDelivery, RefusesKeysInDifferentSlotsAndNamesThem) {
  const std::vector<command> commands{command("GET").key("a"), command("MGET").key("{x}1").key("{x}2").key("other")};
  try {
    delivery made(commands, {.cluster = true});
    FAIL();
  } catch (const error& refused) {
    EXPECT_EQ(refused.code(), errc::invalid_argument);
    EXPECT_EQ(refused.path(), "commands[1]");
    EXPECT_NE(refused.message().find("'{x}1'"), std::string::npos);
    EXPECT_NE(refused.message().find("'other'"), std::string::npos);
  }
  EXPECT_NO_THROW(delivery(commands, {.cluster = false}));
}

TEST(RedisDelivery, StopsAfterItsAttempts) {
  const command one = command("GET").key("a");
  delivery made({&one, 1}, {.cluster = true, .attempts = 4});
  std::chrono::microseconds last{};
  for (int i = 0; i < 4; ++i) {
    ASSERT_EQ(made.waiting().size(), 1U) << i;
    answer(made, 0, {said("CLUSTERDOWN The cluster is down")});
    const auto next = made.end_round();
    if (i < 3) {
      EXPECT_GT(next.pause, last);  // longer each time
      last = next.pause;
    }
  }
  EXPECT_TRUE(made.waiting().empty());
  const auto problem = made.take()[0].problem();
  EXPECT_EQ(problem.code(), errc::unavailable);
  EXPECT_EQ(problem.backend_code(), "CLUSTERDOWN");
  EXPECT_TRUE(problem.transient());
  EXPECT_FALSE(problem.in_doubt());
}

TEST(RedisDelivery, RedirectsInCirclesEnd) {
  const command one = command("GET").key("a");
  delivery made({&one, 1}, {.cluster = true, .attempts = 8});
  int rounds = 0;
  while (!made.waiting().empty()) {
    ASSERT_LT(++rounds, 10);
    answer(made, 0, {said(rounds % 2 == 0 ? "MOVED 15495 127.0.0.1:7001" : "ASK 15495 127.0.0.1:7002")});
    (void)made.end_round();
  }
  EXPECT_EQ(rounds, 8);
  EXPECT_TRUE(made.take()[0].problem().transient());
}

TEST(RedisDelivery, LostReplyIsInDoubtAndNeverResent) {
  const command one = command("INCR").key("a");
  delivery made({&one, 1}, {.attempts = 5});
  made.interrupted(0, {}, true, lost, here);
  (void)made.end_round();
  EXPECT_TRUE(made.waiting().empty());
  const auto problem = made.take()[0].problem();
  EXPECT_TRUE(problem.in_doubt());
  EXPECT_TRUE(problem.transient());
  EXPECT_EQ(made.counts().in_doubt, 1U);
}

TEST(RedisDelivery, WhatWasNotSentIsNotInDoubt) {
  const command one = command("INCR").key("a");
  delivery made({&one, 1}, {.attempts = 2});
  made.interrupted(0, {}, false, lost, here);
  (void)made.end_round();
  ASSERT_EQ(made.waiting().size(), 1U);
  made.interrupted(0, {}, false, lost, here);
  (void)made.end_round();
  EXPECT_TRUE(made.waiting().empty());
  EXPECT_FALSE(made.take()[0].problem().in_doubt());
}

TEST(RedisDelivery, IdempotentIsResentAndStaysInDoubtWhenItFails) {
  const command one = command("SET").key("a").arg("1").idempotent();
  delivery made({&one, 1}, {.attempts = 5});
  made.interrupted(0, {}, true, lost, here);
  (void)made.end_round();
  ASSERT_EQ(made.waiting().size(), 1U);
  made.give_up(error(errc::timeout, "too late", {.transient = true}));
  const auto problem = made.take()[0].problem();
  EXPECT_EQ(problem.code(), errc::timeout);
  EXPECT_TRUE(problem.in_doubt());
  EXPECT_EQ(made.counts().resent, 1U);
}

TEST(RedisDelivery, RefusalOfASecondTryLeavesTheFirstInDoubt) {
  const command one = command("SET").key("a").arg("1").idempotent();
  delivery made({&one, 1}, {.attempts = 5});
  made.interrupted(0, {}, true, lost, here);
  (void)made.end_round();
  answer(made, 0, {said("OOM command not allowed when used memory > 'maxmemory'.")});
  (void)made.end_round();
  const auto problem = made.take()[0].problem();
  EXPECT_EQ(problem.backend_code(), "OOM");
  EXPECT_TRUE(problem.in_doubt());  // the first one may have run
  EXPECT_EQ(made.counts().in_doubt, 1U);
}

TEST(RedisDelivery, WaitGoesWithItsCommand) {
  const std::vector<command> commands{command("SET").key("a").arg("1"), wait_for_replicas(1, 100ms), command("SET").key("b").arg("2")};
  delivery made(commands, {.cluster = true, .attempts = 5});
  ASSERT_EQ(made.waiting().size(), 2U);
  EXPECT_EQ(made.at(0).count, 2U);
  // The command was not run there, so what its WAIT says is about nothing: both go again.
  answer(made, 0, {said("MOVED 15495 127.0.0.1:7001"), reply(std::int64_t{1})});
  answer(made, 1, {ok()});
  (void)made.end_round();
  ASSERT_EQ(made.waiting().size(), 1U);
  known_scripts scripts;
  flight out(made, "127.0.0.1:7001", scripts);
  out.add(0);
  EXPECT_NE(out.bytes().find("WAIT"), std::string::npos);
  answer(made, 0, {ok(), reply(std::int64_t{0})});
  const auto replies = made.take();
  EXPECT_EQ(replies[0].text(), "OK");
  EXPECT_EQ(replies[1].integer(), 0);
  EXPECT_EQ(replies[2].text(), "OK");
}

TEST(RedisDelivery, LostWaitLeavesItsCommandAnswered) {
  const std::vector<command> commands{command("SET").key("a").arg("1"), wait_for_replicas(1, 100ms)};
  delivery made(commands, {.attempts = 5});
  std::vector<reply> got{ok()};
  made.interrupted(0, got, true, lost, here);
  (void)made.end_round();
  EXPECT_TRUE(made.waiting().empty());
  const auto replies = made.take();
  EXPECT_EQ(replies[0].text(), "OK");
  EXPECT_TRUE(replies[1].problem().in_doubt());
}

TEST(RedisDelivery, RefusesAFollowerOfNothing) {
  const command alone = wait_for_replicas(1, 100ms);
  EXPECT_THROW(delivery({&alone, 1}, {}), error);
  const std::vector<command> keyed{command("PING"), command("GET").key("a").after_previous()};
  EXPECT_THROW(delivery(keyed, {}), error);
}

TEST(RedisFlight, SentAndUnsentAreToldApartByTheirLastByte) {
  const std::vector<command> commands{command("INCR").key("a"), command("INCR").key("b"), command("INCR").key("c")};
  std::string first_two;
  commands[0].write(first_two);
  commands[1].write(first_two);
  for (const bool whole : {true, false}) {
    delivery made(commands, {.attempts = 1});
    known_scripts scripts;
    flight out(made, std::string(here), scripts);
    for (const auto each : made.waiting()) out.add(each);
    out.advance(first_two.size() - (whole ? 0 : 1));
    EXPECT_TRUE(out.take(reply(std::int64_t{1})));
    out.land(&lost);
    (void)made.end_round();
    const auto replies = made.take();
    EXPECT_EQ(replies[0].integer(), 1);
    EXPECT_EQ(replies[1].problem().in_doubt(), whole);
    EXPECT_FALSE(replies[2].problem().in_doubt());
  }
}

TEST(RedisFlight, ReplyThatCannotBeReadIsTheFaultOfItsOwnCommandOnly) {
  const std::vector<command> commands{command("GET").key("a").idempotent(), command("GET").key("big").idempotent(),
                                      command("GET").key("c").idempotent(), command("INCR").key("d")};
  const error too_large(errc::too_large, "a reply of Redis takes more than 10 bytes");
  delivery made(commands, {.cluster = true, .attempts = 5});
  known_scripts scripts;
  flight out(made, std::string(here), scripts);
  for (const auto each : made.waiting()) out.add(each);
  out.advance(out.bytes().size());
  EXPECT_TRUE(out.take(ok()));
  out.land(&too_large);
  (void)made.end_round();
  EXPECT_EQ(made.waiting(), std::vector<std::size_t>{2});  // asking for the large one again would bring it again
  answer(made, 2, {ok()});
  const auto replies = made.take();
  EXPECT_EQ(replies[0].text(), "OK");
  EXPECT_EQ(replies[1].problem().code(), errc::too_large);
  EXPECT_TRUE(replies[1].problem().in_doubt());
  EXPECT_EQ(replies[2].text(), "OK");
  EXPECT_EQ(replies[3].problem().code(), errc::unavailable);
  EXPECT_TRUE(replies[3].problem().transient());
  EXPECT_TRUE(replies[3].problem().in_doubt());
}

TEST(RedisFlight, ScriptGoesWholeOnceAndAgainWhenForgotten) {
  const script body("return KEYS[1]");
  const std::vector<command> commands{command(body).key("a"), command(body).key("b")};
  known_scripts scripts;
  const auto count = [](const std::string& text, std::string_view word) {
    std::size_t found = 0;
    for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
    return found;
  };
  {
    delivery made(commands, {.attempts = 5});
    flight out(made, std::string(here), scripts);
    for (const auto each : made.waiting()) out.add(each);
    EXPECT_EQ(count(out.bytes(), "return KEYS"), 1U);
    EXPECT_EQ(count(out.bytes(), "EVALSHA"), 1U);
    EXPECT_EQ(out.whole_scripts(), 1U);
  }
  delivery made(commands, {.attempts = 5});
  {
    flight out(made, std::string(here), scripts);
    for (const auto each : made.waiting()) out.add(each);
    EXPECT_EQ(count(out.bytes(), "EVALSHA"), 2U);
    EXPECT_TRUE(out.take(said("NOSCRIPT No matching script. Please use EVAL.")));
    EXPECT_TRUE(out.take(said("NOSCRIPT No matching script. Please use EVAL.")));
    EXPECT_FALSE(out.take(ok()));  // one too many
    out.land(nullptr);
  }
  EXPECT_EQ(made.end_round().pause.count(), 0);
  ASSERT_EQ(made.waiting().size(), 2U);
  flight out(made, std::string(here), scripts);
  for (const auto each : made.waiting()) out.add(each);
  EXPECT_EQ(count(out.bytes(), "return KEYS"), 2U);
  EXPECT_TRUE(out.take(reply(std::string("a"))));
  EXPECT_TRUE(out.take(reply(std::string("b"))));
  out.land(nullptr);
  (void)made.end_round();
  const auto replies = made.take();
  EXPECT_EQ(replies[0].text(), "a");
  EXPECT_EQ(replies[1].text(), "b");
}

reply slots_reply(std::vector<std::tuple<int, int, std::vector<std::string>>> ranges) {
  reply::list all;
  for (const auto& [first, last, hosts] : ranges) {
    reply::list each{reply(std::int64_t{first}), reply(std::int64_t{last})};
    std::int64_t port = 7000;
    for (const auto& host : hosts) {
      each.emplace_back(reply::list{host == "nil" ? reply() : reply(host), reply(port + first % 10), reply(std::string("id"))});
      port += 100;
    }
    all.emplace_back(std::move(each));
  }
  return reply(std::move(all));
}

TEST(RedisSlotMap, ReadsWhatTheClusterSays) {
  slot_map map(slots_reply({{0, 8190, {"127.0.0.1", "127.0.0.1"}}, {8191, 16382, {"nil"}}}), "10.0.0.9:7000");
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
  const auto translate = [](const std::string& from) { return "proxy-of-" + from; };
  EXPECT_EQ(*slot_map(slots_reply({{0, 0, {"a"}}}), "x:1", translate).master_of(0), "proxy-of-a:7000");
  EXPECT_THROW(slot_map(ok(), "x:1"), error);
  EXPECT_THROW(slot_map(slots_reply({{0, 16384, {"a"}}}), "x:1"), error);
  EXPECT_THROW(slot_map(slots_reply({{5, 4, {"a"}}}), "x:1"), error);
  EXPECT_THROW(slot_map(slots_reply({{0, 5, {}}}), "x:1"), error);
  EXPECT_THROW(slot_map(slots_reply({{0, 5, {"a b"}}}), "x:1"), error);
}

}  // namespace
