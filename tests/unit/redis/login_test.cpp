// The login of a new connection, without a server.

#include "redis/connection.hpp"
#include "redis/server_error.hpp"
#include "redis/settings.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace holdfast;
using namespace holdfast::detail::redis;

reply role_reply(const std::string& role) {
  return reply(reply::list{reply(role), reply(std::int64_t{0})});
}

TEST(RedisLogin, ChecksTheRoleOfTheServer) {
  const auto ok = reply(std::string("OK"));
  const auto refusal = [&](const settings& configured, const reply& role) -> std::optional<error> {
    const std::vector<reply> replies{ok, role};
    try {
      login(configured).check(replies, "h:6379");
    } catch (const error& refused) {
      return refused;
    }
    return std::nullopt;
  };
  const auto one = read_settings("redis://h", {});
  const auto several = read_settings("redis://h,i", {});
  const auto sentinel = sentinel_settings(read_settings("redis+sentinel://h/main", {}));
  EXPECT_FALSE(refusal(one, role_reply("master")));
  EXPECT_FALSE(refusal(one, role_reply("slave")));
  EXPECT_FALSE(refusal(several, role_reply("master")));
  EXPECT_FALSE(refusal(sentinel, role_reply("sentinel")));
  const auto replica = refusal(several, role_reply("slave"));
  ASSERT_TRUE(replica);
  EXPECT_TRUE(replica->transient());
  EXPECT_EQ(replica->backend_code(), "READONLY");
  const auto wrong_port = refusal(one, role_reply("sentinel"));
  ASSERT_TRUE(wrong_port);
  EXPECT_FALSE(wrong_port->transient());
  EXPECT_NE(std::string(wrong_port->what()).find("redis+sentinel://h:6379/"), std::string::npos);
  EXPECT_TRUE(refusal(several, role_reply("sentinel")));
  EXPECT_TRUE(refusal(sentinel, role_reply("master")));
  // A user may not ask for the role, and a proxy may not know it.
  for (const auto& unknown : {reply(server_error("NOPERM no")), ok, reply(), role_reply("other")}) {
    EXPECT_FALSE(refusal(one, unknown));
    EXPECT_FALSE(refusal(several, unknown));
    EXPECT_FALSE(refusal(sentinel, unknown));
  }
}

TEST(RedisLogin, SendsAuthSelectAndName) {
  const auto written = [](const std::string& url) {
    std::string bytes;
    for (const auto& sent : login(read_settings(url, {})).commands) sent.write(bytes);
    return bytes;
  };
  const std::string name = "*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$8\r\nholdfast\r\n";
  EXPECT_EQ(written("redis://h"), name + "*1\r\n$4\r\nROLE\r\n");
  EXPECT_EQ(written("redis+cluster://h"), name);
  EXPECT_TRUE(
      written("redis://u:p@h/5")
          .starts_with(
              "*3\r\n$4\r\nAUTH\r\n$1\r\nu\r\n$1\r\np\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n5\r\n"));
  EXPECT_TRUE(written("redis://:p@h").starts_with("*2\r\n$4\r\nAUTH\r\n$1\r\np\r\n"));
}

// As redis-cli -u does, for a user that needs no password (nopass).
TEST(RedisLogin, SendsAnEmptyPasswordOfTheUrl) {
  const auto written = [](const std::string& url, redis::options options = {}) {
    std::string bytes;
    for (const auto& sent : login(read_settings(url, std::move(options))).commands)
      sent.write(bytes);
    return bytes;
  };
  EXPECT_TRUE(
      written("redis://user:@h").starts_with("*3\r\n$4\r\nAUTH\r\n$4\r\nuser\r\n$0\r\n\r\n"));
  EXPECT_TRUE(written("redis://:@h", {.user = "user"})
                  .starts_with("*3\r\n$4\r\nAUTH\r\n$4\r\nuser\r\n$0\r\n\r\n"));
  EXPECT_TRUE(written("redis+cluster://user:@a,b")
                  .starts_with("*3\r\n$4\r\nAUTH\r\n$4\r\nuser\r\n$0\r\n\r\n"));
  EXPECT_TRUE(written("redis://:@h").starts_with("*3\r\n$6\r\nCLIENT\r\n"));  // no user, no login
  try {
    (void)read_settings("redis://user@h", {});
    FAIL();
  } catch (const error& refused) {
    EXPECT_NE(std::string(refused.what()).find("user:@host"), std::string::npos);
  }
}

TEST(RedisLogin, ErrorsHaveTheCodeThatACallerNeeds) {
  const login steps(read_settings("redis://u:p@h/5", {}));
  const auto ok = reply(std::string("OK"));
  const auto code = [&](std::string_view auth, std::string_view select, std::string_view name) {
    const auto reply_of = [&](std::string_view text) {
      return text == "OK" ? ok : reply(server_error(text));
    };
    const std::vector<reply> replies{reply_of(auth), reply_of(select), reply_of(name),
                                     role_reply("master")};
    try {
      steps.check(replies, "h:6379");
    } catch (const error& refused) {
      EXPECT_NE(std::string(refused.what()).find("h:6379"), std::string::npos);
      return refused.code();
    }
    return errc::internal;
  };
  EXPECT_EQ(code("OK", "OK", "OK"), errc::internal);
  EXPECT_EQ(code("WRONGPASS invalid", "NOAUTH", "NOAUTH"), errc::permission);
  EXPECT_EQ(code("OK", "ERR DB index is out of range", "OK"), errc::invalid_argument);
  EXPECT_EQ(code("OK", "OK", "NOPERM no"), errc::internal);  // the name is optional
  EXPECT_EQ(code("OK", "OK", "ERR unknown command"), errc::internal);
  EXPECT_EQ(code("OK", "OK", "NOAUTH Authentication required."), errc::permission);
  EXPECT_EQ(code("OK", "LOADING Redis is loading the dataset in memory", "OK"), errc::unavailable);
}

// An echo service is not a Redis server and must not receive commands.
TEST(RedisLogin, EchoServiceIsRefused) {
  const login steps(read_settings("redis+cluster://:secret@h", {}));
  const auto ok = reply(std::string("OK"));
  const auto echo = reply(reply::list{reply(std::string("AUTH")), reply(std::string("secret"))});
  for (const auto& replies :
       {std::vector<reply>{echo, ok}, std::vector<reply>{ok, echo},
        std::vector<reply>{ok, reply(std::int64_t{1})}, std::vector<reply>{ok, reply()},
        std::vector<reply>{reply(std::string("QUEUED")), ok}}) {
    try {
      steps.check(replies, "h:6379");
      FAIL();
    } catch (const error& refused) {
      EXPECT_EQ(refused.code(), errc::malformed);
      EXPECT_STREQ(refused.what(),
                   "the server at h:6379 did not answer as Redis does; check that a Redis server "
                   "listens there");
    }
  }
}

TEST(RedisLogin, ErrorsDoNotContainThePassword) {
  const login steps(read_settings("redis://u:secret@h", {}));
  // A server without AUTH repeats the arguments in its error.
  const std::vector<reply> replies{
      reply(server_error("ERR unknown command 'AUTH', with args beginning with: 'u' 'secret' ")),
      reply(std::string("OK")), role_reply("master")};
  try {
    steps.check(replies, "h:6379");
    FAIL();
  } catch (const error& refused) {
    EXPECT_EQ(std::string(refused.what()).find("secret"), std::string::npos) << refused.what();
    EXPECT_NE(std::string(refused.what()).find("AUTH"), std::string::npos) << refused.what();
  }
}

}  // namespace
