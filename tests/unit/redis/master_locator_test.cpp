// Which master is believed, and when the Sentinels are asked again. Without a server.

#include "redis/master_locator.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace holdfast;
using namespace holdfast::detail::redis;
using namespace std::chrono_literals;

reply text(const std::string& value) { return reply(value); }

/// The replies of a Sentinel to the three questions.
std::vector<reply> answer_of(const std::string& port, int epoch,
                             const std::vector<std::string>& other_ports = {}) {
  reply::list others;
  for (const auto& other : other_ports)
    others.push_back(reply(reply::list{text("name"), text("x"), text("ip"), text("10.0.0.1"),
                                       text("port"), text(other)}));
  return {reply(reply::list{text("10.0.0.9"), text(port)}),
          reply(reply::list{text("name"), text("main"), text("config-epoch"),
                            text(std::to_string(epoch))}),
          reply(std::move(others))};
}

std::vector<reply> silence() {
  const reply nothing(error(errc::timeout, "it did not answer", {.transient = true}));
  return {nothing, nothing, nothing};
}

/// Sentinels with prepared answers.
class prepared_sentinels {
  settings configured_;
  counters counted_{nullptr};

 public:
  explicit prepared_sentinels(const std::string& url) : configured_(read_settings(url, {})) {}

  std::map<std::string, std::vector<reply>> answers{};  // those that are missing are silent
  std::vector<std::string> asked{};
  int searches = 0;

  master_locator locator{configured_,
                         [this](std::span<const std::string> nodes, steady::time_point,
                                const answer_handler& handler) {
                           ++searches;
                           asked.clear();
                           for (const auto& node : nodes) {
                             asked.push_back(node);
                             const auto prepared = answers.find(node);
                             const auto replies =
                                 prepared == answers.end() ? silence() : prepared->second;
                             if (handler(node, replies) == next_question::enough) return;
                           }
                         },
                         counted_};

  std::string current() { return *locator.current(steady::now() + 1h); }
  /// Asks again, as after a failure.
  std::string search_again() {
    locator.mark_stale(current());
    std::this_thread::sleep_for(110ms);  // longer than the pause between searches
    return current();
  }
};

TEST(RedisMasterLocator, BelievesTheHighestEpochOfAMajority) {
  prepared_sentinels three("redis+sentinel://a:1,b:1,c:1/main");
  three.answers = {{"a:1", answer_of("1", 4, {"2", "3"})},
                   {"b:1", answer_of("2", 5, {"2", "3"})},
                   {"c:1", answer_of("2", 5, {"2", "3"})}};
  EXPECT_EQ(three.current(), "10.0.0.9:2");
  EXPECT_EQ(three.asked.size(), 2U);  // two of three are enough
  EXPECT_EQ(three.current(), "10.0.0.9:2");
  EXPECT_EQ(three.searches, 1);
}

TEST(RedisMasterLocator, DoesNotGoBackToAnOlderMasterForAMinority) {
  prepared_sentinels three("redis+sentinel://a:1,b:1,c:1/main");
  three.answers = {{"b:1", answer_of("2", 5, {"2", "3"})}, {"c:1", answer_of("2", 5, {"2", "3"})}};
  EXPECT_EQ(three.current(), "10.0.0.9:2");
  // One that was cut off knows only the old master.
  three.answers = {{"a:1", answer_of("1", 4, {"2", "3"})}};
  EXPECT_EQ(three.search_again(), "10.0.0.9:2");
  // A majority that has begun again with lower epochs is right.
  three.answers = {{"a:1", answer_of("1", 1, {"2", "3"})}, {"b:1", answer_of("1", 1, {"2", "3"})}};
  EXPECT_EQ(three.search_again(), "10.0.0.9:1");
}

