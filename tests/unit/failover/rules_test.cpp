// Which failures are recovered from, what an empty answer means, and what happens when there is
// nothing to serve.

#include "unit/failover/fixture.hpp"

#include <optional>

namespace holdfast::test {
namespace {

class FailoverRules : public failover_test {};

struct refused_login : std::logic_error {
  refused_login() : std::logic_error("wrong password") {}
};
struct http_error : std::runtime_error {
  explicit http_error(int its_status) : std::runtime_error("http"), status(its_status) {}
  int status;
};

TEST_F(FailoverRules, WhatPassesLeavesAndTheStoredAnswerStays) {
  const auto point =
      protect("country-by-code", {.classify = failure_rules{}.pass<std::logic_error>()});
  (void)point("FR");
  script = [](const std::string&) -> country { throw refused_login(); };
  EXPECT_THROW((void)point("FR"), refused_login);
  EXPECT_EQ(numbers().passed, 1U);
  script = nullptr;
  down = true;
  EXPECT_EQ(point("FR")->name, "France");
}

TEST_F(FailoverRules, WhatInvalidatesLeavesATombstoneBehind) {
  const auto point = protect("country-by-code", {.classify = failure_rules{}.invalidate<gone>()});
  (void)point("FR");
  clock->advance(1s);
  script = [](const std::string&) -> country { throw gone(); };
  EXPECT_THROW((void)point("FR"), gone);
  EXPECT_TRUE(row("FR")->tombstone());
  script = nullptr;
  down = true;
  EXPECT_THROW((void)point("FR"), outage) << "dead data does not come back";
  EXPECT_EQ(numbers().invalidated, 1U);
}

TEST_F(FailoverRules, AnOlderWriteDoesNotReturnAfterAnInvalidation) {
  const auto point = protect("country-by-code", {.classify = failure_rules{}.invalidate<gone>()});
  auto slow = point.begin("FR");
  clock->advance(1s);
  script = [](const std::string&) -> country { throw gone(); };
  EXPECT_THROW((void)point("FR"), gone);
  (void)slow.succeed(country{"FR", "dead"});
  EXPECT_TRUE(row("FR")->tombstone());
}

TEST_F(FailoverRules, TheFirstRuleThatFitsDecides) {
  auto rules =
      failure_rules{}
          .when<http_error>(on_failure::invalidate,
                            [](const http_error& e) { return e.status == 410; })
          .when<http_error>(on_failure::pass, [](const http_error& e) { return e.status < 500; })
          .add(on_failure::pass,
               [](const std::exception_ptr&) -> bool {
                 throw std::runtime_error("a bad predicate");
               })
          .otherwise(on_failure::recover);
  EXPECT_EQ(rules(std::make_exception_ptr(http_error(410))), on_failure::invalidate);
  EXPECT_EQ(rules(std::make_exception_ptr(http_error(404))), on_failure::pass);
  EXPECT_EQ(rules(std::make_exception_ptr(http_error(503))), on_failure::recover);
  EXPECT_EQ(rules(std::make_exception_ptr(42)), on_failure::recover);
  rules.otherwise(on_failure::pass).recover<outage>();
  EXPECT_EQ(rules(std::make_exception_ptr(outage("x"))), on_failure::recover);
  EXPECT_EQ(rules(std::make_exception_ptr(7)), on_failure::pass);
}

TEST_F(FailoverRules, NoRuleRecoversFromCancellation) {
  const auto rules = failure_rules{}.recover<std::exception>();
  EXPECT_EQ(rules(std::make_exception_ptr(std::bad_alloc())), on_failure::pass);
  EXPECT_EQ(rules(std::make_exception_ptr(cancelled())), on_failure::pass);
}

TEST_F(FailoverRules, AnEmptyOptionalIsStoredAndServedAsNothing) {
  std::optional<country> current = country{"FR", "France"};
  auto point =
      current_engine().protect("maybe", {}, [&](const std::string&) -> std::optional<country> {
        if (down) throw outage("down");
        return current;
      });
  EXPECT_EQ(point("FR")->name, "France");
  clock->advance(1s);
  current.reset();
  const auto live = point("FR");
  EXPECT_TRUE(live.live());
  EXPECT_FALSE(live.has_value());
  EXPECT_THROW((void)live.value(), error);
  down = true;
  const auto stale = point("FR");
  EXPECT_TRUE(stale.stale());
  EXPECT_FALSE(stale.has_value())
      << "the entity was deleted upstream: the old one must not be resurrected";
  EXPECT_EQ(numbers("maybe").absent, 1U);
}

TEST_F(FailoverRules, AClassifierSaysWhatAResultMeans) {
  auto point = protect("country-by-code", {}, {.result = [](const country& c) {
                         if (c.name == "none") return result_kind::absent;
                         return c.name == "half" ? result_kind::ignore : result_kind::store;
                       }});
  (void)point("FR");
  answer_text = "half";
  clock->advance(1s);
  EXPECT_EQ(point("FR")->name, "half") << "the live value is given, whatever it means";
  EXPECT_EQ(row("FR")->payload, "FR|France");
  EXPECT_EQ(numbers().ignored, 1U);
  answer_text = "none";
  clock->advance(1s);
  EXPECT_EQ(point("FR")->name, "none");
  EXPECT_TRUE(row("FR")->tombstone());
  down = true;
  EXPECT_FALSE(point("FR").has_value());
}

TEST_F(FailoverRules, AnEmptyListIsAnAnswerAndCountedAsOne) {
  auto point = current_engine().protect("list", {}, [&](const std::string&) -> std::string {
    if (down) throw outage("down");
    return "";
  });
  EXPECT_EQ(*point("x"), "");
  down = true;
  EXPECT_EQ(*point("x"), "");
  const auto n = numbers("list");
  EXPECT_EQ(n.stored, 1U);
  EXPECT_EQ(n.absent, 0U);
  EXPECT_EQ(n.stale, 1U);
  EXPECT_EQ(n.failed, 0U);
}

TEST_F(FailoverRules, NeverThrowGivesTheDefaultValueOrAnEmptyAnswer) {
  auto with_default = protect("a", {.exception_policy = exception_policy::never_throw},
                              {.default_value = [](const provenance& info) {
                                return country{"??", std::string(to_string(info.cause.code()))};
                              }});
  auto without = protect("b", {.exception_policy = exception_policy::never_throw});
  down = true;
  const auto a = with_default("FR");
  EXPECT_EQ(a->name, "failed");
  EXPECT_EQ(a.source(), origin::substitute);
  EXPECT_TRUE(a.stale());
  const auto b = without("FR");
  EXPECT_FALSE(b.has_value());
  EXPECT_EQ(b.source(), origin::substitute);
  EXPECT_EQ(numbers("a").substituted, 1U);
}

TEST_F(FailoverRules, ACustomPolicyGivesAValueOrThrowsItsOwn) {
  auto point = protect("a", {.exception_policy = exception_policy::custom},
                       {.unserved = [](const provenance& info) -> std::optional<country> {
                         if (info.cause.message().empty()) return country{"x", "y"};
                         throw std::domain_error("translated");
                       }});
  down = true;
  EXPECT_THROW((void)point("FR"), std::domain_error);
  EXPECT_EQ(numbers("a").failed, 1U);
  script = [](const std::string&) -> country { throw 42; };
  EXPECT_EQ(point("FR")->name, "y");
}

TEST_F(FailoverRules, TheEnginesPolicyIsTheDefaultAndAPointOverridesIt) {
  std::string unserved_point;
  make({.exception_policy = exception_policy::custom,
        .unserved = [&](std::string_view point, const provenance&) { unserved_point = point; }});
  auto inherits = protect("inherits");
  auto overrides = protect("overrides", {.exception_policy = exception_policy::rethrow});
  down = true;
  EXPECT_FALSE(inherits("FR").has_value());
  EXPECT_EQ(unserved_point, "inherits");
  EXPECT_THROW((void)overrides("FR"), outage);
}

TEST_F(FailoverRules, TheHandlerSeesEveryRecoveryAndMayChangeIt) {
  std::vector<std::string> seen;
  auto point = protect("country-by-code", {},
                       {.recovered = [&](std::optional<country>& value, const provenance& info) {
                         seen.push_back(value ? value->name : "nothing");
                         EXPECT_EQ(info.cause.code(), cause_code::failed);
                         if (value) value->name += " (old)";
                         else value = country{"??", "made up"};
                       }});
  down = true;
  const auto substitute = point("FR");
  EXPECT_EQ(substitute->name, "made up") << "a substitute keeps the exception from leaving";
  EXPECT_EQ(substitute.source(), origin::substitute);
  down = false;
  (void)point("DE");
  down = true;
  const auto old = point("DE");
  EXPECT_EQ(old->name, "France (old)");
  EXPECT_EQ(old.source(), origin::stored);
  EXPECT_EQ(seen, (std::vector<std::string>{"nothing", "France"}));
}

TEST_F(FailoverRules, AHandlerThatThrowsCostsACountNotAnAnswer) {
  auto point =
      protect("country-by-code", {},
              {.enrich = [](country&, const provenance&) { throw std::runtime_error("enrich"); },
               .recovered =
                   [](std::optional<country>& value, const provenance&) {
                     value.reset();
                     throw std::runtime_error("recovered");
                   }});
  EXPECT_EQ(point("FR")->name, "France");
  down = true;
  EXPECT_EQ(point("FR")->name, "France");
  EXPECT_EQ(numbers().hook_failed, 3U);
}

TEST_F(FailoverRules, AnEnricherFillsInWhereAnAnswerComesFrom) {
  auto point = protect("country-by-code", {}, {.enrich = [](country& c, const provenance& info) {
                         c.name += info.origin == origin::live ? " up to date" : " old";
                       }});
  EXPECT_EQ(point("FR")->name, "France up to date");
  EXPECT_EQ(row("FR")->payload, "FR|France") << "what is stored is what the upstream said";
  down = true;
  EXPECT_EQ(point("FR")->name, "France old");
}

TEST_F(FailoverRules, ThePayloadClassIsCheckedBeforeAByteIsDecoded) {
  const auto point = protect();
  (void)point("FR");
  auto stranger = *row("FR");
  stranger.payload_class = "com.evil.Gadget";
  stranger.as_of += 1s;
  memory->put(stranger);
  down = true;
  EXPECT_THROW((void)point("FR"), outage);
  EXPECT_EQ(numbers().not_allowed, 1U);
  EXPECT_TRUE(logged("not allowed"));
}

TEST_F(FailoverRules, ARegisteredTypeHasItsNamesAndNoOther) {
  engine_options options;
  options.storage.payloads.add<country>("com.acme.Country", {"com.acme.OldCountry"});
  make(std::move(options));
  const auto point = protect();
  (void)point("FR");
  auto kept = *row("FR");
  EXPECT_EQ(kept.payload_class, "com.acme.Country");
  kept.payload_class = "com.acme.OldCountry";
  kept.as_of += 1s;
  memory->put(kept);
  down = true;
  EXPECT_EQ(point("FR")->name, "France");
}

TEST_F(FailoverRules, BytesThatAreNoAnswerAreAMiss) {
  const auto point = protect();
  (void)point("FR");
  auto broken = *row("FR");
  broken.payload = "no bar here";
  broken.as_of += 1s;
  memory->put(broken);
  down = true;
  EXPECT_THROW((void)point("FR"), outage);
  EXPECT_EQ(numbers().undecodable, 1U);
}

TEST_F(FailoverRules, NoMessageOfAnUpstreamReachesTheLog) {
  const auto point = protect();
  (void)point("FR");
  down = true;
  (void)point("FR");
  EXPECT_TRUE(logged("name=country-by-code"));
  EXPECT_TRUE(logged("exception=holdfast::test::outage"));
  EXPECT_FALSE(logged("10.0.0.7"));
}

}  // namespace
}  // namespace holdfast::test
