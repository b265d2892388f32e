// What stands around an upstream: breaker, retry, concurrency limit. Each alone, and in a call.

#include "base/breaker.hpp"
#include "failover/concurrency_limit.hpp"
#include "failover/retry.hpp"
#include "support/eventually.hpp"
#include "unit/failover/fixture.hpp"

#include <condition_variable>
#include <latch>

namespace holdfast::test {
namespace {

using detail::failover::retry_plan;

class FailoverBreaker : public failover_test {
 protected:
  using ending = detail::call_result;
  bool call(detail::breaker& b, ending result, std::chrono::microseconds took = 1ms) {
    const auto ticket = b.ask(clock->steady());
    if (ticket.allowed) b.ended(ticket, clock->steady(), result, took);
    return ticket.allowed;
  }
};

TEST_F(FailoverBreaker, OpensWhenTooManyOfTheWindowFail) {
  detail::breaker b({.window = 4, .minimum = 4, .failure_rate = 0.5});
  call(b, ending::failure);
  call(b, ending::success);
  call(b, ending::success);
  EXPECT_EQ(b.state(clock->steady()), breaker_state::closed) << "fewer than the minimum";
  call(b, ending::success);
  EXPECT_EQ(b.state(clock->steady()), breaker_state::closed) << "a quarter";
  call(b, ending::success);
  call(b, ending::failure);  // the first failure has left the window
  EXPECT_EQ(b.state(clock->steady()), breaker_state::closed);
  call(b, ending::failure);
  EXPECT_EQ(b.state(clock->steady()), breaker_state::open);
  EXPECT_EQ(b.opened(), 1U);
  EXPECT_FALSE(call(b, ending::success));
}

TEST_F(FailoverBreaker, LetsProbesThroughAndClosesWhenAllSucceed) {
  detail::breaker b({.window = 2, .minimum = 1, .open_for = 10s, .probes = 2});
  call(b, ending::failure);
  EXPECT_FALSE(b.ask(clock->steady()).allowed);
  clock->advance(10s);
  EXPECT_EQ(b.state(clock->steady()), breaker_state::half_open);
  const auto one = b.ask(clock->steady());
  const auto two = b.ask(clock->steady());
  EXPECT_TRUE(one.allowed);
  EXPECT_TRUE(two.allowed);
  EXPECT_FALSE(b.ask(clock->steady()).allowed) << "two probes, no more";
  b.ended(one, clock->steady(), ending::success, 1ms);
  EXPECT_EQ(b.state(clock->steady()), breaker_state::half_open);
  b.ended(two, clock->steady(), ending::success, 1ms);
  EXPECT_EQ(b.state(clock->steady()), breaker_state::closed);
}

TEST_F(FailoverBreaker, OpensAgainWhenAProbeFails) {
  detail::breaker b({.window = 2, .minimum = 1, .open_for = 10s, .probes = 2});
  call(b, ending::failure);
  clock->advance(10s);
  EXPECT_TRUE(call(b, ending::failure));
  EXPECT_EQ(b.state(clock->steady()), breaker_state::open);
  EXPECT_EQ(b.opened(), 2U);
}

TEST_F(FailoverBreaker, AProbeThatNeverEndsOrSaysNothingDoesNotHoldItForEver) {
  detail::breaker b({.window = 2, .minimum = 1, .open_for = 10s, .probes = 1});
  call(b, ending::failure);
  clock->advance(10s);
  EXPECT_TRUE(b.ask(clock->steady()).allowed);  // hangs
  EXPECT_FALSE(b.ask(clock->steady()).allowed);
  clock->advance(10s);
  EXPECT_TRUE(call(b, ending::none)) << "another probe after the same time";
  EXPECT_TRUE(call(b, ending::success)) << "a cancelled probe gives its place back";
  EXPECT_EQ(b.state(clock->steady()), breaker_state::closed);
}

TEST_F(FailoverBreaker, SlowCallsOpenItToo) {
  detail::breaker b({.window = 4, .minimum = 2, .slow = 100ms, .slow_rate = 1.0});
  call(b, ending::success, 100ms);
  call(b, ending::success, 101ms);
  EXPECT_EQ(b.state(clock->steady()), breaker_state::closed);
  detail::breaker c({.window = 2, .minimum = 2, .slow = 100ms, .slow_rate = 1.0});
  call(c, ending::success, 200ms);
  call(c, ending::success, 200ms);
  EXPECT_EQ(c.state(clock->steady()), breaker_state::open);
}

TEST_F(FailoverBreaker, TheLongestTimesThereAreAreLong) {
  constexpr auto forever = std::chrono::microseconds::max();
  detail::breaker b({.window = 2, .minimum = 1, .slow = forever, .open_for = forever});
  call(b, ending::success);
  EXPECT_EQ(b.state(clock->steady()), breaker_state::closed);
  call(b, ending::failure);
  clock->advance(24h * 30);
  EXPECT_EQ(b.state(clock->steady()), breaker_state::open);
}

TEST_F(FailoverBreaker, ACallOfBeforeItOpenedIsNotCountedAfter) {
  detail::breaker b({.window = 2, .minimum = 1, .open_for = 10s, .probes = 1});
  const auto early = b.ask(clock->steady());
  call(b, ending::failure);
  clock->advance(10s);
  EXPECT_TRUE(call(b, ending::success));
  b.ended(early, clock->steady(), ending::failure, 20s);
  EXPECT_EQ(b.state(clock->steady()), breaker_state::closed);
}

TEST_F(FailoverBreaker, AnOpenBreakerAnswersFromTheStoreWithoutACall) {
  const auto point = protect(
      "country-by-code",
      {.breaker = breaker_options{.window = 2, .minimum = 2, .open_for = 10s, .probes = 1}});
  (void)point("FR");
  down = true;
  (void)point("FR");
  EXPECT_EQ(status().breaker, breaker_state::open);
  const int before = calls;
  const auto a = point("FR");
  EXPECT_EQ(a.cause().code(), cause_code::refused);
  EXPECT_EQ(a->name, "France");
  EXPECT_EQ(calls, before);
  EXPECT_EQ(numbers().breaker_refused, 1U);
  try {
    (void)point("DE");
    FAIL();
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::unavailable);
    EXPECT_TRUE(e.transient());
  }
  clock->advance(10s);
  down = false;
  EXPECT_TRUE(point("FR").live());
  EXPECT_EQ(status().breaker, breaker_state::closed);
}

TEST_F(FailoverBreaker, NothingIsTriedAgainWhileItIsOpen) {
  for (const bool timed : {false, true}) {
    point_options options{.retry = retry_options{.attempts = 3, .backoff = 0ms},
                          .breaker = breaker_options{.window = 1, .minimum = 1}};
    if (timed) options.deadline = 20s;
    const auto point = protect(timed ? "timed" : "plain", options);
    script = [&](const std::string&) -> country {
      auto other = point.begin("DE");
      if (other.allowed()) {
        EXPECT_THROW((void)other.fail(std::make_exception_ptr(outage("down"))), outage);
      }
      throw outage("down");
    };
    calls = 0;
    EXPECT_THROW((void)point("FR"), outage);
    EXPECT_EQ(calls, 1) << (timed ? "with" : "without") << " a deadline";
  }
}

TEST_F(FailoverBreaker, TheStoreIsNoPartOfWhatItSees) {
  const auto point =
      protect("country-by-code",
              {.breaker = breaker_options{.window = 1, .minimum = 1, .slow = 1s, .slow_rate = 1}});
  shaky->before = [this](faulty_store::operation, std::span<const entry>) {
    clock->advance(5s);  // a slow store
    throw error(errc::unavailable, "and a failing one");
  };
  (void)point("FR");
  EXPECT_EQ(status().breaker, breaker_state::closed);
}

TEST_F(FailoverBreaker, AnUpstreamThatRefusesACallerIsWell) {
  const auto point =
      protect("country-by-code", {.classify = failure_rules{}.pass<gone>(),
                                  .breaker = breaker_options{.window = 1, .minimum = 1}});
  script = [](const std::string&) -> country { throw gone(); };
  EXPECT_THROW((void)point("FR"), gone);
  EXPECT_EQ(status().breaker, breaker_state::closed);
}

class FailoverRetry : public failover_test {};

TEST_F(FailoverRetry, PausesGrowAreJitteredAndBounded) {
  retry_plan plan(
      {.attempts = 10, .backoff = 100ms, .max_backoff = 350ms, .budget = 1, .reserve = 1000}, 7);
  std::chrono::microseconds longest[4]{};
  bool differs = false;
  std::chrono::microseconds last{-1};
  for (int i = 0; i < 200; ++i) {
    for (unsigned attempt = 1; attempt <= 3; ++attempt) {
      const auto next = plan.next(attempt);
      ASSERT_EQ(next.refused_by, retry_plan::refusal::none);
      longest[attempt] = std::max(longest[attempt], next.pause);
      differs = differs || (last.count() >= 0 && next.pause != last);
      last = next.pause;
    }
  }
  EXPECT_TRUE(differs);
  EXPECT_LE(longest[1], 100ms);
  EXPECT_LE(longest[2], 200ms);
  EXPECT_GT(longest[2], 150ms);
  EXPECT_LE(longest[3], 350ms);
  EXPECT_GT(longest[3], 250ms);
}

TEST_F(FailoverRetry, TheBudgetBoundsWhatAnOutageCosts) {
  retry_plan plan({.attempts = 5, .backoff = 0ms, .max_backoff = 0ms, .budget = 0.1, .reserve = 10},
                  7);
  int retries = 0;
  for (int call = 0; call < 1000; ++call) {
    plan.record_call();
    for (unsigned attempt = 1; plan.next(attempt).refused_by == retry_plan::refusal::none;
         ++attempt)
      ++retries;
  }
  EXPECT_GE(retries, 100);
  EXPECT_LE(retries, 111) << "a tenth of the calls, and what was saved up";
}

TEST_F(FailoverRetry, ACallIsTriedAgainBeforeTheStoreIsAsked) {
  const auto point =
      protect("country-by-code", {.retry = retry_options{.attempts = 3, .backoff = 0ms}});
  script = [this](const std::string& code) -> country {
    if (calls < 3) throw outage("flaky");
    return {code, "third time"};
  };
  const auto a = point("FR");
  EXPECT_TRUE(a.live());
  EXPECT_EQ(a->name, "third time");
  EXPECT_EQ(numbers().retries, 2U);
  EXPECT_EQ(finds, 0);
}

TEST_F(FailoverRetry, OnlyWhatMayBeRecoveredFromIsTriedAgain) {
  const auto point = protect("country-by-code", {.classify = failure_rules{}.pass<gone>(),
                                                 .retry = retry_options{.backoff = 0ms}});
  script = [](const std::string&) -> country { throw gone(); };
  EXPECT_THROW((void)point("FR"), gone);
  EXPECT_EQ(calls, 1);
}

TEST_F(FailoverRetry, EveryAttemptGetsTheArgumentsWhole) {
  std::vector<std::string> seen;
  auto point = current_engine().protect("taking", {.retry = retry_options{.backoff = 0ms}},
                                        [&](std::string taken) -> std::string {
                                          const std::string argument = std::move(taken);
                                          seen.push_back(argument);
                                          if (seen.size() < 3) throw outage("flaky");
                                          return argument;
                                        });
  const std::string whole = "a long argument that is moved, not copied, by its callee";
  EXPECT_EQ(*point(whole), whole);
  EXPECT_EQ(seen, std::vector<std::string>(3, whole));
}

TEST_F(FailoverRetry, WithoutBudgetTheStoreAnswersAtOnce) {
  const auto point =
      protect("country-by-code",
              {.retry = retry_options{.attempts = 2, .backoff = 0ms, .budget = 0, .reserve = 1}});
  (void)point("FR");
  down = true;
  (void)point("FR");
  (void)point("FR");
  EXPECT_EQ(numbers().retries, 1U);
  EXPECT_EQ(numbers().no_budget, 1U);
}

class FailoverLimit : public failover_test {};

TEST_F(FailoverLimit, OneMoreThanTheLimitIsAnsweredFromTheStore) {
  const auto point = protect("country-by-code", {.concurrency_limit = 1});
  (void)point("FR");
  std::latch inside(1);
  std::latch go(1);
  script = [&](const std::string& code) -> country {
    inside.count_down();
    go.wait();
    return {code, "slow"};
  };
  std::thread slow([&] { EXPECT_EQ(point("FR")->name, "slow"); });
  inside.wait();
  const auto a = point("FR");
  EXPECT_EQ(a->name, "France");
  EXPECT_EQ(a.cause().code(), cause_code::refused);
  EXPECT_EQ(numbers().limit_refused, 1U);
  go.count_down();
  slow.join();
  script = nullptr;
  EXPECT_TRUE(point("FR").live()) << "the place is free again";
}

TEST_F(FailoverLimit, AFailedCallGivesItsPlaceBack) {
  const auto point = protect("country-by-code", {.concurrency_limit = 1});
  down = true;
  for (int i = 0; i < 3; ++i) EXPECT_THROW((void)point("FR"), outage);
  EXPECT_EQ(numbers().limit_refused, 0U);
}

}  // namespace
}  // namespace holdfast::test
