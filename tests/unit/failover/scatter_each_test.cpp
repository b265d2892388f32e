// Many ids in one call: stored one by one, recovered one by one.

#include "unit/failover/scatter_fixture.hpp"

namespace holdfast::test {
namespace {

class ScatterEach : public scatter_test {};

TEST_F(ScatterEach, ALiveAnswerIsStoredItemByItemWithOnePut) {
  const auto point = each();
  const auto start = clock->now();
  const auto a = point(codes{"IT", "FR", "XX"});
  EXPECT_TRUE(a.live());
  EXPECT_EQ(a.complete(), completeness::yes);
  EXPECT_EQ(codes_of(a), (codes{"IT", "FR", "XX"})) << "in the order in which they were asked for";
  EXPECT_EQ(a[1]->name, "name of FR");
  EXPECT_EQ(a[1].as_of(), start);
  EXPECT_FALSE(a[2].has_value());
  EXPECT_FALSE(a[2].missing()) << "it is known not to exist";
  EXPECT_EQ(puts, 1);
  EXPECT_EQ(row("FR", "country")->payload, "FR|name of FR");
  EXPECT_EQ(row("FR", "country")->payload_class, "holdfast.test.country");
  EXPECT_TRUE(row("XX", "country")->tombstone());
  EXPECT_EQ(numbers("countries-by-codes").stored, 3U);
  EXPECT_EQ(numbers("countries-by-codes").absent, 1U);
}

TEST_F(ScatterEach, ListCallsFeedSingleCallsAndBack) {
  const auto many = each();
  const auto one = single();
  (void)many(codes{"FR", "XX"});
  (void)one("DE");
  down = true;
  EXPECT_EQ(one("FR")->name, "name of FR");
  EXPECT_FALSE(one("XX").has_value()) << "the tombstone, too";
  const auto a = many({"DE", "FR"});
  EXPECT_TRUE(a.stale());
  EXPECT_EQ(a[0]->name, "name of DE");
  EXPECT_EQ(a.complete(), completeness::yes);
}

TEST_F(ScatterEach, EachItemHasItsOwnProvenance) {
  const auto many = each();
  const auto one = single();
  const auto old = one("FR").as_of();
  clock->advance(10min);
  const auto young = one("DE").as_of();
  (void)one("XX");
  down = true;
  const auto a = many(codes{"DE", "ES", "FR", "XX"});
  EXPECT_TRUE(a[0].stale());
  EXPECT_EQ(a[0].as_of(), young);
  EXPECT_TRUE(a[1].missing());
  EXPECT_FALSE(a[1].stale());
  EXPECT_FALSE(a[1].live());
  EXPECT_FALSE(a[1].has_value());
  EXPECT_EQ(a[2].as_of(), old);
  EXPECT_FALSE(a[3].missing());
  EXPECT_FALSE(a[3].has_value());
  EXPECT_EQ(a.as_of(), old) << "as old as its oldest item";
  EXPECT_EQ(a.complete(), completeness::no);
  EXPECT_EQ(a.missing(), 1U);
  EXPECT_EQ(a.cause().code(), cause_code::failed);
  EXPECT_EQ(a.at("FR")->code, "FR");
  EXPECT_THROW((void)a.at("ZZ"), error);
  EXPECT_EQ(numbers("countries-by-codes").partial, 1U);
  EXPECT_EQ(numbers("countries-by-codes").not_found, 1U);
  EXPECT_EQ(numbers("countries-by-codes").stale, 1U);
}

TEST_F(ScatterEach, WithNothingToServeTheUpstreamsOwnExceptionLeaves) {
  const auto many = each();
  down = true;
  EXPECT_THROW((void)many(codes{"FR", "DE"}), outage);
  EXPECT_FALSE(many.try_call(codes{"FR"}).has_value());
  EXPECT_EQ(numbers("countries-by-codes").failed, 2U);
  EXPECT_EQ(status("countries-by-codes").running, 0U);
}

TEST_F(ScatterEach, NoIdsAreAnAnswer) {
  const auto many = each();
  EXPECT_TRUE(many(codes{}).live());
  EXPECT_EQ(puts, 0);
  down = true;
  const auto a = many(codes{});
  EXPECT_TRUE(a.empty());
  EXPECT_EQ(a.complete(), completeness::yes);
}

TEST_F(ScatterEach, AnIdMayBeThereTwice) {
  const auto many = each();
  std::size_t written = 0;
  shaky->after = [&](faulty_store::operation operation, std::span<const entry> rows) {
    if (operation == faulty_store::operation::put) written += rows.size();
  };
  EXPECT_EQ(codes_of(many(codes{"FR", "DE", "FR"})), (codes{"FR", "DE", "FR"}));
  EXPECT_EQ(written, 2U);
  down = true;
  const auto a = many(codes{"FR", "FR", "DE"});
  EXPECT_EQ(a[0]->name, "name of FR");
  EXPECT_EQ(a[1]->name, "name of FR");
  EXPECT_EQ(finds, 2);
}

TEST_F(ScatterEach, AThousandSlices) {
  codes all;
  for (int i = 0; i < 1000; ++i) {
    all.push_back("c" + std::to_string(i));
    world[all.back()] = {all.back(), "n"};
  }
  const auto many = each();
  EXPECT_TRUE(many(all).live());
  EXPECT_EQ(puts, 1);
  down = true;
  const auto a = many(all);
  EXPECT_EQ(codes_of(a), all);
  EXPECT_EQ(a.complete(), completeness::yes);
  for (std::size_t i = 0; i < all.size(); ++i) ASSERT_EQ(a[i]->code, all[i]);
}

TEST_F(ScatterEach, MoreSlicesThanAllowedAreNotProtected) {
  const auto many = each({.domain = "country", .scatter = scatter_options{.max_slices = 2}});
  EXPECT_EQ(many(codes{"FR", "DE", "IT"}).size(), 3U) << "the call comes first";
  EXPECT_EQ(puts, 0);
  EXPECT_EQ(numbers("countries-by-codes").too_large, 1U);
  down = true;
  EXPECT_THROW((void)many(codes{"FR", "DE", "IT"}), outage);
}

TEST_F(ScatterEach, ABadSliceCostsOnlyItself) {
  const auto many = each();
  (void)many(codes{"FR", "DE", "IT", "ES"});
  damage("FR", [](entry& e) { e.payload = "no bar: corrupt"; });
  damage("DE", [](entry& e) { e.payload_class = "com.evil.Gadget"; });
  damage("IT", [&](entry& e) { e.expire_on = clock->now() + 1s; });
  clock->advance(2s);
  down = true;
  const auto a = many(codes{"FR", "DE", "IT", "ES"});
  EXPECT_TRUE(a[0].missing());
  EXPECT_TRUE(a[1].missing());
  EXPECT_TRUE(a[2].missing());
  EXPECT_EQ(a[3]->name, "name of ES");
  const auto n = numbers("countries-by-codes");
  EXPECT_EQ(n.undecodable, 1U);
  EXPECT_EQ(n.not_allowed, 1U);
  EXPECT_EQ(n.expired, 1U);
}

TEST_F(ScatterEach, AReadThatFailsCostsOnlyItsSlice) {
  const auto many = each();
  (void)many(codes{"FR", "DE", "IT"});
  down = true;
  shaky->before = [this](faulty_store::operation operation, std::span<const entry>) {
    if (operation == faulty_store::operation::find && ++finds == 2)
      throw error(errc::unavailable, "connection lost");
  };
  const auto a = many(codes{"FR", "DE", "IT"});
  EXPECT_TRUE(a[1].missing());
  EXPECT_EQ(a.missing(), 1U);
  EXPECT_EQ(numbers("countries-by-codes").read_failed, 1U);
}

TEST_F(ScatterEach, AnItemThatCannotBeStoredCostsOnlyItself) {
  const auto many = each({.domain = "country", .max_payload = 50});
  world["DE"].name = "unencodable";
  world["IT"].name = std::string(100, 'x');
  // And one that the store refuses.
  shaky->before = [](faulty_store::operation operation, std::span<const entry> rows) {
    if (operation != faulty_store::operation::put) return;
    for (const auto& each : rows) {
      if (each.payload && each.payload->starts_with("ES"))
        throw error(errc::too_large, "not this one");
    }
  };
  const auto a = many(codes{"FR", "DE", "IT", "ES", "XX"});
  EXPECT_TRUE(a.live());
  EXPECT_TRUE(row("FR", "country"));
  EXPECT_TRUE(row("XX", "country"));
  EXPECT_FALSE(row("DE", "country"));
  EXPECT_FALSE(row("IT", "country"));
  EXPECT_FALSE(row("ES", "country"));
  const auto n = numbers("countries-by-codes");
  EXPECT_EQ(n.stored, 2U);
  EXPECT_EQ(n.store_failed, 2U);
  EXPECT_EQ(n.too_large, 1U);
}

TEST_F(ScatterEach, AStoreThatIsDownBreaksNoCallAndIsAskedOnce) {
  const auto many = each();
  store_down = true;
  EXPECT_TRUE(many(codes{"FR", "DE", "IT"}).live());
  EXPECT_EQ(puts, 1) << "what is transient is not tried again for each half";
  EXPECT_EQ(numbers("countries-by-codes").store_failed, 3U);
}

TEST_F(ScatterEach, PartialPolicies) {
  (void)single()("FR");
  down = true;
  const auto with_policy = [&](const char* name, partial policy) {
    return current_engine().protect_each(
        name, {.domain = "country", .expiry = 24h, .scatter = scatter_options{.partial = policy}},
        [this](std::span<const std::string> some) { return ask(some); });
  };
  EXPECT_EQ(with_policy("keep", partial::keep)(codes{"DE", "FR"}).size(), 2U);
  const auto dropped = with_policy("drop", partial::drop)(codes{"DE", "FR"});
  EXPECT_EQ(codes_of(dropped), (codes{"FR"}));
  EXPECT_EQ(dropped.missing(), 1U);
  EXPECT_EQ(dropped.complete(), completeness::no);
  const auto fail = with_policy("fail", partial::fail);
  EXPECT_THROW((void)fail(codes{"DE", "FR"}), outage);
  EXPECT_EQ(fail(codes{"FR"}).size(), 1U);
  EXPECT_THROW((void)with_policy("two", partial::at_least(2))(codes{"DE", "FR"}), outage);
  EXPECT_EQ(with_policy("one", partial::at_least(1))(codes{"DE", "FR"}).size(), 2U);
}

TEST_F(ScatterEach, AnUpstreamThatFailsForSomeIsAnsweredForThoseOnly) {
  const auto point = current_engine().protect_each(
      "some", {.domain = "country", .classify = failure_rules{}.invalidate<gone>()},
      [this](const std::vector<std::string>& some) {
        std::vector<fetched<country>> results;
        for (const auto& code : some) {
          if (down && code == "FR")
            results.emplace_back(std::make_exception_ptr(outage("shard down")));
          else if (down && code == "DE") results.emplace_back(std::make_exception_ptr(gone()));
          else if (!world.contains(code)) results.emplace_back(std::nullopt);
          else results.emplace_back(world[code]);
        }
        return results;
      });
  (void)point(codes{"FR", "DE"});
  clock->advance(1min);
  down = true;
  const auto a = point(codes{"FR", "IT", "DE", "XX"});
  EXPECT_TRUE(a[0].stale());
  EXPECT_EQ(a[0]->name, "name of FR");
  EXPECT_EQ(a[0].cause().type(), "holdfast::test::outage");
  EXPECT_TRUE(a[1].live());
  EXPECT_TRUE(a[2].missing()) << "the upstream says that it is gone";
  EXPECT_TRUE(row("DE", "country")->tombstone());
  EXPECT_TRUE(a[3].live());
  EXPECT_FALSE(a.live());
  EXPECT_EQ(a.complete(), completeness::no);
  EXPECT_EQ(numbers("some").live, 2U);
}

TEST_F(ScatterEach, APolicyHoldsForALiveAnswerToo) {
  const auto point = current_engine().protect_each(
      "strict", {.domain = "country", .scatter = scatter_options{.partial = partial::fail}},
      [](const std::vector<std::string>& some) {
        return std::vector<fetched<country>>(
            some.size(), fetched<country>(std::make_exception_ptr(outage("x"))));
      });
  EXPECT_THROW((void)point(codes{"FR"}), outage);
  EXPECT_EQ(numbers("strict").failed, 1U);
  EXPECT_EQ(numbers("strict").live, 0U);
}

TEST_F(ScatterEach, MapsAndPairsAreTakenAndWhatIsNotInThemIsAbsent) {
  const auto map = current_engine().protect_each(
      "map", {.domain = "country"}, [this](const std::vector<std::string>&) { return world; });
  const auto a = map(codes{"XX", "FR"});
  EXPECT_FALSE(a[0].has_value());
  EXPECT_EQ(a[1]->name, "name of FR");
  const auto pairs = current_engine().protect_each(
      "pairs", {.domain = "country"}, [this](const std::vector<std::string>&) {
        return std::vector<std::pair<std::string, country>>{{"DE", world["DE"]},
                                                            {"FR", world["FR"]}};
      });
  const auto b = pairs(codes{"FR", "XX", "DE", "FR"});
  EXPECT_EQ(b[0]->code, "FR");
  EXPECT_FALSE(b[1].has_value());
  EXPECT_EQ(b[2]->code, "DE");
  EXPECT_EQ(b[3]->code, "FR");
}

TEST_F(ScatterEach, AWrongNumberOfItemsIsAFailureOfTheUpstream) {
  (void)single()("FR");
  const auto point = current_engine().protect_each(
      "short", {.domain = "country", .expiry = 24h},
      [](const std::vector<std::string>&) { return std::vector<std::optional<country>>(); });
  const auto a = point(codes{"FR"});
  EXPECT_TRUE(a[0].stale());
  EXPECT_EQ(
      a.cause().message(),
      "the upstream was asked for 1 items and returned 0; it must return one for each id, in their "
      "order");
}

TEST_F(ScatterEach, OtherArgumentsBelongToTheKeyOfEachItem) {
  const auto many = current_engine().protect_each(
      "many", {.domain = "d"}, [this](const std::vector<int>& ids, std::string_view language) {
        if (down) throw outage("down");
        std::vector<std::optional<std::string>> all;
        for (const int id : ids) all.emplace_back(std::string(language) + std::to_string(id));
        return all;
      });
  const auto one =
      current_engine().protect("one", {.domain = "d"}, [this](int id, const std::string& language) {
        if (down) throw outage("down");
        return language + std::to_string(id);
      });
  (void)many(std::vector<int>{1, 2}, "fr");
  down = true;
  EXPECT_EQ(*one(2, "fr"), "fr2");
  EXPECT_THROW((void)one(2, "de"), outage);
  EXPECT_EQ(*many({2}, "fr")[0], "fr2");
}

TEST_F(ScatterEach, HooksSeeItems) {
  std::vector<std::string> seen;
  const auto point =
      each({.domain = "country", .expiry = 24h, .exception_policy = exception_policy::never_throw},
           {.result =
                [](const country& c) {
                  return c.code == "DE" ? result_kind::absent : result_kind::store;
                },
            .enrich =
                [](country& c, const provenance& info) {
                  c.name += info.origin == origin::live ? " live" : " stored";
                },
            .recovered =
                [&](std::optional<country>& c, const provenance&) {
                  seen.push_back(c ? c->code : "-");
                  if (c && c->code == "ES") throw std::runtime_error("bad hook");
                },
            .default_value = [](const provenance&) { return country{"??", "default"}; }});
  EXPECT_EQ(point(codes{"FR", "DE", "ES"})[0]->name, "name of FR live");
  EXPECT_TRUE(row("DE", "country")->tombstone());
  down = true;
  const auto a = point(codes{"FR", "DE", "IT", "ES"});
  EXPECT_EQ(a[0]->name, "name of FR stored");
  EXPECT_FALSE(a[1].has_value());
  EXPECT_TRUE(a[2].missing()) << "the answer is served, so nobody asks for a default";
  EXPECT_EQ(a[3]->name.substr(0, 10), "name of ES");
  EXPECT_EQ(seen, (codes{"FR", "-", "-", "ES"}));
  EXPECT_EQ(numbers("countries-by-codes").hook_failed, 1U);
  const auto none = point(codes{"IT"});
  EXPECT_EQ(none[0]->name, "default");
  EXPECT_EQ(none[0].source(), origin::substitute);
}

TEST_F(ScatterEach, WhatTheRulesSayGoesForTheWhole) {
  const auto point = current_engine().protect_each(
      "ruled", {.domain = "country", .classify = failure_rules{}.pass<outage>().invalidate<gone>()},
      [this](std::span<const std::string> some) {
        if (script) (void)script(some.front());
        return ask(some);
      });
  (void)point(codes{"FR", "DE"});
  down = true;
  EXPECT_THROW((void)point(codes{"FR"}), outage);
  EXPECT_EQ(finds, 0);
  script = [](const std::string&) -> country { throw gone(); };
  EXPECT_THROW((void)point(codes{"FR", "DE"}), gone);
  EXPECT_TRUE(row("FR", "country")->tombstone());
  EXPECT_TRUE(row("DE", "country")->tombstone());
}

TEST_F(ScatterEach, TenantsAndDimensionsAreKeptApart) {
  std::string tenant = "acme";
  std::string user = "alice";
  make({.caller = {.tenant = [&] { return tenant; },
                   .vary = [&](std::string_view) { return std::optional(user); }}});
  const auto point = each({.domain = "country", .vary = {"user"}});
  const auto one = single({.domain = "country", .vary = {"user"}});
  (void)point(codes{"FR"});
  down = true;
  EXPECT_EQ(point(codes{"FR"})[0]->code, "FR");
  EXPECT_EQ(one("FR")->code, "FR");
  user = "bob";
  EXPECT_THROW((void)point(codes{"FR"}), outage);
  user = "alice";
  tenant = "other";
  EXPECT_THROW((void)point(codes{"FR"}), outage);
}

TEST_F(ScatterEach, NoItemGoesBackInTime) {
  const auto point = each();
  (void)point(codes{"FR"});
  const auto old = *row("FR", "country");
  clock->advance(1s);
  world["FR"].name = "newer";
  (void)point(codes{"FR"});
  memory->erase(place(old), old.key, row("FR", "country")->as_of);
  memory->put(old);
  down = true;
  EXPECT_THROW((void)point(codes{"FR"}), outage) << "what is stored is older than what was served";
  EXPECT_EQ(numbers("countries-by-codes").older, 1U);
}

TEST_F(ScatterEach, AnIgnoredItemLeavesWhatIsStored) {
  const auto point = each({.domain = "country", .expiry = 24h}, {.result = [](const country& c) {
                            return c.name == "odd" ? result_kind::ignore : result_kind::store;
                          }});
  (void)point(codes{"FR", "DE"});
  world["FR"].name = "odd";
  EXPECT_EQ(point(codes{"FR", "DE"})[0]->name, "odd");
  down = true;
  EXPECT_EQ(point(codes{"FR", "DE"})[0]->name, "name of FR");
}

TEST_F(ScatterEach, AnIdWithoutAKeyIsNotProtectedAndTheOthersAre) {
  const auto point = each();
  world["\xff"] = {"\xff", "odd"};
  EXPECT_EQ(point(codes{"\xff", "FR"})[0]->name, "odd");
  EXPECT_EQ(numbers("countries-by-codes").unkeyed, 1U);
  down = true;
  const auto a = point(codes{"\xff", "FR"});
  EXPECT_TRUE(a[0].missing());
  EXPECT_EQ(a[1]->code, "FR");
}

TEST_F(ScatterEach, ADisabledPointIsTheBareCall) {
  const auto point = each({.domain = "country", .enabled = false});
  EXPECT_EQ(point(codes{"FR"})[0]->code, "FR");
  EXPECT_TRUE(point(codes{"FR"}).live());
  EXPECT_EQ(puts, 0);
  down = true;
  EXPECT_THROW((void)point(codes{"FR"}), outage);
}

TEST_F(ScatterEach, WhatCannotBeIsRefusedWhenThePointIsRegistered) {
  const auto refusal = [&](point_options options) -> std::string {
    try {
      (void)each(std::move(options));
    } catch (const error& e) {
      return std::string(e.message());
    }
    return "accepted";
  };
  EXPECT_NE(refusal({.soft_expiry = 1s}).find("soft_expiry is not for calls"), std::string::npos);
  EXPECT_NE(refusal({.single_flight = true}).find("single_flight"), std::string::npos);
  EXPECT_NE(refusal({.scatter = scatter_options{.timeout = 0s}}).find("scatter.timeout"),
            std::string::npos);
  EXPECT_NE(refusal({.scatter = scatter_options{.parallel = 0, .max_slices = 0}})
                .find("scatter.max_slices"),
            std::string::npos);
  EXPECT_EQ(refusal({}), "accepted");
}

}  // namespace
}  // namespace holdfast::test
