// Calls with a deadline: the caller leaves in time, the call owns what it needs, its answer is kept
// all the same.

#include "failover/retry.hpp"
#include "support/eventually.hpp"
#include "support/gate.hpp"
#include "unit/failover/fixture.hpp"

#include <future>
#include <latch>

namespace holdfast::test {
namespace {

class FailoverDeadline : public failover_test {};

TEST_F(FailoverDeadline, AnUpstreamInTimeGivesALiveAnswer) {
  const auto point = protect("country-by-code", {.deadline = 20s});
  const auto a = point("FR");
  EXPECT_TRUE(a.live());
  EXPECT_EQ(a->name, "France");
  EXPECT_EQ(row("FR")->payload, "FR|France") << "stored before the caller has it";
  EXPECT_EQ(status().running, 0U);
}

TEST_F(FailoverDeadline, AFailureInTimeLeavesAsItIs) {
  const auto point = protect("country-by-code", {.deadline = 20s});
  down = true;
  EXPECT_THROW((void)point("FR"), outage);
}

TEST_F(FailoverDeadline, ALateUpstreamIsAnsweredForAndItsAnswerIsKept) {
  const auto held = std::make_shared<gate>();
  const auto point = protect("country-by-code", {.deadline = 20s});
  (void)point("FR");
  clock->advance(1s);
  const auto started = clock->now();
  script = [held](const std::string& code) -> country {
    held->wait();
    return {code, "late"};
  };
  auto caller = std::async(std::launch::async, [&] { return point("FR"); });
  const open_in_the_end release(*held);
  ASSERT_TRUE(eventually([&] { return held->waiting() == 1; }));
  clock->advance(20s);
  const auto got = caller.get();
  EXPECT_EQ(got->name, "France");
  EXPECT_EQ(got.cause().code(), cause_code::late);
  EXPECT_EQ(status().running, 1U) << "its caller left, it has not ended";
  EXPECT_EQ(numbers().late, 1U);
  clock->advance(5s);
  held->open();
  ASSERT_TRUE(eventually([&] { return numbers().late_stored == 1; }));
  EXPECT_EQ(row("FR")->payload, "FR|late");
  EXPECT_EQ(row("FR")->as_of, started)
      << "the moment at which it started, not at which it answered";
  ASSERT_TRUE(eventually([&] { return status().running == 0; }));
}

TEST_F(FailoverDeadline, WithNothingStoredTheCallerGetsATimeout) {
  const auto held = std::make_shared<gate>();
  const auto point = protect("country-by-code", {.deadline = 20ms});
  script = [held](const std::string&) -> country {
    held->wait();
    return {};
  };
  try {
    (void)point("FR");
    FAIL();
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::timeout);
    EXPECT_TRUE(e.transient());
  }
  held->open();
}

TEST_F(FailoverDeadline, TheCallOwnsItsArgumentsAndItsCallable) {
  const auto held = std::make_shared<gate>();
  const auto seen = std::make_shared<std::string>();
  const auto done = std::make_shared<std::atomic<bool>>(false);
  {
    auto point = current_engine().protect(
        "owning", {.deadline = 10ms},
        [held, seen, done](std::string_view a, const std::string& b, std::span<const int> c) {
          held->wait();
          *seen = std::string(a) + b + std::to_string(c.size());
          *done = true;
          return std::string("x");
        });
    std::string first = "first ";
    auto second = std::make_unique<std::string>("second ");
    auto third = std::make_unique<std::vector<int>>(3, 1);
    EXPECT_THROW((void)point(first, *second, *third), error);
    first = "overwritten";
  }  // point, arguments: gone
  held->open();
  ASSERT_TRUE(eventually([&] { return done->load(); }));
  EXPECT_EQ(*seen, "first second 3");
}

TEST_F(FailoverDeadline, AFullExecutorMeansTheStoreAtOnce) {
  const auto held = std::make_shared<gate>();
  make({.threads = {.count = 1, .queue = 1}});
  const auto point = protect("country-by-code", {.deadline = 20s});
  (void)point("FR");
  script = [held](const std::string&) -> country {
    held->wait();
    return {};
  };
  const open_in_the_end release(*held);
  // One call runs, one waits, and there is no room for another.
  const auto call = [&] { (void)point.try_call("DE"); };
  const std::jthread running(call);
  ASSERT_TRUE(eventually([&] { return held->waiting() == 1; }));
  const std::jthread waiting(call);
  ASSERT_TRUE(eventually([&] { return numbers().started == 3; }));
  answer<country> a = point("FR");
  while (a.cause().code() != cause_code::refused) a = point("FR");  // the second may still arrive
  EXPECT_EQ(a->name, "France");
  EXPECT_GE(numbers().full_refused, 1U);
  held->open();
}

TEST_F(FailoverDeadline, TheCallableIsToldItsDeadlineAndThatItIsLate) {
  const auto stopped = std::make_shared<std::atomic<bool>>(false);
  auto point = current_engine().protect("told", {.deadline = 30ms, .late = late_call::cancel},
                                        [stopped](const call_context& context, int) -> std::string {
                                          EXPECT_EQ(context.point, "told");
                                          EXPECT_TRUE(context.deadline);
                                          EXPECT_EQ(context.attempt, 1U);
                                          while (!context.stop.stop_requested())
                                            std::this_thread::yield();
                                          *stopped = true;
                                          context.throw_if_stopped();
                                          return "never";
                                        });
  EXPECT_THROW((void)point(1), error);
  EXPECT_TRUE(eventually([&] { return stopped->load(); }));
}

TEST_F(FailoverDeadline, AHungUpstreamOpensTheBreaker) {
  const auto held = std::make_shared<gate>();
  const auto point = protect(
      "country-by-code", {.deadline = 10ms, .breaker = breaker_options{.window = 2, .minimum = 2}});
  script = [held](const std::string&) -> country {
    held->wait();
    return {};
  };
  for (int i = 0; i < 2; ++i) EXPECT_THROW((void)point("FR"), error);
  EXPECT_EQ(status().breaker, breaker_state::open);
  held->open();
}

TEST_F(FailoverDeadline, RetriesHappenWithinTheDeadline) {
  const auto point = protect(
      "country-by-code", {.deadline = 20s, .retry = retry_options{.attempts = 3, .backoff = 0ms}});
  script = [this](const std::string& code) -> country {
    if (calls < 3) throw outage("flaky");
    return {code, "third"};
  };
  EXPECT_EQ(point("FR")->name, "third");
  EXPECT_TRUE(eventually([&] { return numbers().retries == 2; }))
      << "counted when it is posted, by who may be slower than the retry";
}

TEST_F(FailoverDeadline, RetriesHappenThoughTheClockIsFarAheadOfTheMachine) {
  clock = std::make_shared<virtual_clock>(virtual_clock::default_start(), virtual_clock::far_ahead);
  const auto point = protect(
      "country-by-code", {.deadline = 20s, .retry = retry_options{.attempts = 2, .backoff = 1ms}});
  script = [this](const std::string& code) -> country {
    if (calls < 2) throw outage("flaky");
    return {code, "second"};
  };
  EXPECT_EQ(point("FR")->name, "second") << "the executor counts the pause on its own clock";
}

TEST_F(FailoverDeadline, TheDeadlineOfTheContextIsTheMachinesWhateverTheClock) {
  using std::chrono::steady_clock;
  clock = std::make_shared<virtual_clock>(virtual_clock::default_start(), virtual_clock::far_ahead);
  std::atomic<steady_clock::duration> time_left{0s};
  const auto point = current_engine().protect("told", {.deadline = 20s},
                                              [&time_left](const call_context& context, int) {
                                                time_left = *context.deadline - steady_clock::now();
                                                return std::string("x");
                                              });
  (void)point(1);
  const auto remaining = time_left.load();
  EXPECT_GT(remaining, 0s);
  EXPECT_LE(remaining, 20s);
}

TEST_F(FailoverDeadline, AStoreThatHangsTakesNoLiveAnswerAway) {
  const auto held = std::make_shared<gate>();
  make({.storage = {.write_behind = std::nullopt}, .linger = 10ms}, true);
  const open_in_the_end release(*held);
  const auto point = protect("country-by-code", {.deadline = 20s, .single_flight = true});
  (void)point("FR");
  clock->advance(1s);
  answer_text = "newer";
  shaky->before = [held](faulty_store::operation operation, std::span<const entry>) {
    if (operation == faulty_store::operation::put) held->wait();
  };
  auto got = std::async(std::launch::async, [&] { return point("FR"); });
  EXPECT_TRUE(eventually([&] { return held->waiting() == 1; }));
  clock->advance(20s);
  const auto a = got.get();
  EXPECT_TRUE(a.live()) << "the upstream was in time";
  EXPECT_EQ(a->name, "newer");
  EXPECT_EQ(numbers().late, 0U);
  EXPECT_EQ(numbers().live, 2U);
  EXPECT_EQ(status().running, 1U) << "it is being written";
  EXPECT_TRUE(logged("the store did not take an answer within the deadline"));
  down = true;
  EXPECT_EQ(point("FR")->name, "France") << "the newer one is not stored yet";
  held->open();
  EXPECT_TRUE(eventually([&] { return status().running == 0; }));
  EXPECT_EQ(point("FR")->name, "newer");
  EXPECT_EQ(row("FR")->payload, "FR|newer");
  EXPECT_EQ(numbers().stored, 2U);
  EXPECT_EQ(numbers().late_stored, 0U);
  EXPECT_EQ(point("FR")->name, "newer");
}

class FailoverFlight : public failover_test {};

TEST_F(FailoverFlight, CallersWithTheSameKeyShareOneCall) {
  const auto held = std::make_shared<gate>();
  const auto point = protect("country-by-code", {.single_flight = true});
  script = [held](const std::string& code) -> country {
    held->wait();
    return {code, "shared"};
  };
  constexpr int callers = 4;
  // A caller that has started may still be on its way to the shared call; one that comes late makes
  // a call of its own. So rounds are repeated until some share.
  int rounds = 0;
  const auto play_round = [&] {
    held->close();
    ++rounds;
    std::vector<std::thread> threads;
    std::vector<std::optional<answer<country>>> got(callers);
    for (int i = 0; i < callers; ++i)
      threads.emplace_back([&, i] { got[static_cast<std::size_t>(i)].emplace(point("FR")); });
    EXPECT_TRUE(eventually([&] {
      return held->waiting() >= 1 &&
             numbers().started == static_cast<std::uint64_t>(rounds * callers);
    }));
    std::this_thread::sleep_for(5ms);
    held->open();
    for (auto& each : threads) each.join();
    for (const auto& each : got) {
      EXPECT_TRUE(each->live());
      EXPECT_EQ((*each)->name, "shared");
    }
    EXPECT_EQ(static_cast<int>(numbers().coalesced) + calls, rounds * callers);
    return numbers().coalesced > 0;
  };
  EXPECT_TRUE(eventually(play_round));
}

TEST_F(FailoverFlight, AFailureIsSharedAndSoIsWhatWasRecovered) {
  const auto held = std::make_shared<gate>();
  const auto point = protect("country-by-code", {.single_flight = true});
  (void)point("FR");
  script = [held](const std::string&) -> country {
    held->wait();
    throw outage("down");
  };
  std::vector<std::thread> threads;
  std::atomic<int> stale{0};
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      const auto a = point("FR");
      stale += a.stale() && a->name == "France" ? 1 : 0;
    });
  }
  ASSERT_TRUE(eventually([&] { return held->waiting() >= 1 && numbers().started == 4; }));
  std::this_thread::sleep_for(5ms);
  held->open();
  for (auto& each : threads) each.join();
  EXPECT_EQ(stale, 3);
  EXPECT_EQ(finds + static_cast<int>(numbers().coalesced), 3)
      << "those who shared the call did not read the store again";
}

