// Who may be served what: tenants, dimensions, and the context that goes along to other threads.
// And no caller sees time go backwards.

#include "failover/served_versions.hpp"
#include "support/eventually.hpp"
#include "unit/failover/fixture.hpp"

namespace holdfast::test {
namespace {

using detail::failover::served_versions;

class FailoverScope : public failover_test {};

TEST_F(FailoverScope, WhatVariesByUserIsServedToThatUserOnly) {
  std::optional<std::string> user = "alice";
  make({.caller = {.vary = [&](std::string_view dimension) {
          return dimension == "user" ? user : std::nullopt;
        }}});
  auto by_user = current_engine().protect("my-accounts", {.vary = {"user"}}, [&]() -> std::string {
    if (down) throw outage("down");
    return "accounts of " + *user;
  });
  (void)by_user();
  down = true;
  EXPECT_EQ(*by_user(), "accounts of alice");
  user = "bob";
  EXPECT_THROW((void)by_user(), outage);
  // A user name with special characters does not give access to the answers of another user.
  user = "alice|x";
  EXPECT_THROW((void)by_user(), outage);
  user.reset();
  EXPECT_THROW((void)by_user(), outage);
  EXPECT_EQ(numbers("my-accounts").unkeyed, 1U);
}

TEST_F(FailoverScope, DimensionsAreNotMixedUp) {
  std::map<std::string, std::string, std::less<>> caller;
  make({.caller = {.vary = [&](std::string_view dimension) -> std::optional<std::string> {
          return caller.find(dimension)->second;
        }}});
  auto point = current_engine().protect("p", {.vary = {"a", "b"}},
                                        [&](const std::string& arg) -> std::string {
                                          if (down) throw outage("down");
                                          return arg + "/" + caller["a"] + "/" + caller["b"];
                                        });
  const std::vector<std::array<std::string, 3>> all{
      {"x", "1", "2"},      {"x|a=1", "", "2"}, {"x", "1|b=2", ""}, {"x|a=1|b=2", "", ""},
      {"x", "1\\", "|b=2"}, {"x", "", "1|b=2"}, {"x\\", "1", "2"}};
  for (const auto& each : all) {
    caller = {{"a", each[1]}, {"b", each[2]}};
    (void)point(each[0]);
  }
  down = true;
  for (const auto& each : all) {
    caller = {{"a", each[1]}, {"b", each[2]}};
    EXPECT_EQ(*point(each[0]), each[0] + "/" + each[1] + "/" + each[2]);
  }
}

TEST_F(FailoverScope, ATenantIsServedItsOwnRealm) {
  std::string tenant = "acme";
  make({.caller = {.tenant = [&] {
          if (tenant == "unknown") throw error(errc::not_found, "no such tenant");
          return tenant;
        }}});
  const auto point = protect();
  (void)point("FR");
  EXPECT_EQ(
      memory
          ->find(place("country-by-code", "acme"), key::failover({.name = "country-by-code"}, "FR"))
          ->payload,
      "FR|France");
  down = true;
  EXPECT_EQ(point("FR")->name, "France");
  tenant = "other";
  EXPECT_THROW((void)point("FR"), outage);
  tenant = "unknown";
  EXPECT_THROW((void)point("FR"), outage)
      << "an unknown tenant is not protected, and is served nobody's answers";
  down = false;
  EXPECT_TRUE(point("FR").live());
  EXPECT_EQ(numbers().unkeyed, 2U);
}

TEST_F(FailoverScope, ADomainVariesAsOne) {
  make({.caller = {.vary = [](std::string_view) { return std::optional<std::string>("x"); }}});
  (void)protect("a", {.domain = "d", .vary = {"user"}});
  EXPECT_THROW((void)protect("b", {.domain = "d"}), error);
}

thread_local std::string trace;

/// Carries `trace`, and says when it is put on and taken off.
context_propagator carrier(std::string name, std::vector<std::string>& order) {
  return [name, &order] {
    return [name, carried = trace, &order](const std::function<void()>& work) {
      order.push_back("+" + name);
      const auto before = std::exchange(trace, carried);
      work();
      trace = before;
      order.push_back("-" + name);
    };
  };
}

TEST_F(FailoverScope, TheCallersContextGoesAlongAndTheFirstIsOutermost) {
  std::vector<std::string> order;
  make({.threads = {.propagate = {carrier("one", order), carrier("two", order)}}});
  auto point = current_engine().protect("traced", {.deadline = 20s}, [](int) { return trace; });
  trace = "request 7";
  EXPECT_EQ(*point(1), "request 7");
  trace.clear();
  (void)current_engine().close(clock->steady() + 20s);
  EXPECT_EQ(order, (std::vector<std::string>{"+one", "+two", "-two", "-one"}));
}

TEST_F(FailoverScope, TheStoreIsReadWithinTheCallersContext) {
  make({.threads = {.propagate = {[] {
                      return [carried = trace](const std::function<void()>& work) {
                        const auto before = std::exchange(trace, carried);
                        work();
                        trace = before;
                      };
                    }}},
        .storage = {.write_behind = std::nullopt}},
       true);
  std::mutex mutex;
  std::map<faulty_store::operation, std::string> traces;
  std::map<faulty_store::operation, std::thread::id> threads;
  shaky->before = [&](faulty_store::operation operation, std::span<const entry>) {
    const std::scoped_lock lock(mutex);
    traces[operation] = trace;
    threads[operation] = std::this_thread::get_id();
  };
  const auto seen = [&](faulty_store::operation operation) {
    const std::scoped_lock lock(mutex);
    return traces.contains(operation)
               ? traces[operation] +
                     (threads[operation] == std::this_thread::get_id() ? ", here" : ", elsewhere")
               : "nothing";
  };
  const auto point = protect();
  (void)point("FR");
  down = true;
  trace = "request 7";
  EXPECT_TRUE(point("FR").stale());
  EXPECT_EQ(seen(faulty_store::operation::find), "request 7, elsewhere");
  clock->advance(2h);
  trace = "request 8";
  EXPECT_THROW((void)point("FR"), outage);
  EXPECT_EQ(seen(faulty_store::operation::find), "request 8, elsewhere");
  EXPECT_TRUE(eventually([&] { return seen(faulty_store::operation::erase) == ", elsewhere"; }))
      << "what expired is removed without the context of a call";
  trace.clear();
  finish();
}

TEST_F(FailoverScope, APropagatorThatThrowsCostsItsContextOnly) {
  make({.threads = {.propagate = {[]() -> std::function<void(const std::function<void()>&)> {
                      throw std::runtime_error("bad");
                    }}}});
  auto point = current_engine().protect("traced", {.deadline = 20s},
                                        [](int n) { return std::to_string(n); });
  EXPECT_EQ(*point(1), "1");
  EXPECT_TRUE(logged("propagator"));
}

TEST_F(FailoverScope, APropagatorThatFailsOnTheOtherThreadCostsItsContextOnly) {
  using work_type = std::function<void()>;
  work_type kept;
  std::mutex mutex;
  const std::vector<std::pair<std::string, std::function<void(const work_type&)>>> bad{
      {"throws before", [](const work_type&) { throw std::runtime_error("before"); }},
      {"throws after",
       [](const work_type& work) {
         work();
         throw std::runtime_error("after");
       }},
      {"does nothing", [](const work_type&) {}},
      {"runs it twice",
       [](const work_type& work) {
         work();
         work();
       }},
      {"keeps it", [&](const work_type& work) {
         const std::scoped_lock lock(mutex);
         kept = work;
       }}};
  for (const auto& each : bad) {
    SCOPED_TRACE(each.first);
    {
      const std::scoped_lock lock(log_mutex);
      log.clear();
    }
    make({.threads = {.propagate = {[&each] { return each.second; }}},
          .storage = {.write_behind = std::nullopt}},
         true);
    const auto point =
        protect("country-by-code",
                {.expiry = 1h, .soft_expiry = 1min, .deadline = 20s, .concurrency_limit = 1});
    down = false;
    calls = 0;
    memory->erase("country-by-code", key::failover({.name = "country-by-code"}, "FR"),
                  row("FR") ? row("FR")->as_of : timestamp{});
    EXPECT_TRUE(point("FR").live());
    EXPECT_EQ(calls, 1);
    clock->advance(2min);
    EXPECT_EQ(point("FR").cause().code(), cause_code::refreshing) << "read, served, refreshed";
    EXPECT_TRUE(eventually([&] { return numbers().refreshed == 1 && status().running == 0; }));
    EXPECT_EQ(calls, 2);
    EXPECT_EQ(numbers().limit_refused, 0U);
    EXPECT_EQ(logged("a context propagator"), each.first != "runs it twice");
    const std::scoped_lock lock(mutex);
    if (kept) kept();
    EXPECT_EQ(calls, 2) << "never run again";
  }
  finish();
}

class FailoverRecents : public failover_test {};

TEST_F(FailoverRecents, NoCallerSeesTimeGoBackwards) {
  const auto point = protect();
  (void)point("FR");
  clock->advance(1s);
  answer_text = "newer";
  EXPECT_EQ(point("FR")->name, "newer");
  auto newer = *row("FR");
  newer.as_of -= 1s;
  newer.payload = "FR|older";
  memory->erase("country-by-code", newer.key, newer.as_of + 1s);
  memory->put(newer);
  down = true;
  EXPECT_THROW((void)point("FR"), outage) << "what is stored is older than what was served";
  EXPECT_EQ(numbers().older, 1U);
  const auto lenient = protect("lenient", {.domain = "country-by-code", .serve_older = true});
  EXPECT_EQ(lenient("FR")->name, "older");
}

/// An answer that could not be stored does not take the protection of the older one away.
TEST_F(FailoverRecents, AnAnswerThatIsNotStoredLeavesTheOlderOne) {
  const auto point = protect("country-by-code", {.max_payload = 10});
  (void)point("FR");
  clock->advance(1s);
  store_down = true;
  answer_text = "newer";
  EXPECT_EQ(point("FR")->name, "newer");  // the store is down
  store_down = false;
  answer_text = "far too long to be stored";
  EXPECT_EQ(point("FR")->name, answer_text);
  down = true;
  EXPECT_EQ(point("FR")->name, "France");
}

TEST_F(FailoverRecents, ARowFromTheFutureDoesNotFreezeItsKey) {
  const auto point = protect();
  (void)point("FR");
  auto ahead = *row("FR");
  ahead.as_of += 24h;  // of a machine with a wrong clock
  ahead.expire_on += 24h;
  ahead.payload = "FR|ahead";
  memory->put(ahead);
  down = true;
  EXPECT_EQ(point("FR")->name, "ahead") << "better than nothing";
  down = false;
  answer_text = "back";
  clock->advance(1s);
  EXPECT_TRUE(point("FR").live());
  ASSERT_EQ(row("FR")->payload, "FR|back");
  down = true;
  EXPECT_EQ(point("FR")->name, "back");
}

TEST_F(FailoverRecents, WhatTurnsOutToBeFromTheFutureIsForgotten) {
  const auto point = protect();
  (void)point("FR");
  auto ahead = *row("FR");
  ahead.as_of += 4min;
  ahead.expire_on += 4min;
  memory->put(ahead);
  down = true;
  EXPECT_TRUE(point("FR").stale()) << "within max_skew it is believed";
  clock->jump(-3min);
  down = false;
  answer_text = "back";
  EXPECT_TRUE(point("FR").live());
  ASSERT_EQ(row("FR")->payload, "FR|back");
  down = true;
  EXPECT_EQ(point("FR")->name, "back");
  clock->advance(3min);
  EXPECT_EQ(point("FR")->name, "back");
}

TEST_F(FailoverRecents, TheTableIsBoundedAndCountsWhatItForgets) {
  served_versions table(6);
  const timestamp now = clock->now();
  for (std::uint64_t id = 1; id <= 1000; ++id) table.note(id, now + std::chrono::microseconds(id));
  EXPECT_GE(table.evicted(), 1000U - 12);
  EXPECT_EQ(table.newest(1000), now + 1000us);
  table.note(1000, now);
  EXPECT_EQ(table.newest(1000), now + 1000us) << "the newest counts, not the last";
  EXPECT_EQ(table.newest(1), std::nullopt);
  table.clear();
  EXPECT_EQ(table.newest(1000), std::nullopt);
  served_versions none(0);
  none.note(1, now);
  EXPECT_EQ(none.newest(1), std::nullopt);
}

TEST_F(FailoverRecents, WhatItForgetsIsInTheHealth) {
  make({.storage = {.remembered = 3}});
  const auto point = protect();
  for (int i = 0; i < 100; ++i) (void)point(std::to_string(i));
  EXPECT_GT(current_engine().health().regressions_possible, 50U);
}

TEST_F(FailoverRecents, ThreadsMayUseItAtOnce) {
  served_versions table(30);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 5000; ++i) {
        table.note(static_cast<std::uint64_t>(i % 7),
                   timestamp(std::chrono::microseconds(i * 4 + t)));
        (void)table.newest(static_cast<std::uint64_t>(i % 7));
      }
    });
  }
  for (auto& each : threads) each.join();
  EXPECT_GE(table.newest(1)->time_since_epoch().count(), 4 * 4990);
}

}  // namespace
}  // namespace holdfast::test
