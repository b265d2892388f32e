#include "redis/server_error.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace {

using namespace holdfast;
using namespace holdfast::detail::redis;
using action_kind = reply_action::kind;

constexpr std::string_view replying_node = "127.0.0.1:7000";

reply_action action_after(std::string_view error_text) {
  return action_for(reply(server_error(error_text)), replying_node);
}

TEST(RedisReplyAction, FollowsOnlyCompleteRedirects) {
  EXPECT_EQ(action_after("MOVED 3999 127.0.0.1:6381").address, "127.0.0.1:6381");
  EXPECT_EQ(action_after("MOVED 3999 127.0.0.1:6381").slot, 3999);
  EXPECT_EQ(action_after("MOVED 3999 :6381").address, "127.0.0.1:6381");
  EXPECT_EQ(action_after("MOVED 3999 ?:6381").address, "127.0.0.1:6381");
  EXPECT_EQ(action_after("ASK 3999 ::1:6381").address, "::1:6381");
  EXPECT_EQ(action_after("ASK 3999 host.example:6381").action, action_kind::ask);
  for (const char* bad : {"MOVED", "MOVED 1", "MOVED x 127.0.0.1:1", "MOVED 16384 127.0.0.1:1",
                          "MOVED 1 127.0.0.1", "MOVED 1 127.0.0.1:0", "MOVED 1 127.0.0.1:65536",
                          "MOVED 1 /etc/passwd:1", "MOVED -1 127.0.0.1:1", "MOVEDX 1 127.0.0.1:1"})
    EXPECT_EQ(action_after(bad).action, action_kind::accept) << bad;
  for (const char* not_run :
       {"TRYAGAIN Multiple keys request during rehashing of slot",
        "CLUSTERDOWN The cluster is down", "CLUSTERDOWN Hash slot not served",
        "LOADING Redis is loading the dataset in memory",
        "LOADING Valkey is loading the dataset in memory",
        "READONLY You can't write against a read only replica.",
        "MASTERDOWN Link with MASTER is down",
        "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
        "UNBLOCKED force unblock from blocking operation, instance state changed (master -> "
        "replica?)"})
    EXPECT_EQ(action_after(not_run).action, action_kind::retry) << not_run;
  EXPECT_EQ(action_after("NOSCRIPT No matching script. Please use EVAL.").action,
            action_kind::send_script);
  // Scripts that ended with these errors have run.
  EXPECT_EQ(action_after("NOSCRIPT of my own").action, action_kind::accept);
  EXPECT_EQ(action_after("READONLY You can't write script: abc, on @user_script:1.").action,
            action_kind::accept);
  EXPECT_EQ(action_for(reply(std::string("OK")), replying_node).action, action_kind::accept);
}

TEST(RedisReplyAction, ErrorsOfAScriptAreNotErrorsOfTheServer) {
  // A script may write and then return redis.error_reply('BUSY ...'). A retry would write again.
  for (const char* own : {"BUSY the lane has another worker", "TRYAGAIN later",
                          "LOADING is not over", "READONLY lane", "CLUSTERDOWN by us",
                          "MASTERDOWN by us", "UNBLOCKED client unblocked via CLIENT UNBLOCK"})
    EXPECT_EQ(action_after(own).action, action_kind::accept) << own;
}

TEST(RedisServerError, HasTheCodeThatACallerNeeds) {
  const auto expect = [](std::string_view text, errc code, bool transient) {
    const auto converted = server_error(text);
    EXPECT_EQ(converted.code(), code) << text;
    EXPECT_EQ(converted.transient(), transient) << text;
    EXPECT_FALSE(converted.in_doubt()) << text;
  };
  expect("OOM command not allowed", errc::unavailable, true);
  expect("NOREPLICAS Not enough good replicas to write.", errc::unavailable, true);
  expect("NOAUTH Authentication required.", errc::permission, false);
  expect("WRONGPASS invalid username-password pair", errc::permission, false);
  expect("NOPERM this user has no permissions", errc::permission, false);
  expect("WRONGTYPE Operation against a key", errc::invalid_argument, false);
  expect("ERR unknown command 'x'", errc::grammar, false);
  expect("ERR value is not an integer or out of range", errc::invalid_argument, false);
  expect("CROSSSLOT Keys in request don't hash to the same slot", errc::invalid_argument, false);
  expect("ERR max number of clients reached", errc::unavailable, true);
  expect("UNBLOCKED force unblock from blocking operation", errc::unavailable, true);
  expect("", errc::invalid_argument, false);
  EXPECT_EQ(server_error("oops").backend_code(), "ERR");
  EXPECT_FALSE(server_error("").message().empty());
}

TEST(RedisServerError, ProvesThatNothingChangedOnlyInTheWordsOfTheServer) {
  const auto proven = [](std::string_view text, bool script) {
    return changed_nothing(server_error(text), script);
  };
  // Also when a script meets them at its first write.
  for (const char* text :
       {"LOADING Redis is loading the dataset in memory",
        "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
        "READONLY You can't write against a read only replica.",
        "READONLY You can't write against a read only replica. script: abc, on @user_script:1.",
        "OOM command not allowed when used memory > 'maxmemory'.",
        "OOM command not allowed when used memory > 'maxmemory'. script: abc, on @user_script:2.",
        "CLUSTERDOWN The cluster is down", "MASTERDOWN Link with MASTER is down",
        "MOVED 3999 127.0.0.1:6381", "ERR max number of clients reached",
        "UNBLOCKED client unblocked via CLIENT UNBLOCK"}) {
    EXPECT_TRUE(proven(text, false)) << text;
    EXPECT_TRUE(proven(text, true)) << text;
  }
  // The disk and the replicas may fail while a script runs.
  for (const char* text : {"MISCONF Errors writing to the AOF file: No space left on device",
                           "NOREPLICAS Not enough good replicas to write."}) {
    EXPECT_TRUE(proven(text, false)) << text;
    EXPECT_FALSE(proven(text, true)) << text;
  }
  for (const char* text : {"BUSY another worker has it", "READONLY lane", "LOADING is not over",
                           "OOM in the tank", "MISCONF of my own", "TRYAGAIN later"})
    EXPECT_FALSE(proven(text, true)) << text;
}

}  // namespace
