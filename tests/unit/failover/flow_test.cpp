// The order of a call: key once, upstream, keep, or recover.

#include "unit/failover/fixture.hpp"

namespace holdfast::test {
namespace {

class FailoverFlow : public failover_test {};

TEST_F(FailoverFlow, ASuccessGivesTheLiveValueAndStoresIt) {
  const auto point = protect("country-by-code", {.domain = "country", .expiry = 24h});
  const auto start = clock->now();
  const auto a = point("FR");
  EXPECT_TRUE(a.live());
  EXPECT_FALSE(a.stale());
  EXPECT_EQ(a->name, "France");
  EXPECT_EQ(a.as_of(), start);
  EXPECT_EQ(a.expires(), start + 24h);
  EXPECT_EQ(a.cause().code(), cause_code::none);
  EXPECT_EQ(a.complete(), completeness::yes);
  const auto kept = row("FR", "country");
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->payload, "FR|France");
  EXPECT_EQ(kept->as_of, start);
  EXPECT_EQ(kept->expire_on, start + 24h);
  EXPECT_EQ(kept->payload_class, "holdfast.test.country");
}

TEST_F(FailoverFlow, AFailureIsAnsweredFromTheStoreMarkedAsStale) {
  const auto point = protect();
  const auto live = point("FR");
  clock->advance(10min);
  down = true;
  const auto a = point("FR");
  EXPECT_TRUE(a.stale());
  EXPECT_EQ(*a, *live);
  EXPECT_EQ(a.as_of(), live.as_of());
  EXPECT_EQ(a.age(clock->now()), 10min);
  EXPECT_EQ(a.cause().code(), cause_code::failed);
  EXPECT_EQ(a.cause().type(), "holdfast::test::outage");
  EXPECT_EQ(a.cause().message(), "connection refused by 10.0.0.7");
  down = false;
  EXPECT_TRUE(point("FR").live());
}

TEST_F(FailoverFlow, WithNothingStoredTheVerySameExceptionLeaves) {
  const outage* thrown = nullptr;
  script = [&](const std::string&) -> country {
    auto exception = std::make_exception_ptr(outage("mine"));
    try {
      std::rethrow_exception(exception);
    } catch (const outage& e) {
      thrown = &e;
    }
    std::rethrow_exception(exception);
  };
  const auto point = protect();
  try {
    (void)point("FR");
    FAIL() << "it must leave";
  } catch (const outage& e) {
    EXPECT_EQ(&e, thrown) << "the same object, not a copy";
    EXPECT_STREQ(e.what(), "mine");
  }
  EXPECT_EQ(numbers().failed, 1U);
}

TEST_F(FailoverFlow, TheKeyIsMadeOnceBeforeTheCall) {
  auto point = current_engine().protect("mutating", {}, [this](std::string& code) -> country {
    if (down) throw outage("down");
    std::string before = code;
    code = "changed";
    return {before, "France"};
  });
  std::string code = "FR";
  (void)point(code);
  EXPECT_EQ(code, "changed") << "the upstream got the caller's own argument";
  down = true;
  code = "FR";
  EXPECT_EQ(point(code)->code, "FR")
      << "found under the key of what the caller asked, not of what the upstream made of it";
}

TEST_F(FailoverFlow, WhatIsServedIsNeverTheCallersObject) {
  const auto point = protect();
  auto live = point("FR");
  live->name = "edited by the caller";
  down = true;
  auto first = point("FR");
  EXPECT_EQ(first->name, "France");
  first->name = "edited again";
  EXPECT_EQ(point("FR")->name, "France");
}

TEST_F(FailoverFlow, AStoreThatFailsBreaksNoCall) {
  const auto point = protect();
  store_down = true;
  const auto a = point("FR");
  EXPECT_TRUE(a.live());
  EXPECT_EQ(numbers().store_failed, 1U);
  EXPECT_TRUE(logged("could not be stored"));
  down = true;
  EXPECT_THROW((void)point("FR"), outage)
      << "nothing to serve: the upstream's own exception, not the store's";
  EXPECT_EQ(numbers().read_failed, 1U);
}

TEST_F(FailoverFlow, AValueThatCannotBeEncodedIsGivenAndNotStored) {
  const auto point = protect();
  answer_text = "unencodable";
  EXPECT_EQ(point("FR")->name, "unencodable");
  EXPECT_EQ(numbers().store_failed, 1U);
  EXPECT_FALSE(row("FR"));
}

TEST_F(FailoverFlow, AnAnswerTooLargeIsGivenCountedAndNotStored) {
  const auto point = protect("country-by-code", {.max_payload = 100});
  answer_text = std::string(200, 'x');
  EXPECT_TRUE(point("FR").live());
  EXPECT_EQ(numbers().too_large, 1U);
  EXPECT_FALSE(row("FR"));
}

TEST_F(FailoverFlow, AnOlderCallThatEndsLaterDoesNotReplaceANewerAnswer) {
  const auto point = protect();
  auto slow = point.begin("FR");
  clock->advance(1s);
  answer_text = "newer";
  (void)point("FR");
  (void)slow.succeed(country{"FR", "older"});
  EXPECT_EQ(row("FR")->payload, "FR|newer");
}

TEST_F(FailoverFlow, StampsNeverGoBackAndNeverRunAhead) {
  const auto point = protect();
  const auto a = point("FR").as_of();
  for (int i = 0; i < 1000; ++i) (void)point("FR");
  answer_text = "later";
  EXPECT_EQ(point("FR").as_of(), a) << "the clock stands still";
  clock->jump(-1min);
  EXPECT_EQ(point("DE").as_of(), a) << "the clock was set back by less than max_skew";
  down = true;
  EXPECT_EQ(point("FR")->name, "later") << "of two with the same stamp the later arrival stays";
}

TEST_F(FailoverFlow, AClockSetBackByMoreThanTheSkewIsFollowed) {
  const auto point = protect();
  (void)point("FR");
  clock->jump(-1h);
  answer_text = "after";
  const auto a = point("FR");
  EXPECT_EQ(a.as_of(), clock->now());
  down = true;
  EXPECT_EQ(point("FR")->name, "after")
      << "what was served in the future does not hide what is known now";
}

TEST_F(FailoverFlow, ADisabledPointIsTheBareCall) {
  const auto point = protect("country-by-code", {.enabled = false});
  EXPECT_TRUE(point("FR").live());
  EXPECT_FALSE(row("FR"));
  down = true;
  EXPECT_THROW((void)point("FR"), outage);
  EXPECT_EQ(finds, 0);
  EXPECT_EQ(puts, 0);
}

TEST_F(FailoverFlow, AnArgumentWithoutAKeyMakesTheCallAnUnprotectedOne) {
  const auto point = protect();
  EXPECT_TRUE(point("\xff").live());
  EXPECT_EQ(numbers().unkeyed, 1U);
  EXPECT_EQ(puts, 0);
  down = true;
  EXPECT_THROW((void)point("\xff"), outage);
}

TEST_F(FailoverFlow, TryCallThrowsNothingAndKeepsTheException) {
  const auto point = protect();
  down = true;
  const auto none = point.try_call("FR");
  ASSERT_FALSE(none.has_value());
  EXPECT_THROW(std::rethrow_exception(none.error()), outage);
  down = false;
  const auto live = point.try_call("FR");
  ASSERT_TRUE(live.has_value());
  EXPECT_TRUE(live->live());
  EXPECT_EQ(live.error(), nullptr);
}

TEST_F(FailoverFlow, AnAdHocCallFindsItsPointAgain) {
  auto& e = current_engine();
  const auto ask = [&] {
    return e.call("ad-hoc", {.expiry = 2h}, std::tuple(std::string("FR"), 7),
                  [&] { return upstream("FR"); });
  };
  EXPECT_TRUE(ask().live());
  down = true;
  EXPECT_EQ(ask()->name, "France");
  EXPECT_EQ(e.points().size(), 1U);
  EXPECT_THROW(
      (void)e.call("ad-hoc", {}, std::tuple(1), [] { return std::string("another type"); }), error);
}

TEST_F(FailoverFlow, TwoPointsOfADomainFeedEachOther) {
  const auto one = protect("one", {.domain = "country"});
  const auto two = protect("two", {.domain = "country"});
  (void)one("FR");
  down = true;
  EXPECT_EQ(two("FR")->name, "France");
}

TEST_F(FailoverFlow, FunctionsFunctorsAndViewsCanBeProtected) {
  auto& e = current_engine();
  struct functor {
    std::string operator()(std::string_view a, int b) const noexcept {
      return std::string(a) + std::to_string(b);
    }
  };
  EXPECT_EQ(*e.protect("functor", functor{})("x", 1), "x1");
  EXPECT_EQ(*e.protect("function", +[](int n) { return std::to_string(n); })(5), "5");
  const std::function<std::string(int)> any = [](int n) { return std::to_string(n); };
  EXPECT_EQ(*e.protect("std-function", any)(6), "6");
}

class Unwound : public failover_test {};
TEST_F(Unwound, OutOfMemoryAndCancellationAreNeverRecovered) {
  const auto point = protect();
  (void)point("FR");
  script = [](const std::string&) -> country { throw std::bad_alloc(); };
  EXPECT_THROW((void)point("FR"), std::bad_alloc);
  script = [](const std::string&) -> country { throw cancelled(); };
  EXPECT_THROW((void)point("FR"), cancelled);
  EXPECT_EQ(numbers().passed, 2U);
  EXPECT_EQ(finds, 0);
}

TEST_F(Unwound, ACancelledThreadUnwindsThroughAPoint) {
  const auto point = protect();
  (void)point("FR");
  std::atomic<bool> inside{false};
  script = [&](const std::string&) -> country {
    inside = true;
    for (;;) {
      pthread_testcancel();
      std::this_thread::sleep_for(1ms);
    }
  };
  pthread_t thread{};
  auto body = [&] { (void)point("FR"); };
  ASSERT_EQ(pthread_create(
                &thread, nullptr,
                [](void* work) -> void* {
                  (*static_cast<decltype(body)*>(work))();
                  return nullptr;
                },
                &body),
            0);
  while (!inside) std::this_thread::yield();
  ASSERT_EQ(pthread_cancel(thread), 0);
  void* ended = nullptr;
  ASSERT_EQ(pthread_join(thread, &ended), 0);
  EXPECT_EQ(ended, PTHREAD_CANCELED);
  EXPECT_EQ(numbers().abandoned, 1U);
  EXPECT_EQ(status().running, 0U);
}

}  // namespace
}  // namespace holdfast::test
