// Drills: an outage is rehearsed on a part of the calls, and no call fails because of it.

#include "support/eventually.hpp"
#include "support/gate.hpp"
#include "unit/failover/fixture.hpp"

#include <cmath>
#include <random>
#include <thread>

namespace holdfast::test {
namespace {

class FailoverDrill : public failover_test {};

TEST_F(FailoverDrill, ServesWhatIsKeptAndAsksOtherwise) {
  const auto registry = make_prometheus_registry();
  std::vector<decision> decisions;
  make({.metrics = registry,
        .insight = {.on_decision = [&](const decision& reported) { decisions.push_back(reported); },
                    .sample = 0}});
  const auto point = protect("country-by-code", {.expiry = 1h});
  (void)point("FR");
  clock->advance(1min);
  const auto started = current_engine().drill("country-by-code", {.part = 1, .length = 5min});
  EXPECT_EQ(started.end, drill_end::running);
  EXPECT_EQ(started.ends, clock->now() + 5min);
  const int asked = calls;
  const auto served = point("FR");
  EXPECT_TRUE(served.stale());
  EXPECT_EQ(served.cause().code(), cause_code::drill);
  EXPECT_EQ(served->name, "France");
  EXPECT_EQ(calls, asked) << "the upstream counts as down";
  ASSERT_EQ(decisions.size(), 1U);
  EXPECT_EQ(decisions[0].rule, decision_rule::drilled);
  EXPECT_NE(explain(decisions[0]).find("a drill rehearses an outage"), std::string::npos);
  const auto live = point("DE");
  EXPECT_TRUE(live.live()) << "nothing is kept, so the upstream is asked after all";
  EXPECT_EQ(calls, asked + 1);
  EXPECT_TRUE(point("DE").stale()) << "now it is kept";

  const auto reports = current_engine().drills();
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_EQ(reports[0].point, "country-by-code");
  EXPECT_EQ(reports[0].calls, 3U);
  EXPECT_EQ(reports[0].selected, 3U);
  EXPECT_EQ(reports[0].served, 2U);
  EXPECT_EQ(reports[0].not_covered, 1U);
  EXPECT_EQ(reports[0].ages.count, 2U);
  EXPECT_EQ(reports[0].ages.longest, 1min);
  EXPECT_EQ(numbers().drill_served, 2U);
  EXPECT_EQ(numbers().drill_uncovered, 1U);
  EXPECT_EQ(numbers().stale, 2U);
  EXPECT_EQ(numbers().not_found, 0U) << "no call was recovered";
  EXPECT_NE(
      registry->text().find(
          R"(holdfast_failover_drill_total{domain="country-by-code",name="country-by-code",result="served"} 2)"),
      std::string::npos);
  finish();
}

TEST_F(FailoverDrill, EndsByItself) {
  const auto point = protect("country-by-code", {.expiry = 1h});
  (void)point("FR");
  (void)current_engine().drill("country-by-code", {.part = 1, .length = 1min});
  EXPECT_THROW((void)current_engine().drill("country-by-code"), error) << "one at a time";
  clock->advance(1min);
  EXPECT_TRUE(point("FR").live());
  (void)point("FR");
  const auto report = current_engine().drills().front();
  EXPECT_EQ(report.end, drill_end::time);
  EXPECT_EQ(report.selected, 0U);
  (void)current_engine().drill("country-by-code", {.part = 1});
  EXPECT_TRUE(point("FR").stale());
  const auto ended = current_engine().end_drill("country-by-code");
  EXPECT_EQ(ended.end, drill_end::request);
  EXPECT_EQ(ended.ends, clock->now());
  EXPECT_EQ(ended.served, 1U);
  EXPECT_TRUE(point("FR").live());
  EXPECT_EQ(current_engine().end_drill("country-by-code").end, drill_end::request);
}

TEST_F(FailoverDrill, RefusesWhatItCannotDo) {
  auto& e = make();
  const auto point = protect();
  const auto many = e.protect_each("many", {}, [](std::span<const int> ids) {
    return std::vector<std::optional<std::string>>(ids.size(), "x");
  });
  const auto disabled = protect("disabled", {.enabled = false});
  const auto code = [&](std::string_view name, const drill_options& options) {
    try {
      (void)e.drill(name, options);
    } catch (const error& problem) {
      return problem.code();
    }
    return errc::internal;
  };
  EXPECT_EQ(code("never", {}), errc::not_found);
  EXPECT_EQ(code("many", {}), errc::invalid_argument);
  EXPECT_EQ(code("disabled", {}), errc::invalid_argument);
  EXPECT_EQ(code("country-by-code", {.part = 0}), errc::invalid_argument);
  EXPECT_EQ(code("country-by-code", {.part = 1.01}), errc::invalid_argument);
  EXPECT_EQ(code("country-by-code", {.part = std::nan("")}), errc::invalid_argument);
  EXPECT_EQ(code("country-by-code", {.length = 0us}), errc::invalid_argument);
  EXPECT_EQ(code("country-by-code", {.length = 15min + 1us}), errc::invalid_argument);
  EXPECT_THROW((void)e.end_drill("country-by-code"), error);
  EXPECT_TRUE(e.drills().empty());
}

TEST_F(FailoverDrill, SelectsAboutItsPartOfTheCalls) {
  const auto point = protect("country-by-code", {.expiry = 1h});
  (void)point("FR");
  (void)current_engine().drill("country-by-code", {.part = 0.1});
  for (int i = 0; i < 10'000; ++i) (void)point("FR");
  const auto report = current_engine().drills().front();
  EXPECT_EQ(report.calls, 10'000U);
  EXPECT_GT(report.selected, 700U);
  EXPECT_LT(report.selected, 1300U);
  EXPECT_EQ(report.served, report.selected);
  EXPECT_EQ(static_cast<std::uint64_t>(calls), 10'001 - report.served);
}

TEST_F(FailoverDrill, WhatIfTouchesNoAnswer) {
  for (const bool waits : {false, true}) {
    calls = 0;
    make({}, waits);
    const auto point = protect("country-by-code", {.expiry = 1h});
    (void)point("FR");
    ASSERT_TRUE(current_engine().flush(std::chrono::steady_clock::now() + 24h * 365));
    (void)current_engine().drill("country-by-code", {.part = 1, .what_if = true});
    EXPECT_TRUE(point("FR").live());
    EXPECT_TRUE(point("DE" + std::to_string(waits)).live());
    EXPECT_EQ(calls, 3);
    EXPECT_TRUE(eventually([&] {
      const auto report = current_engine().drills().front();
      return report.selected == 2 && report.served + report.not_covered == 2;
    })) << waits;
    EXPECT_EQ(numbers().stale, 0U);
    finish();
  }
}

// At most four calls are checked at the same time. That the others are not checked does not mean
// that the store does not answer.
TEST_F(FailoverDrill, WhatIfOfManyCallsAtOnceGoesOn) {
  const auto held = std::make_shared<gate>();
  make({}, true);
  const auto point = protect("country-by-code", {.expiry = 1h});
  std::atomic<bool> holds{false};
  shaky->before = [held, &holds](faulty_store::operation operation, std::span<const entry>) {
    if (holds && operation == faulty_store::operation::find) held->wait();
  };
  const open_in_the_end release(*held);
  (void)current_engine().drill("country-by-code", {.part = 1, .what_if = true});
  holds = true;
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(point("DE" + std::to_string(i)).live());
  EXPECT_EQ(current_engine().drills().front().end, drill_end::running);
  holds = false;
  held->open();
  EXPECT_TRUE(eventually([&] {
    const auto report = current_engine().drills().front();
    return report.served + report.not_covered == 4;
  }));
  EXPECT_TRUE(point("FR").live());
  EXPECT_EQ(current_engine().drills().front().selected, 9U);
  finish();
}

TEST_F(FailoverDrill, CallsWithADeadlineAndSplitPhasesTakePart) {
  const auto point = protect("country-by-code", {.expiry = 1h, .deadline = 20s});
  (void)point("FR");
  (void)current_engine().drill("country-by-code", {.part = 1});
  EXPECT_EQ(point("FR").cause().code(), cause_code::drill);
  EXPECT_TRUE(point("DE").live());
  auto drilled = point.begin("FR");
  const auto kept = drilled.rehearse();
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->cause().code(), cause_code::drill);
  EXPECT_THROW((void)drilled.succeed(country{}), error) << "the call has its outcome";
  auto uncovered = point.begin("IT");
  EXPECT_FALSE(uncovered.rehearse());
  EXPECT_TRUE(uncovered.succeed(country{"IT", "Italy"}).live());
  EXPECT_EQ(status().running, 0U);
  (void)current_engine().end_drill("country-by-code");
  auto after = point.begin("FR");
  EXPECT_FALSE(after.rehearse());
  (void)after.succeed(country{"FR", "France"});
}

TEST_F(FailoverDrill, AStoreThatHangsEndsTheDrillAndNoCallFails) {
  const auto held = std::make_shared<gate>();
  make({.storage = {.read_deadline = 100ms}}, true);
  // Upstreams that need nearly all of the deadline.
  const auto point = current_engine().protect("country-by-code", {.expiry = 1h, .deadline = 20s},
                                              [&](const std::string& code) {
                                                ++calls;
                                                return country{code, "live"};
                                              });
  shaky->before = [held](faulty_store::operation operation, std::span<const entry>) {
    if (operation == faulty_store::operation::find) held->wait();
  };
  const open_in_the_end release(*held);
  (void)current_engine().drill("country-by-code", {.part = 1});
  EXPECT_TRUE(point("FR").live());
  const auto report = current_engine().drills().front();
  EXPECT_EQ(report.end, drill_end::store);
  EXPECT_EQ(report.not_covered, 1U);
  EXPECT_TRUE(point("DE").live());
  EXPECT_EQ(current_engine().drills().front().selected, 1U) << "later calls do not wait";
  held->open();
  finish();
}

TEST_F(FailoverDrill, TheTimeOfALookIsGivenBackToTheUpstream) {
  make({}, true);
  // Set before the first call: the queue writes on a thread of its own.
  std::atomic<bool> slow{false};
  shaky->before = [this, &slow](faulty_store::operation operation, std::span<const entry>) {
    if (slow && operation == faulty_store::operation::find) clock->advance(3s);
  };
  std::atomic<std::chrono::steady_clock::time_point> deadline{};
  const auto point =
      current_engine().protect("country-by-code", {.expiry = 1h, .deadline = 20s},
                               [&](const call_context& context, const std::string& code) {
                                 deadline = *context.deadline;
                                 return country{code, "live"};
                               });
  (void)current_engine().drill("country-by-code", {.part = 1});
  slow = true;
  const auto before = std::chrono::steady_clock::now();
  EXPECT_TRUE(point("DE").live());
  EXPECT_GE(deadline.load() - before, 19s) << "as without the look";
  finish();
}

/// Any mixture of points, keys and failures: with drills, every call ends as without them or
/// better.
TEST_F(FailoverDrill, NeverMakesACallFail) {
  std::mt19937 random(7);
  const auto any = [&](int most) {
    return static_cast<int>(random() % static_cast<unsigned>(most));
  };
  for (int round = 0; round < 20; ++round) {
    make({}, round % 2 == 0);
    point_options options{.expiry = 10min};
    if (round % 3 == 0) options.deadline = 20s;
    if (round % 4 == 0) options.single_flight = true;
    if (round % 5 == 0) options.breaker = breaker_options{};
    if (round % 7 == 0) options.soft_expiry = 1min;
    point_hooks<country> hooks;
    if (round % 6 == 0)
      hooks.recovered = [](std::optional<country>& value, const provenance&) {
        if (value && value->code == "2") value.reset();
        if (value && value->code == "3") throw std::runtime_error("hook");
      };
    const auto point = protect("country-by-code", options, hooks);
    for (int step = 0; step < 100; ++step) {
      if (any(10) == 0) {
        try {
          (void)current_engine().drill("country-by-code",
                                       {.part = any(2) == 0 ? 1.0 : 0.5,
                                        .length = std::chrono::seconds(1 + any(120)),
                                        .what_if = any(4) == 0});
        } catch (const error& problem) {
          EXPECT_EQ(problem.code(), errc::duplicate);
        }
      }
      if (any(10) == 0) store_down = any(3) == 0;
      clock->advance(std::chrono::seconds(any(90)));
      EXPECT_NO_THROW((void)point(std::to_string(any(8)))) << round << ' ' << step;
    }
    store_down = false;
    EXPECT_EQ(numbers().failed, 0U);
    finish();
  }
}

TEST_F(FailoverDrill, ThreadsCallAndDrillAtOnce) {
  make();
  const auto point = protect("country-by-code", {.expiry = 1h});
  (void)point("1");
  std::atomic<bool> stop{false};
  std::atomic<int> failures{0};
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 3; ++thread)
      threads.emplace_back([&] {
        while (!stop)
          for (int i = 0; i < 4; ++i) {
            if (!point.try_call(std::to_string(i)).has_value()) ++failures;
          }
      });
    for (int i = 0; i < 200; ++i) {
      (void)current_engine().drill("country-by-code", {.part = 0.5, .what_if = i % 2 == 0});
      (void)current_engine().drills();
      (void)current_engine().end_drill("country-by-code");
    }
    stop = true;
  }
  EXPECT_EQ(failures, 0);
}

}  // namespace
}  // namespace holdfast::test
