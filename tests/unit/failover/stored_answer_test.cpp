// What an application does with stored answers: peek, prime, invalidate, erase.

#include <holdfast/store/compose.hpp>

#include "unit/failover/fixture.hpp"

namespace holdfast::test {
namespace {

class StoredAnswer : public failover_test {};

TEST_F(StoredAnswer, IsPeekedAtWithoutACall) {
  const auto point = protect();
  EXPECT_FALSE(point.peek("FR"));
  (void)point("FR");
  const auto peeked = point.peek("FR");
  ASSERT_TRUE(peeked);
  EXPECT_EQ((**peeked).name, "France");
  EXPECT_TRUE(peeked->stale());
  EXPECT_EQ(calls, 1);
  clock->advance(2h);
  EXPECT_FALSE(point.peek("FR")) << "expired";
}

TEST_F(StoredAnswer, IsPrimed) {
  const auto point = protect();
  point.prime("FR", country{"FR", "primed"});
  EXPECT_EQ(calls, 0);
  down = true;
  EXPECT_EQ(point("FR")->name, "primed");
  EXPECT_THROW(point.prime("DE", country{"DE", "unencodable"}), error);
  store_down = true;
  EXPECT_THROW(point.prime("DE", country{"DE", "Germany"}), error);
}

TEST_F(StoredAnswer, IsNotServedAfterItWasInvalidated) {
  const auto point = protect();
  (void)point("FR");
  (void)point("DE");
  point.invalidate("FR");
  down = true;
  EXPECT_THROW((void)point("FR"), outage);
  EXPECT_TRUE(point("DE").stale());
  down = false;
  EXPECT_TRUE(point("FR").live());
  down = true;
  EXPECT_TRUE(point("FR").stale()) << "a newer answer counts again";
}

TEST_F(StoredAnswer, IsInvalidatedWithItsDomain) {
  const auto point = protect("country-by-code", {.domain = "country"});
  const auto other = protect("other");
  for (int n = 0; n < 1200; ++n) (void)point(std::to_string(n));
  (void)other("FR");
  EXPECT_EQ(current_engine().invalidate_domain("country"), 1200U);
  EXPECT_EQ(current_engine().invalidate_domain("country"), 0U);
  down = true;
  for (int n = 0; n < 1200; ++n) EXPECT_FALSE(point.peek(std::to_string(n)));
  EXPECT_TRUE(other("FR").stale());
}

TEST_F(StoredAnswer, IsErasedFromEveryLayer) {
  shaky->waiting = true;
  const auto layered = compose(shaky, {.tiered = tiered_options{.clock = clock},
                                       .write_behind = write_behind_options{.clock = clock}});
  engine e(layered, {.clock = clock});
  const auto point = e.protect("p", [this](const std::string& code) { return upstream(code); });
  (void)point("FR");
  (void)point("DE");
  point.erase("FR", clock->steady() + 20s);
  EXPECT_FALSE(point.peek("FR"));
  EXPECT_TRUE(point.peek("DE"));
  EXPECT_EQ(memory->count("p"), 1U);
}

TEST_F(StoredAnswer, NeedsAKey) {
  make({.caller = {.vary = [](std::string_view) { return std::optional<std::string>(); }}});
  const auto point = protect("country-by-code", {.vary = {"user"}});
  EXPECT_THROW(point.invalidate("FR"), error);
  EXPECT_THROW(point.prime("FR", country{"FR", "France"}), error);
}

TEST_F(StoredAnswer, OneEntryIsInvalidatedByItsRowKey) {
  const auto point = protect("country-by-code", {.expiry = 1h});
  (void)point("FR");
  const auto key = row("FR")->key;
  const auto expires = row("FR")->expire_on;
  clock->advance(1s);
  EXPECT_TRUE(current_engine().invalidate_entry("country-by-code", key));
  EXPECT_TRUE(row("FR")->tombstone());
  EXPECT_EQ(row("FR")->expire_on, expires);
  down = true;
  EXPECT_THROW((void)point("FR"), outage);
  EXPECT_FALSE(current_engine().invalidate_entry("country-by-code", key)) << "it is one already";
  EXPECT_FALSE(current_engine().invalidate_entry("country-by-code", "never"));
  EXPECT_THROW((void)current_engine().invalidate_entry("never", key), error);
}

TEST_F(StoredAnswer, RunTimeArgumentsHaveTheKeysOfTypedOnes) {
  const auto typed = current_engine().protect(
      "typed", {.domain = "d"}, [](const std::string& a, int b) { return a + std::to_string(b); });
  const auto untyped = current_engine().protect(
      "untyped", {.domain = "d"},
      [](const run_time_arguments&) -> std::string { throw outage("down"); });
  (void)typed("x", 5);
  const auto answer =
      untyped(run_time_arguments{{key::to_value(std::string("x")), key::to_value(5)}});
  EXPECT_TRUE(answer.stale());
  EXPECT_EQ(*answer, "x5");
  EXPECT_THROW((void)untyped(run_time_arguments{}), outage);
}

TEST_F(StoredAnswer, ACallOfAnotherProgramHasItsOwnStart) {
  const auto point = protect("country-by-code", {.expiry = 1h});
  const auto now = clock->now();
  auto pending = point.begin("FR");
  pending.set_start(now - 10min);
  EXPECT_THROW(pending.set_start(now + 1us), error);
  const auto answer = pending.succeed(country{"FR", "France"});
  EXPECT_EQ(answer.as_of(), now - 10min);
  EXPECT_EQ(row("FR")->as_of, now - 10min);
  EXPECT_EQ(row("FR")->expire_on, now + 50min);
  (void)point("FR");
  auto older = point.begin("FR");
  older.set_start(now - 5min);
  (void)older.succeed(country{"FR", "older"});
  EXPECT_EQ(row("FR")->payload, "FR|France") << "the newer answer stays";
}

}  // namespace
}  // namespace holdfast::test
