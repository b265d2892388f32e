// Requests of a call and the batches that carry them, without a server: redirects, retries, scripts
// and doubt.

#include "redis/pipeline.hpp"

#include <holdfast/key/redis.hpp>

#include "redis/batch.hpp"
#include "redis/server_error.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace holdfast;
using namespace holdfast::detail::redis;
using namespace std::chrono_literals;

const std::string node_address = "127.0.0.1:7000";
const std::string other_node_address = "127.0.0.1:7001";
const error lost(errc::unavailable, "the connection was lost", {.transient = true});

reply server_says(std::string_view text) { return reply(server_error(text)); }
reply ok() { return reply(std::string("OK")); }

void receive(request& target, std::vector<reply> replies) {
  target.received = replies.size();
  std::ranges::move(replies, target.replies.begin());
}

void answer(pipeline& requests, std::size_t index, std::vector<reply> replies) {
  receive(requests.at(index), std::move(replies));
  requests.answered(requests.at(index), node_address);
}

/// A batch of all waiting requests.
batch encode_waiting(pipeline& requests, known_scripts& scripts,
                     const std::string& node = node_address) {
  batch result(requests, node);
  for (request* each : requests.waiting()) result.add(*each);
  result.encode(scripts);
  return result;
}

TEST(RedisPipeline, AnswersInTheOrderOfTheCommands) {
  const std::array<command, 3> commands{command("GET").key("a"), command("GET").key("b"),
                                        command("GET").key("c")};
  pipeline requests(commands, {.cluster = true, .attempts = 5});
  ASSERT_EQ(requests.waiting().size(), 3U);
  EXPECT_EQ(requests.at(0).slot, key::redis_slot("a"));
  answer(requests, 2, {reply(std::int64_t{3})});
  answer(requests, 0, {server_says("MOVED 15495 127.0.0.1:7001")});
  answer(requests, 1, {reply(std::int64_t{2})});
  auto next = requests.next_round();
  EXPECT_TRUE(next.refresh);
  EXPECT_EQ(next.pause.count(), 0);
  ASSERT_EQ(next.moved.size(), 1U);
  EXPECT_EQ(next.moved[0].slot, 15495);
  EXPECT_EQ(requests.waiting(), std::vector<request*>{&requests.at(0)});
  EXPECT_TRUE(requests.at(0).node.empty());  // the slot map has its node
  answer(requests, 0, {reply(std::int64_t{1})});
  (void)requests.next_round();
  EXPECT_TRUE(requests.waiting().empty());
  const auto replies = requests.take_replies();
  for (std::int64_t i = 0; i < 3; ++i)
    EXPECT_EQ(replies[static_cast<std::size_t>(i)].integer(), i + 1);
}

TEST(RedisPipeline, AskIsFollowedOnce) {
  const command single = command("GET").key("a");
  pipeline requests({&single, 1}, {.cluster = true, .attempts = 5});
  answer(requests, 0, {server_says("ASK 15495 127.0.0.1:7001")});
  auto next = requests.next_round();
  EXPECT_FALSE(next.refresh);
  EXPECT_TRUE(next.moved.empty());
  EXPECT_TRUE(requests.at(0).asking);
  EXPECT_EQ(requests.at(0).node, "127.0.0.1:7001");
  known_scripts scripts;
  batch sent = encode_waiting(requests, scripts, other_node_address);
  EXPECT_TRUE(sent.bytes().starts_with("*1\r\n$6\r\nASKING\r\n"));
  EXPECT_TRUE(sent.add_reply(ok()));  // the reply to ASKING
  EXPECT_FALSE(sent.complete());
  EXPECT_TRUE(
      sent.add_reply(server_says("TRYAGAIN Multiple keys request during rehashing of slot")));
  EXPECT_TRUE(sent.complete());
  sent.settle(nullptr);
  next = requests.next_round();
  EXPECT_GT(next.pause.count(), 0);
  EXPECT_FALSE(requests.at(0).asking);
  EXPECT_TRUE(requests.at(0).node.empty());
}