TEST_F(FailoverFlight, DifferentKeysDoNotWaitForEachOther) {
  const auto point = protect("country-by-code", {.single_flight = true});
  script = [&](const std::string& code) -> country {
    if (code == "FR") {
      EXPECT_EQ(point("DE")->code, "DE");
    }
    return {code, "x"};
  };
  EXPECT_EQ(point("FR")->code, "FR");
}

TEST_F(FailoverFlight, AFollowerLeavesAtItsOwnDeadline) {
  const auto held = std::make_shared<gate>();
  const auto point = protect("country-by-code", {.deadline = 30ms, .single_flight = true});
  // A busy machine may be late, so this waits until one round is in time.
  ASSERT_TRUE(eventually([&] {
    try {
      return point("FR").live() && status().running == 0;
    } catch (const error&) {
      return false;
    }
  }));
  script = [held](const std::string& code) -> country {
    held->wait();
    return {code, "late"};
  };
  std::vector<std::thread> threads;
  std::atomic<int> stale{0};
  for (int i = 0; i < 3; ++i) threads.emplace_back([&] { stale += point("FR").stale() ? 1 : 0; });
  for (auto& each : threads) each.join();
  EXPECT_EQ(stale, 3);
  held->open();
}

TEST_F(FailoverFlight, FollowersNeverShareAnObject) {
  const auto held = std::make_shared<gate>();
  const auto point = protect("country-by-code", {.single_flight = true});
  script = [held](const std::string& code) -> country {
    held->wait();
    return {code, "same"};
  };
  std::optional<answer<country>> a;
  std::optional<answer<country>> b;
  std::thread one([&] { a.emplace(point("FR")); });
  std::thread two([&] { b.emplace(point("FR")); });
  ASSERT_TRUE(eventually([&] { return held->waiting() >= 1 && numbers().started == 2; }));
  held->open();
  one.join();
  two.join();
  (*a)->name = "edited";
  EXPECT_EQ((*b)->name, "same");
}

