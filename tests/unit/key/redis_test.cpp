#include <holdfast/error.hpp>
#include <holdfast/key/redis.hpp>

#include <gtest/gtest.h>

#include <string>

namespace {

using namespace holdfast::key;

TEST(RedisSlot, AgreesWithTheServer) {
  // From CLUSTER KEYSLOT.
  EXPECT_EQ(redis_slot("123456789"), 12739U);
  EXPECT_EQ(redis_slot("foo"), 12182U);
  EXPECT_EQ(redis_slot("bar"), 5061U);
  EXPECT_EQ(redis_slot(""), 0U);
}

TEST(RedisSlot, FollowsTheHashTagRules) {
  EXPECT_EQ(redis_slot("{user1000}.following"), redis_slot("user1000"));
  EXPECT_EQ(redis_slot("foo{}{bar}"), redis_slot(std::string("foo{}{bar}")))
      << "an empty tag: the whole key";
  EXPECT_NE(redis_slot("foo{}{bar}"), redis_slot("bar"));
  EXPECT_EQ(redis_slot("foo{{bar}}zap"), redis_slot("{bar")) << "first { to the first } after it";
  EXPECT_EQ(redis_slot("foo{bar}{zap}"), redis_slot("bar"));
  EXPECT_NE(redis_slot("foo{bar"), redis_slot("bar")) << "never closed";
  EXPECT_EQ(redis_slot("}a{b}"), redis_slot("b"));
}

TEST(RedisPrefix, TheConstructorValidates) {
  const redis_prefix prefix("app:{identity:outbox}:v1");
  EXPECT_EQ(prefix.tag(), "identity:outbox");
  EXPECT_EQ(prefix.slot(), redis_slot("identity:outbox"));
  for (const auto& bad :
       {std::string(), std::string("outbox"), std::string("{}"), std::string("a{b"),
        std::string("a}b{"), std::string("{a}{b}"), std::string("{{a}}"), std::string("{a b}"),
        std::string("{a}\n"), std::string("{a\0}", 4), std::string("{\xff}"),
        "{" + std::string(199, 'a') + "}"}) {
    EXPECT_THROW(redis_prefix{bad}, holdfast::error) << bad;
  }
  EXPECT_NO_THROW(redis_prefix("{" + std::string(198, 'a') + "}"));
}

TEST(OutboxKeys, AreTheFourOfThePrefixInOneSlot) {
  const outbox_keys keys;
  EXPECT_EQ(keys.entries(), "{identity:outbox}:entries");
  EXPECT_EQ(keys.pending(), "{identity:outbox}:pending");
  EXPECT_EQ(keys.expiry_due(), "{identity:outbox}:expiry-due");
  EXPECT_EQ(keys.lock(), "{identity:outbox}:lock");
  for (const auto& key : {keys.entries(), keys.pending(), keys.expiry_due(), keys.lock()})
    EXPECT_EQ(redis_slot(key), keys.slot());
}

}  // namespace