TEST(RedisPipeline, AskGoesToTheTranslatedAddress) {
  const command single = command("GET").key("a");
  pipeline requests({&single, 1},
                    {.cluster = true, .attempts = 5, .translate = [](const std::string& address) {
                       return "proxy-of-" + address;
                     }});
  answer(requests, 0, {server_says("ASK 15495 10.0.0.1:7001")});
  (void)requests.next_round();
  EXPECT_EQ(requests.at(0).node, "proxy-of-10.0.0.1:7001");
}

TEST(RedisPipeline, UnknownScriptDoesNotCountAsAnAttempt) {
  const script body("return 1");
  const command single = command(body);
  pipeline requests({&single, 1}, {.attempts = 1});
  answer(requests, 0, {server_says("NOSCRIPT No matching script. Please use EVAL.")});
  (void)requests.next_round();
  ASSERT_EQ(requests.waiting().size(), 1U);
  EXPECT_TRUE(requests.at(0).with_script_text);
  // The server had the text, so this is the answer.
  answer(requests, 0, {server_says("NOSCRIPT No matching script. Please use EVAL.")});
  (void)requests.next_round();
  EXPECT_TRUE(requests.waiting().empty());
}

TEST(RedisPipeline, RefusesKeysInDifferentSlotsAndNamesThem) {
  const std::vector<command> commands{command("GET").key("a"),
                                      command("MGET").key("{x}1").key("{x}2").key("other")};
  try {
    pipeline requests(commands, {.cluster = true});
    FAIL();
  } catch (const error& refused) {
    EXPECT_EQ(refused.code(), errc::invalid_argument);
    EXPECT_EQ(refused.path(), "commands[1]");
    EXPECT_NE(refused.message().find("'{x}1'"), std::string::npos);
    EXPECT_NE(refused.message().find("'other'"), std::string::npos);
  }
  EXPECT_NO_THROW(pipeline(commands, {.cluster = false}));
}

TEST(RedisPipeline, StopsAfterItsAttempts) {
  const command single = command("GET").key("a");
  pipeline requests({&single, 1}, {.cluster = true, .attempts = 4});
  std::chrono::microseconds last{};
  for (int i = 0; i < 4; ++i) {
    ASSERT_EQ(requests.waiting().size(), 1U) << i;
    answer(requests, 0, {server_says("CLUSTERDOWN The cluster is down")});
    const auto next = requests.next_round();
    if (i < 3) {
      EXPECT_GT(next.pause, last);  // longer each time
      last = next.pause;
    }
  }
  EXPECT_TRUE(requests.waiting().empty());
  const auto problem = requests.take_replies()[0].problem();
  EXPECT_EQ(problem.code(), errc::unavailable);
  EXPECT_EQ(problem.backend_code(), "CLUSTERDOWN");
  EXPECT_TRUE(problem.transient());
  EXPECT_FALSE(problem.in_doubt());
}

TEST(RedisPipeline, RedirectsInCirclesEnd) {
  const command single = command("GET").key("a");
  pipeline requests({&single, 1}, {.cluster = true, .attempts = 8});
  int rounds = 0;
  while (!requests.waiting().empty()) {
    ASSERT_LT(++rounds, 10);
    answer(
        requests, 0,
        {server_says(rounds % 2 == 0 ? "MOVED 15495 127.0.0.1:7001" : "ASK 15495 127.0.0.1:7002")});
    (void)requests.next_round();
  }
  EXPECT_EQ(rounds, 8);
  EXPECT_TRUE(requests.take_replies()[0].problem().transient());
}

