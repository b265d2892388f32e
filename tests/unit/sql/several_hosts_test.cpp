#include "sql/several_hosts.hpp"

#include <holdfast/error.hpp>

#include "support/failure_of.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using detail::sql::connect_limits;
using detail::sql::connect_to_first;
using detail::sql::silent_hosts;

const std::vector<std::string> three{"a:1", "b:2", "c:3"};

error silence(const std::string& host) {
  return {errc::timeout, host + " did not answer", {.transient = true}};
}

error refusal(const std::string& host, errc code, bool transient) {
  return {code, host + " refused", {.transient = transient}};
}

/// The hosts that were tried, with their limits.
using attempts = std::vector<std::pair<std::size_t, std::chrono::milliseconds>>;

/// Tries the three hosts; each fails as `failures` says.
std::pair<error, attempts> try_all(const std::vector<error>& failures, connect_limits limits,
                                   silent_hosts& silent) {
  attempts tried;
  auto failure = failure_of([&] {
    (void)connect_to_first(
        three, limits, silent,
        [&](std::size_t host, std::chrono::milliseconds limit) -> std::unique_ptr<sql::connection> {
          tried.emplace_back(host, limit);
          throw error(failures.at(host));
        });
  });
  return {std::move(failure), std::move(tried)};
}

TEST(SeveralHosts, AreTriedInOrderWithAShareOfTheTime) {
  silent_hosts silent;
  const auto [failure, tried] =
      try_all({refusal("a", errc::unavailable, true), refusal("b", errc::unavailable, true),
               refusal("c", errc::unavailable, true)},
              {.all = 60s}, silent);
  ASSERT_EQ(tried.size(), 3U);
  EXPECT_EQ(tried[0], std::pair(std::size_t{0}, 2'000ms)) << "a silent host leaves time for others";
  EXPECT_EQ(tried[1], std::pair(std::size_t{1}, 2'000ms));
  EXPECT_EQ(tried[2].first, 2U);
  EXPECT_GT(tried[2].second, 30s) << "the last one has what is left";
  EXPECT_STREQ(failure.what(),
               "none of the 3 hosts of the URL can be used: a refused; b refused; c refused");
  EXPECT_EQ(failure.code(), errc::unavailable);
  EXPECT_TRUE(failure.transient());
}

TEST(SeveralHosts, HaveEqualSharesOfAShortTimeOrTheLimitOfTheUrl) {
  silent_hosts silent;
  const std::vector<error> refusals(3, refusal("x", errc::unavailable, true));
  const auto shared = try_all(refusals, {.all = 900ms}, silent).second;
  EXPECT_LE(shared.at(0).second, 300ms);
  EXPECT_GE(shared.at(0).second, 200ms);
  EXPECT_LE(shared.at(1).second, 450ms);
  for (const auto& [host, limit] : try_all(refusals, {.all = 900ms, .each = 7s}, silent).second)
    EXPECT_EQ(limit, 7s);
}

TEST(SeveralHosts, ThoseThatWereSilentAreTriedLast) {
  silent_hosts silent;
  const std::vector<error> failures{silence("a"), refusal("b", errc::unavailable, true),
                                    refusal("c", errc::unavailable, true)};
  EXPECT_EQ(try_all(failures, {.all = 9s}, silent).second.front().first, 0U);
  const auto again = try_all(failures, {.all = 9s}, silent).second;
  EXPECT_EQ(again.at(0).first, 1U);
  EXPECT_EQ(again.at(1).first, 2U);
  EXPECT_EQ(again.at(2).first, 0U);
  silent.remove("a:1");
  EXPECT_EQ(try_all(failures, {.all = 9s}, silent).second.front().first, 0U);
}

TEST(SeveralHosts, AreWorthARetryIfOneOfThemIs) {
  silent_hosts silent;
  const auto permission = refusal("x", errc::permission, false);
  const auto one =
      try_all({permission, refusal("b", errc::unavailable, true), permission}, {.all = 9s}, silent)
          .first;
  EXPECT_EQ(one.code(), errc::unavailable);
  EXPECT_TRUE(one.transient());
  const auto none = try_all({permission, permission, permission}, {.all = 9s}, silent).first;
  EXPECT_EQ(none.code(), errc::permission);
  EXPECT_FALSE(none.transient());
  const auto silences =
      try_all({silence("a"), silence("b"), silence("c")}, {.all = 9s}, silent).first;
  EXPECT_EQ(silences.code(), errc::timeout);
}

TEST(SeveralHosts, AMistakeInTheUrlIsNotAHost) {
  silent_hosts silent;
  const auto mistake = error(errc::invalid_argument, "the URL is wrong", {.path = "url"});
  const auto [failure, tried] = try_all({mistake, mistake, mistake}, {.all = 9s}, silent);
  EXPECT_EQ(tried.size(), 1U);
  EXPECT_STREQ(failure.what(), mistake.what());
}

TEST(SeveralHosts, OneHostHasAllTheTimeAndItsOwnError) {
  silent_hosts silent;
  const auto failure = failure_of([&] {
    (void)connect_to_first(
        std::vector<std::string>{"a:1"}, {.all = 5s}, silent,
        [](std::size_t, std::chrono::milliseconds limit) -> std::unique_ptr<sql::connection> {
          EXPECT_EQ(limit, 5s);
          throw silence("a");
        });
  });
  EXPECT_STREQ(failure.what(), "a did not answer");
}

}  // namespace
}  // namespace holdfast::test