class FailoverReads : public failover_test {};

TEST_F(FailoverReads, AStoreThatHangsIsNotWaitedForBeyondTheReadDeadline) {
  const auto held = std::make_shared<gate>();
  make({.storage = {.write_behind = std::nullopt, .read_deadline = 30ms}}, true);
  const auto point = protect();
  (void)point("FR");
  shaky->before = [held](faulty_store::operation operation, std::span<const entry>) {
    if (operation == faulty_store::operation::find) held->wait();
  };
  down = true;
  const auto began = std::chrono::steady_clock::now();
  EXPECT_THROW((void)point("FR"), outage);
  EXPECT_LT(std::chrono::steady_clock::now() - began, 10s);
  EXPECT_EQ(numbers().read_late, 1U);
  held->open();
}

TEST_F(FailoverReads, WritesBehindAreSeenByReadsAndDoNotWait) {
  const auto held = std::make_shared<gate>();
  make({.storage = {.read_deadline = 30s}, .linger = 10ms}, true);
  const open_in_the_end release(*held);
  shaky->before = [held](faulty_store::operation operation, std::span<const entry>) {
    if (operation == faulty_store::operation::put) held->wait();
  };
  const auto point = protect();
  (void)point("FR");
  ASSERT_TRUE(eventually([&] { return held->waiting() == 1; }));
  down = true;
  EXPECT_EQ(point("FR")->name, "France") << "queued, not written, and served";
  held->open();
  EXPECT_TRUE(current_engine().flush(clock->steady() + 20s));
  EXPECT_TRUE(row("FR"));
}