TEST(RedisPipeline, RedirectedRequestWithoutAConnectionIsTriedAgain) {
  const command single = command("INCR").key("a");
  pipeline requests({&single, 1}, {.cluster = true, .attempts = 5});
  answer(requests, 0, {server_says("MOVED 15495 127.0.0.1:7001")});
  (void)requests.next_round();
  // The reply to the first attempt is not a reply to this one.
  requests.interrupted(requests.at(0), false, lost, other_node_address);
  (void)requests.next_round();
  ASSERT_EQ(requests.waiting().size(), 1U);
  answer(requests, 0, {reply(std::int64_t{1})});
  EXPECT_EQ(requests.take_replies()[0].integer(), 1);
  EXPECT_EQ(requests.counts().moved, 1U);
  EXPECT_EQ(requests.counts().retried, 1U);
}

TEST(RedisPipeline, LostReplyIsInDoubtAndNeverResent) {
  const command single = command("INCR").key("a");
  pipeline requests({&single, 1}, {.attempts = 5});
  requests.interrupted(requests.at(0), true, lost, node_address);
  (void)requests.next_round();
  EXPECT_TRUE(requests.waiting().empty());
  const auto problem = requests.take_replies()[0].problem();
  EXPECT_TRUE(problem.in_doubt());
  EXPECT_TRUE(problem.transient());
  EXPECT_EQ(requests.counts().in_doubt, 1U);
}

TEST(RedisPipeline, UnsentRequestIsNotInDoubt) {
  const command single = command("INCR").key("a");
  pipeline requests({&single, 1}, {.attempts = 2});
  requests.interrupted(requests.at(0), false, lost, node_address);
  (void)requests.next_round();
  ASSERT_EQ(requests.waiting().size(), 1U);
  requests.interrupted(requests.at(0), false, lost, node_address);
  (void)requests.next_round();
  EXPECT_TRUE(requests.waiting().empty());
  EXPECT_FALSE(requests.take_replies()[0].problem().in_doubt());
}

TEST(RedisPipeline, IdempotentIsResentAndStaysInDoubtWhenItFails) {
  const command single = command("SET").key("a").arg("1").idempotent();
  pipeline requests({&single, 1}, {.attempts = 5});
  requests.interrupted(requests.at(0), true, lost, node_address);
  (void)requests.next_round();
  ASSERT_EQ(requests.waiting().size(), 1U);
  requests.give_up(error(errc::timeout, "too late", {.transient = true}));
  const auto problem = requests.take_replies()[0].problem();
  EXPECT_EQ(problem.code(), errc::timeout);
  EXPECT_TRUE(problem.in_doubt());
  EXPECT_EQ(requests.counts().resent, 1U);
}

TEST(RedisPipeline, ErrorOfASecondAttemptLeavesTheFirstInDoubt) {
  const command single = command("SET").key("a").arg("1").idempotent();
  pipeline requests({&single, 1}, {.attempts = 5});
  requests.interrupted(requests.at(0), true, lost, node_address);
  (void)requests.next_round();
  answer(requests, 0, {server_says("OOM command not allowed when used memory > 'maxmemory'.")});
  (void)requests.next_round();
  const auto problem = requests.take_replies()[0].problem();
  EXPECT_EQ(problem.backend_code(), "OOM");
  EXPECT_TRUE(problem.in_doubt());  // the first attempt may have run
  EXPECT_EQ(requests.counts().in_doubt, 1U);
}

TEST(RedisPipeline, WaitIsSentWithItsCommand) {
  const std::vector<command> commands{command("SET").key("a").arg("1"), wait_for_replicas(1, 100ms),
                                      command("SET").key("b").arg("2")};
  pipeline requests(commands, {.cluster = true, .attempts = 5});
  ASSERT_EQ(requests.waiting().size(), 2U);
  EXPECT_EQ(requests.at(0).commands.size(), 2U);
  // The node did not run SET, so the reply to WAIT is meaningless: both are sent again.
  answer(requests, 0, {server_says("MOVED 15495 127.0.0.1:7001"), reply(std::int64_t{1})});
  answer(requests, 1, {ok()});
  (void)requests.next_round();
  ASSERT_EQ(requests.waiting().size(), 1U);
  known_scripts scripts;
  batch sent = encode_waiting(requests, scripts, other_node_address);
  EXPECT_NE(sent.bytes().find("WAIT"), std::string::npos);
  answer(requests, 0, {ok(), reply(std::int64_t{0})});
  const auto replies = requests.take_replies();
  EXPECT_EQ(replies[0].text(), "OK");
  EXPECT_EQ(replies[1].integer(), 0);
  EXPECT_EQ(replies[2].text(), "OK");
}

