// What kept answers are worth: coverage and outlook; and the options that are in force.

#include <holdfast/store/tenants.hpp>

#include "support/eventually.hpp"
#include "support/gate.hpp"
#include "unit/failover/fixture.hpp"

#include <future>
#include <thread>

namespace holdfast::test {
namespace {

class FailoverOutlook : public failover_test {
 protected:
  engine& make_observing(engine_options options = {}, bool waits = false) {
    options.insight.coverage = true;
    options.insight.sample = 1;
    return make(std::move(options), waits);
  }
  /// Each key with an hour more than the one before.
  auto protect_with_expiry() {
    return protect("country-by-code", {}, {.expiry = [](const country& value, timestamp now) {
                     return now + std::chrono::hours(std::stoi(value.code));
                   }});
  }
};

TEST_F(FailoverOutlook, IsWeightedByWhatIsAsked) {
  auto& e = make_observing();
  const auto point = protect_with_expiry();
  // Key 1 is asked for once, key 10 nine times.
  (void)point("1");
  for (int i = 0; i < 9; ++i) (void)point("10");
  const auto now = clock->now();
  const auto outlook = e.outlook("country-by-code");
  EXPECT_EQ(outlook.calls, 10U);
  EXPECT_EQ(outlook.sampled_keys, 10U);
  EXPECT_DOUBLE_EQ(outlook.covered.value(), 1.0);
  EXPECT_EQ(outlook.first, now + 1h);
  EXPECT_EQ(outlook.half, now + 10h);
  EXPECT_EQ(outlook.most, now + 10h);
  EXPECT_EQ(outlook.entries, 2U);
  EXPECT_FALSE(outlook.entries_at_least);
  const auto part_at = [&](const std::vector<point_outlook::step>& steps, timestamp until) {
    for (const auto& step : steps) {
      if (step.until == until) return step.part;
    }
    return -1.0;
  };
  EXPECT_DOUBLE_EQ(part_at(outlook.calls_covered, now + 1h), 1.0);
  EXPECT_DOUBLE_EQ(part_at(outlook.calls_covered, now + 3h), 0.9);
  EXPECT_DOUBLE_EQ(part_at(outlook.calls_covered, now + 12h), 0.0);
  EXPECT_DOUBLE_EQ(part_at(outlook.entries_left, now + 3h), 0.5) << "rows count once each";
  EXPECT_EQ(explain(outlook),
            "If the upstream stays down, the first answers expire in 1 h, half of them in 10 h, 90 "
            "% in 10 h. Of the calls of the last hour 100 % are covered now.");
  clock->advance(2h);
  (void)point("1");
  const auto later = e.outlook("country-by-code");
  EXPECT_EQ(later.calls, 1U) << "the calls of the last hour";
  EXPECT_EQ(later.entries, 2U);
}

TEST_F(FailoverOutlook, TellsCallsThatAreNotCovered) {
  auto& e = make_observing();
  const auto point = protect("country-by-code", {.expiry = 10min});
  (void)point("FR");
  (void)point("DE");
  down = true;
  EXPECT_THROW((void)point("IT"), outage);
  EXPECT_THROW((void)point("ES"), outage);
  EXPECT_DOUBLE_EQ(e.outlook("country-by-code").covered.value(), 0.5);
  clock->advance(10min + 1us);
  const auto expired = e.outlook("country-by-code");
  EXPECT_DOUBLE_EQ(expired.covered.value(), 0.0);
  EXPECT_EQ(expired.first, std::nullopt);
  EXPECT_EQ(expired.entries, 0U);
  EXPECT_TRUE(expired.entries_left.empty());
}

TEST_F(FailoverOutlook, WithoutInsightItKnowsTheEntriesOnly) {
  auto& e = make();
  const auto point = protect("country-by-code", {.expiry = 1h});
  (void)point("FR");
  const auto outlook = e.outlook("country-by-code");
  EXPECT_EQ(outlook.calls, 0U);
  EXPECT_EQ(outlook.covered, std::nullopt);
  EXPECT_EQ(outlook.entries, 1U);
  EXPECT_EQ(e.coverage("country-by-code").part(), std::nullopt);
  EXPECT_THROW((void)e.outlook("never"), error);
  EXPECT_THROW((void)e.coverage("never"), error);
}

TEST_F(FailoverOutlook, CoverageSeesNewKeysAndExpiredAnswers) {
  const auto registry = make_prometheus_registry();
  auto& e = make_observing({.metrics = registry});
  const auto point = protect("country-by-code", {.expiry = 10min});
  (void)point("FR");  // new: not covered
  clock->advance(1s);
  for (int i = 0; i < 7; ++i) {
    (void)point("FR");
    clock->advance(1s);
  }
  (void)point("DE");
  clock->advance(11min);
  (void)point("FR");  // expired
  const auto coverage = e.coverage("country-by-code");
  EXPECT_EQ(coverage.checked, 10U);
  EXPECT_EQ(coverage.covered, 7U);
  EXPECT_EQ(coverage.not_found, 2U);
  EXPECT_EQ(coverage.expired, 1U);
  EXPECT_DOUBLE_EQ(coverage.part().value(), 0.7);
  EXPECT_EQ(numbers().covered, 7U);
  EXPECT_EQ(numbers().uncovered, 3U);
  e.report();
  const auto text = registry->text();
  for (
      const char* each : {
          R"(holdfast_point_coverage{domain="country-by-code",name="country-by-code"} 0.7)",
          R"(holdfast_failover_coverage_checks_total{domain="country-by-code",name="country-by-code",result="covered"} 7)",
          R"(holdfast_point_outlook_seconds{domain="country-by-code",name="country-by-code",part="first"})",
      }) {
    EXPECT_NE(text.find(each), std::string::npos) << each << "\nis not in\n" << text;
  }
  clock->advance(1h);
  EXPECT_EQ(e.coverage("country-by-code").checked, 0U);
  finish();
}

TEST_F(FailoverOutlook, ChecksOfAStoreThatMayBlockRunInTheBackground) {
  auto& e = make_observing({}, true);
  const auto point = protect("country-by-code", {.expiry = 1h});
  (void)point("FR");
  ASSERT_TRUE(eventually([&] {
    const auto coverage = e.coverage("country-by-code");
    return coverage.checked + coverage.undecided == 1;
  }));
  ASSERT_TRUE(e.flush(clock->steady() + 20s));
  clock->advance(1s);
  auto pending = point.begin("FR");  // its check cannot come after its answer
  ASSERT_TRUE(eventually([&] { return e.coverage("country-by-code").covered == 1; }));
  (void)pending.succeed(country{"FR", "France"});
}

TEST_F(FailoverOutlook, ACheckThatComesAfterTheNewAnswerSaysNothing) {
  const auto held = std::make_shared<gate>();
  auto& e = make_observing({}, true);
  shaky->before = [held](faulty_store::operation operation, std::span<const entry>) {
    if (operation == faulty_store::operation::find) held->wait();
  };
  const auto point = protect("country-by-code", {.expiry = 1h});
  const open_in_the_end release(*held);
  (void)point("FR");  // new, and its check waits
  ASSERT_TRUE(eventually([&] { return held->waiting() == 1; }));
  ASSERT_TRUE(e.flush(clock->steady() + 20s));
  held->open();
  ASSERT_TRUE(eventually([&] { return e.coverage("country-by-code").undecided == 1; }));
  EXPECT_EQ(e.coverage("country-by-code").checked, 0U);
  finish();
}

TEST_F(FailoverOutlook, AStoreThatHangsKeepsFourLooksAndNoCall) {
  const auto held = std::make_shared<gate>();
  make_observing({.threads = {.count = 8}, .storage = {.read_deadline = 200ms}}, true);
  const auto point = protect("country-by-code", {.expiry = 1h});
  shaky->before = [held](faulty_store::operation operation, std::span<const entry>) {
    if (operation == faulty_store::operation::find) held->wait();
  };
  const open_in_the_end release(*held);
  for (int i = 0; i < 500; ++i) EXPECT_TRUE(point("new" + std::to_string(i)).live());
  EXPECT_LE(held->waiting(), 4);
  const auto coverage = current_engine().coverage("country-by-code");
  EXPECT_EQ(coverage.covered, 0U);
  held->open();
  finish();
}

TEST_F(FailoverOutlook, AnOutlookOfAStoreThatHangsEndsAndKeepsOneThread) {
  const auto held = std::make_shared<gate>();
  auto& e = make_observing({}, true);
  const auto point = protect("country-by-code", {.expiry = 1h});
  shaky->before = [held](faulty_store::operation operation, std::span<const entry>) {
    if (operation == faulty_store::operation::find_all) held->wait();
  };
  const open_in_the_end release(*held);
  std::vector<std::future<errc>> questions;
  for (int i = 0; i < 4; ++i)
    questions.push_back(std::async(std::launch::async, [&] {
      try {
        (void)e.outlook("country-by-code");
      } catch (const error& problem) {
        return problem.code();
      }
      return errc::internal;
    }));
  ASSERT_TRUE(eventually([&] { return held->waiting() == 1; }));
  clock->advance(2s);
  for (auto& question : questions) EXPECT_EQ(question.get(), errc::timeout);
  EXPECT_EQ(held->waiting(), 1);
  held->open();
  EXPECT_TRUE(eventually([&] {
    try {
      return e.outlook("country-by-code").calls == 0;
    } catch (const error&) {
      return false;
    }
  }));
  finish();
}

TEST_F(FailoverOutlook, AFailureOfTheStoreIsThrown) {
  auto& e = make_observing({}, true);
  const auto point = protect();
  store_down = true;
  EXPECT_THROW((void)e.outlook("country-by-code"), error);
  finish();
}

TEST_F(FailoverOutlook, TenantsHaveTheirOwnEntries) {
  std::string tenant = "acme";
  const auto tenants = make_memory_store({.clock = clock});
  engine e(tenants, {.clock = clock,
                     .caller = {.tenant = [&] { return tenant; }},
                     .insight = {.coverage = true, .sample = 1}});
  const auto point = e.protect("p", {.expiry = 1h}, [](int n) { return std::to_string(n); });
  (void)point(1);
  tenant = "other";
  (void)point(2);
  (void)point(3);
  const auto outlook = e.outlook("p");
  EXPECT_EQ(outlook.entries, 2U);
  EXPECT_DOUBLE_EQ(outlook.covered.value(), 1.0) << "calls of all tenants";
}

TEST_F(FailoverOutlook, AThousandPointsAreObserved) {
  const auto registry = make_prometheus_registry();
  auto& e = make_observing({.metrics = registry});
  std::vector<point<country(const std::string&)>> points;
  for (int i = 0; i < 1000; ++i) points.push_back(protect("p" + std::to_string(i)));
  for (const auto& each : points) (void)each("FR");
  for (int i = 0; i < 1000; i += 100) {
    const auto name = "p" + std::to_string(i);
    EXPECT_EQ(e.outlook(name).calls, 1U);
    EXPECT_EQ(e.coverage(name).checked, 1U);
    (void)e.drill(name);
  }
  EXPECT_EQ(e.drills().size(), 10U);
  e.report();
  finish();
}

TEST_F(FailoverOutlook, KeysOfManyCallsAreASample) {
  auto& e = make_observing();
  const auto point = protect("country-by-code", {.expiry = 1h});
  for (int i = 0; i < 20'000; ++i) {
    (void)point(i % 4 == 0 ? "rare" + std::to_string(i) : "frequent");
    if (i % 1000 == 0) clock->advance(2min);
  }
  const auto outlook = e.outlook("country-by-code");
  EXPECT_LE(outlook.sampled_keys, 240U);
  EXPECT_GE(outlook.sampled_keys, 100U);
  EXPECT_GT(outlook.calls, 10'000U);
  EXPECT_DOUBLE_EQ(outlook.covered.value(), 1.0);
}

TEST_F(FailoverOutlook, ThreadsCallAndAskAtOnce) {
  auto& e = make_observing();
  const auto point = protect("country-by-code", {.expiry = 1h});
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread)
      threads.emplace_back([&, thread] {
        for (int i = 0; i < 500; ++i) {
          (void)point(std::to_string(i % 50));
          if (thread == 0) clock->advance(10s);
          if (i % 50 == 0) (void)e.outlook("country-by-code");
          if (i % 50 == 1) (void)e.coverage("country-by-code");
        }
      });
  }
  EXPECT_EQ(numbers().live, 2000U);
}

TEST_F(FailoverOutlook, ExplainsWhatItDoesNotKnow) {
  EXPECT_EQ(explain(point_outlook{}), "No calls are known, and no answer is kept.");
  EXPECT_EQ(explain(point_outlook{.entries = 5, .entries_at_least = true}),
            "No calls of the last hour are known; at least 5 answers are kept.");
  EXPECT_EQ(explain(point_outlook{.covered = 0.9999}),
            "Of the calls of the last hour 99 % are covered now.");
}

TEST_F(FailoverOutlook, ResolvedOptionsAreThoseInForce) {
  auto& e = make({.exception_policy = exception_policy::never_throw,
                  .configure = [](std::string_view, point_options& options) {
                    options.expiry = 3h;
                    options.deadline = 2s;
                  }});
  const auto point = protect("country-by-code", {.expiry = 1h, .soft_expiry = 1min});
  const auto resolved = e.resolved("country-by-code");
  EXPECT_EQ(resolved.expiry.text(), expiry(3h).text()) << "what the file says";
  EXPECT_EQ(resolved.deadline, 2s);
  EXPECT_EQ(resolved.soft_expiry, 1min) << "what the code says";
  EXPECT_EQ(resolved.domain, "country-by-code");
  EXPECT_EQ(resolved.exception_policy, exception_policy::never_throw);
  EXPECT_EQ(resolved.key_style, key::style::escaped);
  EXPECT_EQ(resolved.max_payload, engine_storage{}.max_payload);
  EXPECT_EQ(resolved.payload_class, status().payload_class);
  EXPECT_EQ(resolved.write_behind, false) << "the store is in memory and has no queue";
  EXPECT_TRUE(resolved.scatter);
  EXPECT_THROW((void)e.resolved("never"), error);
  EXPECT_EQ(e.status("country-by-code").expiry, resolved.expiry.text());
  EXPECT_THROW((void)e.status("never"), error);
}

}  // namespace
}  // namespace holdfast::test