TEST_F(FailoverReads, TheLongestTimesAreForEverAndNotThePast) {
  using std::chrono::microseconds;
  using std::chrono::milliseconds;
  make({.storage = {.read_deadline = microseconds::max()},
        .reports = {.every = milliseconds::max()},
        .linger = milliseconds::max()},
       true);
  const auto point =
      protect("country-by-code",
              {.expiry = microseconds::max(),
               .soft_expiry = microseconds::max() / 2,
               .deadline = microseconds::max(),
               .retry = retry_options{.attempts = 1, .max_backoff = microseconds::max()}});
  EXPECT_TRUE(point("FR").live());
  EXPECT_EQ(point("FR").cause().code(), cause_code::fresh);
  const auto many = current_engine().protect_each(
      "many",
      {.domain = "country-by-code",
       .expiry = microseconds::max(),
       .scatter = scatter_options{.timeout = microseconds::max()}},
      [](std::span<const std::string>) -> std::vector<std::optional<country>> {
        throw outage("down");
      });
  EXPECT_EQ(many(std::vector<std::string>{"FR"}).complete(), completeness::yes);
  EXPECT_TRUE(current_engine().health().healthy);
  EXPECT_TRUE(current_engine().close(std::chrono::steady_clock::time_point::max()).clean());

  detail::failover::retry_plan plan({.attempts = 100,
                                     .backoff = 1s,
                                     .max_backoff = microseconds::max(),
                                     .budget = 100,
                                     .reserve = 1000},
                                    7);
  for (unsigned attempt = 1; attempt < 100; ++attempt) EXPECT_GE(plan.next(attempt).pause, 0us);
}

TEST_F(FailoverReads, APointMayWriteThrough) {
  make({}, true);
  const auto point = protect("country-by-code", {.write_behind = false});
  (void)point("FR");
  EXPECT_TRUE(row("FR")) << "stored before the caller has its answer";
}

}  // namespace
}  // namespace holdfast::test