TEST(RedisPipeline, LostWaitLeavesItsCommandAnswered) {
  const std::vector<command> commands{command("SET").key("a").arg("1"),
                                      wait_for_replicas(1, 100ms)};
  pipeline requests(commands, {.attempts = 5});
  receive(requests.at(0), {ok()});
  requests.interrupted(requests.at(0), true, lost, node_address);
  (void)requests.next_round();
  EXPECT_TRUE(requests.waiting().empty());
  const auto replies = requests.take_replies();
  EXPECT_EQ(replies[0].text(), "OK");
  EXPECT_TRUE(replies[1].problem().in_doubt());
}

TEST(RedisPipeline, RefusesAfterPreviousWithoutPreviousOrWithKeys) {
  const command alone = wait_for_replicas(1, 100ms);
  EXPECT_THROW(pipeline({&alone, 1}, {}), error);
  const std::vector<command> keyed{command("PING"), command("GET").key("a").after_previous()};
  EXPECT_THROW(pipeline(keyed, {}), error);
}

TEST(RedisBatch, RequestIsSentWhenItsLastByteIsSent) {
  const std::vector<command> commands{command("INCR").key("a"), command("INCR").key("b"),
                                      command("INCR").key("c")};
  std::string first_two;
  commands[0].write(first_two);
  commands[1].write(first_two);
  for (const bool second_sent : {true, false}) {
    pipeline requests(commands, {.attempts = 1});
    known_scripts scripts;
    batch sent = encode_waiting(requests, scripts);
    sent.mark_sent(first_two.size() - (second_sent ? 0 : 1));
    EXPECT_TRUE(sent.add_reply(reply(std::int64_t{1})));
    sent.settle(&lost);
    (void)requests.next_round();
    const auto replies = requests.take_replies();
    EXPECT_EQ(replies[0].integer(), 1);
    EXPECT_EQ(replies[1].problem().in_doubt(), second_sent);
    EXPECT_FALSE(replies[2].problem().in_doubt());
  }
}

TEST(RedisBatch, IsNotSentBeforeItIsEncoded) {
  const command single = command("INCR").key("a");
  pipeline requests({&single, 1}, {.attempts = 2});
  batch unsent(requests, node_address);
  unsent.add(requests.at(0));
  unsent.settle(&lost);
  (void)requests.next_round();
  EXPECT_EQ(requests.waiting().size(), 1U);
  EXPECT_EQ(requests.counts().retried, 1U);
  EXPECT_EQ(requests.counts().in_doubt, 0U);
}

TEST(RedisBatch, UnreadableReplyFailsOnlyItsOwnCommand) {
  const std::vector<command> commands{
      command("GET").key("a").idempotent(), command("GET").key("big").idempotent(),
      command("GET").key("c").idempotent(), command("INCR").key("d")};
  const error too_large(errc::too_large, "a reply of Redis is larger than 10 bytes");
  pipeline requests(commands, {.cluster = true, .attempts = 5});
  known_scripts scripts;
  batch sent = encode_waiting(requests, scripts);
  sent.mark_sent(sent.bytes().size());
  EXPECT_TRUE(sent.add_reply(ok()));
  sent.settle(&too_large);
  (void)requests.next_round();
  // A second reply to the large one would be as large.
  EXPECT_EQ(requests.waiting(), std::vector<request*>{&requests.at(2)});
  answer(requests, 2, {ok()});
  const auto replies = requests.take_replies();
  EXPECT_EQ(replies[0].text(), "OK");
  EXPECT_EQ(replies[1].problem().code(), errc::too_large);
  EXPECT_TRUE(replies[1].problem().in_doubt());
  EXPECT_EQ(replies[2].text(), "OK");
  EXPECT_EQ(replies[3].problem().code(), errc::unavailable);
  EXPECT_TRUE(replies[3].problem().transient());
  EXPECT_TRUE(replies[3].problem().in_doubt());
}

