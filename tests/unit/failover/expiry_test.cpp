// How long an answer may be served.

#include "unit/failover/fixture.hpp"

namespace holdfast::test {
namespace {

using namespace std::chrono;

class FailoverExpiry : public failover_test {};

timestamp utc(int y, unsigned m, unsigned d, hours h = 0h) {
  return sys_days(year(y) / static_cast<int>(m) / static_cast<int>(d)) + h;
}

TEST_F(FailoverExpiry, MonthsAndYearsAreCountedOnTheCalendarAndEndWithTheMonth) {
  EXPECT_EQ(expiry(months(1)).after(utc(2024, 1, 31, 5h)), utc(2024, 2, 29, 5h));
  EXPECT_EQ(expiry(months(1)).after(utc(2023, 1, 31)), utc(2023, 2, 28));
  EXPECT_EQ(expiry(months(13)).after(utc(2023, 12, 15)), utc(2025, 1, 15));
  EXPECT_EQ(expiry(years(1)).after(utc(2024, 2, 29)), utc(2025, 2, 28));
  EXPECT_EQ(expiry(24h).after(utc(2024, 2, 28)), utc(2024, 2, 29));
}

TEST_F(FailoverExpiry, VeryLongIsTheEndOfTimeAndNotAnOverflow) {
  EXPECT_EQ(expiry(microseconds::max()).after(utc(2026, 1, 1)), timestamp::max());
  EXPECT_EQ(expiry(years(30'000)).after(utc(2026, 1, 1)), utc(32026, 1, 1));
  EXPECT_EQ(expiry(years(32'000)).after(utc(2026, 1, 1)), timestamp::max());
  EXPECT_EQ(expiry(hours::max()).after(utc(2026, 1, 1)), timestamp::max());
}

TEST_F(FailoverExpiry, TheTextIsForPeople) {
  EXPECT_EQ(expiry().text(), "3600 s");
  EXPECT_EQ(expiry(1500us).text(), "1500 us");
  EXPECT_EQ(expiry(months(1)).text(), "1 month");
  EXPECT_EQ(expiry(years(2)).text(), "2 years");
  EXPECT_EQ(expiry::named("nightly").text(), "policy 'nightly'");
}

TEST_F(FailoverExpiry, ExpiredIsStrictlyAfter) {
  const auto point = protect("country-by-code", {.expiry = 1h});
  const auto first = point("FR");
  down = true;
  clock->advance(1h);
  EXPECT_EQ(point("FR").expires(), clock->now()) << "at the very moment it is still served";
  clock->advance(1us);
  EXPECT_THROW((void)point("FR"), outage);
  EXPECT_EQ(numbers().expired, 1U);
  EXPECT_FALSE(row("FR")) << "and removed";
  (void)first;
}

TEST_F(FailoverExpiry, RemovingAnExpiredAnswerDoesNotRemoveAFreshOne) {
  const auto point = protect("country-by-code", {.expiry = 1h});
  (void)point("FR");
  clock->advance(2h);
  down = true;
  // Between finding the expired version and erasing it, another process stores a fresh one.
  auto fresh = *row("FR");
  fresh.as_of = clock->now();
  fresh.expire_on = clock->now() + 1h;
  const auto count = shaky->before;
  shaky->before = [&, count](faulty_store::operation operation, std::span<const entry> entries) {
    count(operation, entries);
    if (operation == faulty_store::operation::erase) memory->put(fresh);
  };
  EXPECT_THROW((void)point("FR"), outage);
  ASSERT_TRUE(row("FR"));
  EXPECT_EQ(row("FR")->as_of, fresh.as_of);
}

TEST_F(FailoverExpiry, EverySuccessRenewsAndNoReadDoes) {
  const auto point = protect("country-by-code", {.expiry = 1h});
  (void)point("FR");
  clock->advance(50min);
  const auto renewed = point("FR").expires();
  EXPECT_EQ(renewed, clock->now() + 1h);
  down = true;
  EXPECT_EQ(point("FR").expires(), renewed);
}

TEST_F(FailoverExpiry, APolicyByNameSeesThePayload) {
  engine_options options;
  options.expiry_policies["by-size"] = [](const expiry_request& ask) {
    EXPECT_EQ(ask.point, "country-by-code");
    if (!ask.payload) throw std::runtime_error("no payload");
    return ask.now + minutes(static_cast<int>(ask.payload->size()));
  };
  make(std::move(options));
  const auto point = protect("country-by-code", {.expiry = expiry::named("by-size")});
  EXPECT_EQ(point("FR").expires(), clock->now() + 9min);  // FR|France
}

TEST_F(FailoverExpiry, AHookSeesTheValue) {
  const auto point =
      protect("country-by-code", {.expiry = 1h}, {.expiry = [](const country& c, timestamp now) {
                return now + seconds(static_cast<int>(c.name.size()));
              }});
  EXPECT_EQ(point("FR").expires(), clock->now() + 6s);
}

TEST_F(FailoverExpiry, APolicyThatThrowsOrLooksBackMeansNotStored) {
  engine_options options;
  options.expiry_policies["bad"] = [](const expiry_request&) -> timestamp {
    throw std::runtime_error("bad");
  };
  options.expiry_policies["past"] = [](const expiry_request& ask) { return ask.now - 1s; };
  make(std::move(options));
  EXPECT_TRUE(protect("a", {.expiry = expiry::named("bad")})("FR").live());
  EXPECT_EQ(numbers("a").store_failed, 1U);
  EXPECT_TRUE(protect("b", {.expiry = expiry::named("past")})("FR").live());
  EXPECT_EQ(numbers("b").ignored, 1U);
  EXPECT_EQ(puts, 0);
}

TEST_F(FailoverExpiry, AYoungAnswerIsServedWithoutACall) {
  const auto run = std::make_shared<manual_executor>(clock);
  make({.threads = {.executor = run}});
  const auto point = protect("country-by-code", {.expiry = 1h, .soft_expiry = 1min});
  EXPECT_TRUE(point("FR").live());
  clock->advance(1min);
  const auto fresh = point("FR");
  EXPECT_EQ(fresh.source(), origin::stored);
  EXPECT_EQ(fresh.cause().code(), cause_code::fresh);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(run->size(), 0U);
  EXPECT_EQ(numbers().fresh, 1U);
}

TEST_F(FailoverExpiry, AnAnswerPastItsSoftExpiryIsServedAndRefreshedOnce) {
  const auto run = std::make_shared<manual_executor>(clock);
  make({.threads = {.executor = run}});
  const auto point = protect("country-by-code", {.expiry = 1h, .soft_expiry = 1min});
  (void)point("FR");
  clock->advance(2min);
  answer_text = "new";
  for (int i = 0; i < 3; ++i) {
    const auto old = point("FR");
    EXPECT_EQ(old->name, "France");
    EXPECT_EQ(old.cause().code(), cause_code::refreshing);
  }
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(run->run_all(), 1U) << "three callers, one refresh";
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(point("FR")->name, "new");
  EXPECT_EQ(numbers().refreshed, 1U);
  EXPECT_EQ(status().running, 0U);
}

TEST_F(FailoverExpiry, AnAnswerFromTheFutureIsNotYoung) {
  const auto run = std::make_shared<manual_executor>(clock);
  make({.threads = {.executor = run}});
  const auto point = protect("country-by-code", {.expiry = 1h, .soft_expiry = 1min});
  // By another machine
  const auto ahead = [&](const std::string& code, std::chrono::microseconds time) {
    (void)point(code);
    auto moved = *row(code);
    moved.as_of += time;
    moved.expire_on += time;
    memory->put(moved);
  };
  ahead("DE", 4min);
  EXPECT_EQ(point("DE").cause().code(), cause_code::fresh) << "within max_skew";
  ahead("FR", 24h);
  answer_text = "new";
  EXPECT_EQ(point("FR").cause().code(), cause_code::refreshing);
  EXPECT_EQ(run->run_all(), 1U);
  const auto a = point("FR");
  EXPECT_EQ(a->name, "new");
  EXPECT_EQ(a.cause().code(), cause_code::fresh);
}

TEST_F(FailoverExpiry, ARefreshThatFailsLeavesTheAnswerAndIsTriedAgain) {
  const auto run = std::make_shared<manual_executor>(clock);
  make({.threads = {.executor = run}});
  const auto point = protect("country-by-code", {.expiry = 1h, .soft_expiry = 1min});
  (void)point("FR");
  clock->advance(2min);
  down = true;
  EXPECT_EQ(point("FR")->name, "France");
  run->run_all();
  EXPECT_EQ(numbers().refresh_failed, 1U);
  EXPECT_EQ(point("FR")->name, "France");
  EXPECT_EQ(run->run_all(), 1U);
  clock->advance(2h);
  EXPECT_THROW((void)point("FR"), outage)
      << "past the hard expiry the upstream is asked, and nothing is served";
}

}  // namespace
}  // namespace holdfast::test
