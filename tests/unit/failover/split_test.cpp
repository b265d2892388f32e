// The split phases: somebody else calls the upstream.

#include "unit/failover/fixture.hpp"

namespace holdfast::test {
namespace {

class FailoverSplit : public failover_test {};

TEST_F(FailoverSplit, ACallThatSucceedsIsStored) {
  const auto point = protect();
  auto call = point.begin("FR");
  EXPECT_TRUE(call.allowed());
  const auto began = call.as_of();
  clock->advance(3s);
  const auto a = call.succeed(country{"FR", "France"});
  EXPECT_TRUE(a.live());
  EXPECT_EQ(row("FR")->as_of, began);
  EXPECT_THROW((void)call.succeed(std::nullopt), error);
  EXPECT_THROW((void)call.fail(), error);
}

TEST_F(FailoverSplit, ACallThatFailsIsAnsweredFor) {
  const auto point = protect();
  (void)point.begin("FR").succeed(country{"FR", "France"});
  const auto a = point.begin("FR").fail(std::make_exception_ptr(outage("down")));
  EXPECT_EQ(a->name, "France");
  EXPECT_EQ(point.begin("FR").fail_late().cause().code(), cause_code::late);
  EXPECT_THROW((void)point.begin("DE").fail(std::make_exception_ptr(outage("down"))), outage);
  EXPECT_THROW((void)point.begin("DE").fail(), error);
}

TEST_F(FailoverSplit, ADroppedCallIsAbandonedAndStoresNothing) {
  const auto point = protect();
  {
    auto one = point.begin("FR");
    auto two = std::move(one);
    two = point.begin("DE");
    EXPECT_EQ(numbers().abandoned, 1U);
  }
  EXPECT_EQ(numbers().abandoned, 2U);
  EXPECT_EQ(puts, 0);
  EXPECT_EQ(status().running, 0U);
}

TEST_F(FailoverSplit, AnOpenBreakerIsSaidAndTheCallAnsweredFor) {
  const auto point =
      protect("country-by-code", {.breaker = breaker_options{.window = 2, .minimum = 2}});
  (void)point.begin("FR").succeed(country{"FR", "France"});
  (void)point.begin("FR").fail(std::make_exception_ptr(outage("down")));
  auto call = point.begin("FR");
  EXPECT_FALSE(call.allowed());
  const auto a = call.fail();
  EXPECT_EQ(a.cause().code(), cause_code::refused);
  EXPECT_EQ(a->name, "France");
}

TEST_F(FailoverSplit, AnotherThreadMayFinish) {
  const auto point = protect();
  auto call = point.begin("FR");
  std::thread([&] { (void)call.succeed(country{"FR", "elsewhere"}); }).join();
  EXPECT_EQ(row("FR")->payload, "FR|elsewhere");
}

}  // namespace
}  // namespace holdfast::test