TEST(RedisBatch, ScriptTextIsSentOnceAndAgainWhenTheServerForgot) {
  const script body("return KEYS[1]");
  const std::vector<command> commands{command(body).key("a"), command(body).key("b")};
  known_scripts scripts;
  const auto count = [](const std::string& text, std::string_view word) {
    std::size_t occurrences = 0;
    for (auto i = text.find(word); i != std::string::npos; i = text.find(word, i + 1))
      ++occurrences;
    return occurrences;
  };
  {
    pipeline requests(commands, {.attempts = 5});
    batch sent = encode_waiting(requests, scripts);
    EXPECT_EQ(count(sent.bytes(), "return KEYS"), 1U);
    EXPECT_EQ(count(sent.bytes(), "EVALSHA"), 1U);
    EXPECT_EQ(sent.script_texts(), 1U);
  }
  pipeline requests(commands, {.attempts = 5});
  {
    batch sent = encode_waiting(requests, scripts);
    EXPECT_EQ(count(sent.bytes(), "EVALSHA"), 2U);
    EXPECT_TRUE(sent.add_reply(server_says("NOSCRIPT No matching script. Please use EVAL.")));
    EXPECT_TRUE(sent.add_reply(server_says("NOSCRIPT No matching script. Please use EVAL.")));
    EXPECT_FALSE(sent.add_reply(ok()));  // one too many
    sent.settle(nullptr);
  }
  EXPECT_EQ(requests.next_round().pause.count(), 0);
  ASSERT_EQ(requests.waiting().size(), 2U);
  batch sent = encode_waiting(requests, scripts);
  EXPECT_EQ(count(sent.bytes(), "return KEYS"), 2U);
  EXPECT_TRUE(sent.add_reply(reply(std::string("a"))));
  EXPECT_TRUE(sent.add_reply(reply(std::string("b"))));
  sent.settle(nullptr);
  (void)requests.next_round();
  const auto replies = requests.take_replies();
  EXPECT_EQ(replies[0].text(), "a");
  EXPECT_EQ(replies[1].text(), "b");
}

TEST(RedisPipeline, TransientErrorOfAScriptIsInDoubt) {
  const script body("return redis.error_reply('BUSY')");
  const std::array<command, 4> commands{command(body), command("fcall").arg("f").arg(0),
                                        command("SET").key("a").arg("1"), command(body)};
  pipeline requests(commands, {.attempts = 1});
  answer(requests, 0, {server_says("BUSY another worker has it")});
  answer(requests, 1, {server_says("MISCONF Errors writing to the AOF file: full")});
  answer(requests, 2, {server_says("MISCONF Errors writing to the AOF file: full")});
  answer(requests, 3, {server_says("OOM command not allowed when used memory > 'maxmemory'.")});
  const auto counts = requests.counts();
  const auto replies = requests.take_replies();
  for (const auto& each : replies) EXPECT_TRUE(each.problem().transient());
  EXPECT_TRUE(replies[0].problem().in_doubt());
  EXPECT_TRUE(replies[1].problem().in_doubt());
  EXPECT_FALSE(replies[2].problem().in_doubt());
  EXPECT_FALSE(replies[3].problem().in_doubt());
  EXPECT_EQ(replies[0].problem().backend_code(), "BUSY");
  EXPECT_EQ(counts.in_doubt, 2U);
}

}  // namespace
