// Why a call got its answer: decisions, their sentences, and the log that keeps them.

#include "support/eventually.hpp"
#include "support/gate.hpp"
#include "unit/failover/fixture.hpp"

#include <future>
#include <set>
#include <thread>

namespace holdfast::test {
namespace {

class FailoverDecided : public failover_test {
 protected:
  /// An engine that reports every decision, live ones included.
  engine& make_reporting(engine_options options = {}, std::uint32_t sample = 1) {
    options.insight.on_decision = [this](const decision& reported) {
      const std::scoped_lock lock(mutex);
      decisions.push_back(reported);
    };
    options.insight.sample = sample;
    return make(std::move(options));
  }
  decision last() {
    const std::scoped_lock lock(mutex);
    return decisions.empty() ? decision{} : decisions.back();
  }
  std::size_t count() {
    const std::scoped_lock lock(mutex);
    return decisions.size();
  }
  static std::string key_of(const std::string& code) {
    return key::failover({.name = "country-by-code"}, code);
  }

  std::mutex mutex{};
  std::vector<decision> decisions{};
};

TEST_F(FailoverDecided, EachEndOfACallIsReportedOnce) {
  make_reporting();
  const auto point = protect(
      "country-by-code",
      {.expiry = 1h, .classify = failure_rules{}.pass<std::logic_error>().invalidate<gone>()});
  const auto live = point("FR");
  ASSERT_EQ(count(), 1U);
  EXPECT_EQ(last().rule, decision_rule::live);
  EXPECT_EQ(last().key, key_of("FR"));
  EXPECT_EQ(last().attempts, 1U);
  EXPECT_EQ(decision_ref(live.provenance().decision), last().ref);

  clock->advance(4min);
  down = true;
  const auto stale = point("FR");
  ASSERT_EQ(count(), 2U);
  EXPECT_EQ(last().rule, decision_rule::recovered);
  EXPECT_EQ(last().origin, origin::stored);
  EXPECT_EQ(last().cause, cause_code::failed);
  EXPECT_EQ(last().exception_type, "holdfast::test::outage");
  EXPECT_EQ(last().as_of, live.as_of());
  EXPECT_EQ(last().expires, live.as_of() + 1h);
  EXPECT_EQ(last().miss, miss_reason::none);
  EXPECT_EQ(last().breaker, std::nullopt);
  EXPECT_EQ(decision_ref(stale.provenance().decision), last().ref);

  EXPECT_THROW((void)point("DE"), outage);
  ASSERT_EQ(count(), 3U);
  EXPECT_EQ(last().rule, decision_rule::unserved);
  EXPECT_EQ(last().miss, miss_reason::not_found);
  EXPECT_EQ(last().as_of, std::nullopt);

  script = [](const std::string&) -> country { throw std::logic_error("secret"); };
  EXPECT_THROW((void)point("FR"), std::logic_error);
  EXPECT_EQ(last().rule, decision_rule::passed);
  EXPECT_EQ(last().exception_type, "std::logic_error");
  script = [](const std::string&) -> country { throw gone(); };
  EXPECT_THROW((void)point("FR"), gone);
  EXPECT_EQ(last().rule, decision_rule::invalidated);
  EXPECT_EQ(count(), 5U);
  const std::set<std::string> refs{decisions[0].ref, decisions[1].ref, decisions[2].ref,
                                   decisions[3].ref, decisions[4].ref};
  EXPECT_EQ(refs.size(), 5U);
  finish();
}

TEST_F(FailoverDecided, SaysWhyAKeptAnswerWasRefused) {
  make_reporting();
  const auto point = protect("country-by-code", {.expiry = 1h});
  const auto live = point("FR");
  clock->advance(1h + 3min);
  down = true;
  EXPECT_THROW((void)point("FR"), outage);
  EXPECT_EQ(last().miss, miss_reason::expired);
  EXPECT_EQ(last().as_of, live.as_of());
  EXPECT_EQ(last().expires, live.as_of() + 1h);
  EXPECT_EQ(explain(last()),
            "Nothing was served because the upstream failed with holdfast::test::outage after 0 "
            "ms, and the kept answer of 00:00:00 UTC expired at 01:00:00 UTC, 3 min earlier.");
  store_down = true;
  EXPECT_THROW((void)point("FR"), outage);
  EXPECT_EQ(last().miss, miss_reason::read_failed);
  finish();
}

TEST_F(FailoverDecided, SoftExpiryBreakerAndSubstitutesAreReported) {
  make_reporting();
  const auto soft = protect("soft", {.expiry = 1h, .soft_expiry = 1min});
  (void)soft("FR");
  clock->advance(30s);
  (void)soft("FR");
  EXPECT_EQ(last().rule, decision_rule::soft_expiry);
  EXPECT_EQ(last().cause, cause_code::fresh);
  EXPECT_EQ(last().attempts, 0U);

  down = true;
  const auto broken = protect("broken", {.exception_policy = exception_policy::never_throw,
                                         .breaker = breaker_options{.window = 10, .minimum = 1}});
  while (status("broken").breaker != breaker_state::open) (void)broken("FR");
  (void)broken("FR");
  EXPECT_EQ(last().rule, decision_rule::substituted);
  EXPECT_EQ(last().cause, cause_code::refused);
  EXPECT_EQ(last().breaker, breaker_state::open);
  EXPECT_EQ(explain(last()),
            "Served a substitute because the upstream was not asked: the breaker is open, and no "
            "answer is kept for it.");
  finish();
}

TEST_F(FailoverDecided, CallsWithADeadlineAreReportedWithTheTimeThatTheyWaited) {
  make_reporting();
  const auto held = std::make_shared<gate>();
  const auto point = protect("country-by-code", {.expiry = 1h, .deadline = 20s});
  (void)point("FR");
  EXPECT_EQ(last().rule, decision_rule::live);
  EXPECT_EQ(last().attempts, 1U);
  EXPECT_EQ(last().key, key_of("FR"));
  script = [held](const std::string& code) -> country {
    held->wait();
    return {code, "late"};
  };
  const open_in_the_end release(*held);
  auto caller = std::async(std::launch::async, [&] { return point("FR"); });
  ASSERT_TRUE(eventually([&] { return held->waiting() == 1; }));
  clock->advance(20s);
  (void)caller.get();
  EXPECT_EQ(last().rule, decision_rule::recovered);
  EXPECT_EQ(last().cause, cause_code::late);
  EXPECT_EQ(last().waited, 20s);
  EXPECT_EQ(explain(last()),
            "Served the answer of 00:00:00 UTC (20 s old) because the upstream had not answered "
            "after 20 s; it may be served until 01:00:00 UTC.");
  held->open();
  ASSERT_TRUE(eventually([&] { return status().running == 0; }));
  finish();
}

TEST_F(FailoverDecided, OneLiveAnswerInSoManyIsReported) {
  make_reporting({}, 100);
  const auto point = protect();
  for (int i = 0; i < 20'000; ++i) (void)point("FR");
  EXPECT_GT(count(), 100U);
  EXPECT_LT(count(), 400U);
  decisions.clear();
  make_reporting({}, 0);
  const auto silent = protect();
  for (int i = 0; i < 1000; ++i) (void)silent("FR");
  EXPECT_EQ(count(), 0U);
  down = true;
  (void)silent("FR");
  EXPECT_EQ(count(), 1U) << "what is not live is always reported";
  finish();
}

TEST_F(FailoverDecided, AHookThatThrowsDoesNotBreakACall) {
  make({.insight = {.on_decision = [](const decision&) { throw std::runtime_error("full"); },
                    .sample = 1}});
  const auto point = protect();
  EXPECT_TRUE(point("FR").live());
  down = true;
  EXPECT_TRUE(point("FR").stale());
  EXPECT_EQ(numbers().hook_failed, 2U);
  EXPECT_TRUE(logged("on_decision"));
}

TEST_F(FailoverDecided, SplitPhasesAndSharedCallsAreReported) {
  make_reporting();
  const auto point = protect("country-by-code", {.expiry = 1h, .single_flight = true});
  auto first = point.begin("FR");
  (void)first.succeed(country{"FR", "France"});
  EXPECT_EQ(last().rule, decision_rule::live);
  EXPECT_EQ(last().key, key_of("FR"));
  auto second = point.begin("FR");
  EXPECT_TRUE(second.fail().stale());
  EXPECT_EQ(last().rule, decision_rule::recovered);
  (void)point("DE");
  EXPECT_EQ(last().rule, decision_rule::live);
  EXPECT_EQ(count(), 3U);
  finish();
}

TEST(DecisionLog, KeepsTheLast) {
  decision_log log(3);
  for (std::uint64_t i = 1; i <= 5; ++i)
    log.record({.ref = decision_ref(i), .point = i % 2 == 0 ? "even" : "odd"});
  EXPECT_EQ(log.find(decision_ref(2)), std::nullopt);
  ASSERT_TRUE(log.find(decision_ref(3)));
  EXPECT_EQ(log.find(decision_ref(3))->point, "odd");
  const auto newest = log.latest("", 2);
  ASSERT_EQ(newest.size(), 2U);
  EXPECT_EQ(newest[0].ref, decision_ref(5));
  EXPECT_EQ(newest[1].ref, decision_ref(4));
  EXPECT_EQ(log.latest("odd", 10).size(), 2U);
  EXPECT_TRUE(log.latest("never", 10).empty());
  EXPECT_THROW(decision_log(0), error);
}

TEST(DecisionLog, TakesTheSameReferenceTwice) {
  decision_log log(2);
  for (int i = 0; i < 5; ++i) log.record({.ref = "same", .point = std::to_string(i)});
  ASSERT_TRUE(log.find("same"));
  EXPECT_EQ(log.find("same")->point, "4");
}

TEST(DecisionLog, IsSharedByThreads) {
  decision_log log(100);
  std::vector<std::jthread> threads;
  for (std::uint64_t thread = 0; thread < 4; ++thread)
    threads.emplace_back([&log, thread] {
      for (std::uint64_t i = 0; i < 1000; ++i) {
        log.record({.ref = decision_ref(1 + thread * 1000 + i), .point = "p"});
        (void)log.find(decision_ref(1 + i));
        (void)log.latest("p", 5);
      }
    });
  threads.clear();
  EXPECT_EQ(log.latest("", 1000).size(), 100U);
}

TEST(DecisionRef, IsShortAndUnique) {
  EXPECT_EQ(decision_ref(0), "");
  EXPECT_EQ(decision_ref(1), "00000001");
  EXPECT_EQ(decision_ref(32), "00000010");
  EXPECT_EQ(decision_ref(~std::uint64_t{0}).size(), 8U);
}

TEST(Explain, NamesTheDayOfOtherDays) {
  const timestamp now = std::chrono::sys_days(std::chrono::year(2026) / 11 / 15) + 23h + 5min;
  const decision reported{.time = now,
                          .rule = decision_rule::recovered,
                          .origin = origin::stored,
                          .cause = cause_code::failed,
                          .exception_type = "http_error",
                          .as_of = now - 2h - 58min,
                          .expires = now + 22h,
                          .waited = 210ms,
                          .attempts = 3};
  EXPECT_EQ(explain(reported),
            "Served the answer of 20:07:00 UTC (2 h 58 min old) because the upstream failed with "
            "http_error after 210 ms in the last of 3 attempts; it may be served until 2026-11-16 "
            "21:05:00 UTC.");
  EXPECT_EQ(explain({.time = now, .duration = 12ms}), "The upstream answered after 12 ms.");
}

TEST(Explain, HasASentenceForEveryCombination) {
  for (int rule = 0; rule < 8; ++rule) {
    for (int code = 0; code < 8; ++code) {
      for (int miss = 0; miss < 9; ++miss) {
        const auto text = explain({.rule = static_cast<decision_rule>(rule),
                                   .cause = static_cast<cause_code>(code),
                                   .miss = static_cast<miss_reason>(miss)});
        ASSERT_FALSE(text.empty());
        EXPECT_EQ(text.back(), '.');
        EXPECT_EQ(text.find("  "), std::string::npos) << text;
        EXPECT_NE(to_string(static_cast<decision_rule>(rule)), "unknown");
        EXPECT_NE(to_string(static_cast<miss_reason>(miss)), "unknown");
        EXPECT_NE(to_string(static_cast<cause_code>(code)), "unknown");
      }
    }
  }
}

}  // namespace
}  // namespace holdfast::test
