#include <holdfast/redis.hpp>

#include <gtest/gtest.h>
#include <hiredis/hiredis.h>

#include <random>
#include <string>
#include <vector>

namespace {

using namespace holdfast;
using redis::command;

std::string written_by_us(const command& sent, bool with_script_text = false) {
  std::string bytes;
  sent.write(bytes, with_script_text);
  return bytes;
}

std::string written_by_hiredis(const std::vector<std::string>& words) {
  std::vector<const char*> texts;
  std::vector<std::size_t> sizes;
  for (const auto& word : words) {
    texts.push_back(word.data());
    sizes.push_back(word.size());
  }
  char* formatted = nullptr;
  const int size = redisFormatCommandArgv(&formatted, static_cast<int>(words.size()), texts.data(),
                                          sizes.data());
  std::string bytes(formatted, static_cast<std::size_t>(size));
  redisFreeCommand(formatted);
  return bytes;
}

TEST(RedisCommand, IsWrittenAsHiredisWritesIt) {
  std::mt19937 random(7);
  for (int round = 0; round < 2'000; ++round) {
    std::vector<std::string> words{"SET"};
    command sent("SET");
    for (auto count = random() % 12; count > 0; --count) {
      std::string word(random() % (round % 50 == 0 ? 100'000 : 40), '\0');
      for (auto& byte : word) byte = static_cast<char>(random());
      if (random() % 2 == 0) sent.key(word);
      else sent.arg(word);
      words.push_back(word);
    }
    ASSERT_EQ(written_by_us(sent), written_by_hiredis(words));
  }
}

TEST(RedisCommand, NumbersAreText) {
  EXPECT_EQ(written_by_us(command("INCRBY").key("k").arg(-5)),
            written_by_hiredis({"INCRBY", "k", "-5"}));
  EXPECT_EQ(written_by_us(command("X").arg(std::uint64_t{18446744073709551615U})),
            written_by_hiredis({"X", "18446744073709551615"}));
  EXPECT_EQ(written_by_us(redis::wait_for_replicas(2, std::chrono::seconds(1))),
            written_by_hiredis({"WAIT", "2", "1000"}));
  EXPECT_EQ(written_by_us(redis::wait_for_disk(1, 2, std::chrono::milliseconds(5))),
            written_by_hiredis({"WAITAOF", "1", "2", "5"}));
  EXPECT_TRUE(redis::wait_for_replicas(1, {}).is_after_previous());
}

TEST(RedisCommand, ScriptIsWrittenByHashOrWithItsText) {
  const redis::script body("return 1");
  EXPECT_EQ(body.sha1(), "e0e1f9fabfc9d4800c877a703b823ac0578ff8db");  // as SCRIPT LOAD returns it
  const auto sent = command(body).key("a").key("b").arg("c");
  EXPECT_EQ(written_by_us(sent), written_by_hiredis({"EVALSHA", body.sha1(), "2", "a", "b", "c"}));
  EXPECT_EQ(written_by_us(sent, true),
            written_by_hiredis({"EVAL", "return 1", "2", "a", "b", "c"}));
  EXPECT_EQ(sent.keys(), 2U);
  EXPECT_EQ(sent.key_at(0), "a");
  EXPECT_EQ(sent.key_at(1), "b");
}

TEST(RedisCommand, RefusesInvalidCommands) {
  EXPECT_THROW(command(""), error);
  EXPECT_THROW(command("GET a"), error);
  const redis::script body("return 1");
  EXPECT_THROW(command(body).arg("x").key("k"), error);
}

TEST(RedisCommand, KnowsCommandsThatChangeAConnection) {
  for (const char* name :
       {"SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE", "UNSUBSCRIBE", "PUNSUBSCRIBE", "SUNSUBSCRIBE",
        "MONITOR",   "QUIT",       "RESET",      "HELLO",       "SYNC",         "PSYNC",
        "REPLCONF",  "SHUTDOWN",   "MULTI",      "EXEC",        "DISCARD",      "WATCH",
        "UNWATCH",   "SELECT",     "AUTH",       "ASKING",      "READONLY",     "READWRITE",
        "subscribe", "Quit"})
    EXPECT_TRUE(command(name).changes_connection()) << name;
  for (const char* subcommand :
       {"REPLY", "reply", "TRACKING", "CACHING", "NO-EVICT", "NO-TOUCH", "SETNAME"}) {
    EXPECT_TRUE(command("CLIENT").arg(subcommand).arg("OFF").changes_connection()) << subcommand;
    EXPECT_TRUE(command("client").key(subcommand).changes_connection()) << subcommand;
  }
  EXPECT_EQ(
      command("Script").arg("debug").arg("YES").refusal().rfind("SCRIPT DEBUG cannot be sent: ", 0),
      0U);
  EXPECT_FALSE(command("SCRIPT").arg("FLUSH").changes_connection());
  EXPECT_FALSE(command("SCRIPT").arg("LOAD").arg("DEBUG").changes_connection());
  EXPECT_FALSE(command("CLIENT").arg("DEBUG").changes_connection());
  // The same words in other positions are ordinary arguments.
  EXPECT_FALSE(command("CLIENT").arg("ID").arg("REPLY").changes_connection());
  EXPECT_FALSE(command("CLIENT").arg("KILL").arg("TYPE").arg("normal").changes_connection());
  EXPECT_FALSE(command("SET").key("REPLY").arg("QUIT").changes_connection());
  EXPECT_FALSE(command("PUBLISH").arg("SUBSCRIBE").arg("x").changes_connection());
  const redis::script body("return 1");
  EXPECT_FALSE(command(body).arg("CLIENT").arg("REPLY").changes_connection());
}

TEST(RedisReply, HasATypeAndThrowsTheErrorThatItHolds) {
  EXPECT_TRUE(redis::reply().is_nil());
  EXPECT_EQ(redis::reply(std::int64_t{5}).integer(), 5);
  EXPECT_EQ(redis::reply(std::string("a\0b", 3)).text(), std::string("a\0b", 3));
  EXPECT_THROW((void)redis::reply().text(), error);
  EXPECT_THROW((void)redis::reply(std::int64_t{5}).elements(), error);
  EXPECT_THROW((void)redis::reply(std::int64_t{5}).problem(), error);
  const redis::reply bad(error(errc::permission, "no", {.backend_code = "NOPERM"}));
  try {
    (void)bad.integer();
    FAIL();
  } catch (const error& thrown) {
    EXPECT_EQ(thrown.code(), errc::permission);
    EXPECT_EQ(thrown.backend_code(), "NOPERM");
  }
  EXPECT_EQ(redis::reply(redis::reply::list{redis::reply(std::int64_t{1}), redis::reply()}),
            redis::reply(redis::reply::list{redis::reply(std::int64_t{1}), redis::reply()}));
}

TEST(RedisNumbers, LatencyIsAnUpperBound) {
  redis::numbers counted;
  counted.latency[3] = 98;
  counted.latency[10] = 2;
  EXPECT_EQ(counted.latency_at(0.5).count(), 8);
  EXPECT_EQ(counted.latency_at(0.99).count(), 1024);
  EXPECT_EQ(redis::numbers().latency_at(0.5).count(), 1);
}

}  // namespace