TEST(RedisMasterLocator, LearnsOtherSentinels) {
  prepared_sentinels one("redis+sentinel://a:1/main");
  one.answers = {{"a:1", answer_of("1", 1, {"2", "3"})}};
  EXPECT_EQ(one.current(), "10.0.0.9:1");
  one.answers = {{"10.0.0.1:2", answer_of("2", 2, {"3"})},
                 {"10.0.0.1:3", answer_of("2", 2, {"2"})}};
  EXPECT_EQ(one.search_again(), "10.0.0.9:2");
}

TEST(RedisMasterLocator, KeepsTheMasterWhenNoSentinelAnswers) {
  prepared_sentinels two("redis+sentinel://a:1,b:1/main");
  EXPECT_THROW((void)two.current(), error);
  two.answers = {{"a:1", answer_of("1", 1, {"2"})}};
  EXPECT_EQ(two.current(), "10.0.0.9:1");
  two.answers.clear();
  EXPECT_EQ(two.search_again(), "10.0.0.9:1");
}

TEST(RedisMasterLocator, FailureOfAnotherServerIsNoReasonToAsk) {
  prepared_sentinels one("redis+sentinel://a:1/main");
  one.answers = {{"a:1", answer_of("1", 1)}};
  EXPECT_EQ(one.current(), "10.0.0.9:1");
  std::this_thread::sleep_for(110ms);
  one.locator.mark_stale("10.0.0.9:7");
  EXPECT_EQ(one.current(), "10.0.0.9:1");
  EXPECT_EQ(one.searches, 1);
}

TEST(RedisMasterLocator, AsksAgainAfterASecond) {
  prepared_sentinels one("redis+sentinel://a:1/main");
  one.answers = {{"a:1", answer_of("1", 1)}};
  EXPECT_EQ(one.current(), "10.0.0.9:1");
  one.answers = {{"a:1", answer_of("2", 2)}};
  std::this_thread::sleep_for(1010ms);
  EXPECT_EQ(one.current(), "10.0.0.9:2");
}

TEST(RedisMasterLocator, UnknownNamesAreNotTransient) {
  prepared_sentinels one("redis+sentinel://a:1,b:1/other");
  const reply unknown(error(errc::invalid_argument, "ERR No such master with that name"));
  one.answers = {{"a:1", {reply(), unknown, unknown}}};
  try {
    (void)one.current();
    FAIL();
  } catch (const error& refused) {
    EXPECT_EQ(refused.code(), errc::invalid_argument);
    EXPECT_NE(refused.message().find("'other'"), std::string::npos) << refused.message();
  }
}

TEST(RedisMasterLocator, StrangeAnswersAreErrors) {
  const auto good = answer_of("1", 1);
  const std::string node = "a:1";
  for (const auto& replies : std::vector<std::vector<reply>>{
           {text("OK")},
           {reply(reply::list{text("h")}), good[1], good[2]},
           {reply(reply::list{text("h"), text("0")}), good[1], good[2]},
           {reply(reply::list{text("h"), reply(std::int64_t{1})}), good[1], good[2]},
           {good[0], text("OK"), good[2]},
           {good[0], reply(reply::list{text("config-epoch")}), good[2]}})
    EXPECT_THROW(sentinel_view(replies, node, "main"), error);
  EXPECT_EQ(
      sentinel_view(std::vector<reply>{good[0], good[1], text("strange")}, node, "main").master,
      "10.0.0.9:1");
}

TEST(RedisMasterLocator, TakesTheFirstAddressThatIsAMaster) {
  prepared_sentinels list("redis://a:1,b:1,c:1");
  list.answers = {{"b:1", {text("PONG")}}, {"c:1", {text("PONG")}}};
  EXPECT_EQ(list.current(), "b:1");
  list.answers.erase("b:1");
  EXPECT_EQ(list.search_again(), "c:1");
  list.answers.clear();
  EXPECT_EQ(list.search_again(), "c:1");  // it may come back
  prepared_sentinels none("redis://a:1,b:1");
  try {
    (void)none.current();
    FAIL();
  } catch (const error& problem) {
    EXPECT_TRUE(problem.transient());
    EXPECT_NE(problem.message().find("none of the addresses"), std::string::npos);
  }
}

}  // namespace
