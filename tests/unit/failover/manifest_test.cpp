// Lists: what belongs to them is written down, so that a recovered one is whole, or says that it is
// not.

#include "failover/scatter/manifest.hpp"

#include "unit/failover/scatter_fixture.hpp"

namespace holdfast::test {
namespace {

using detail::failover::manifest_chunk;
using detail::failover::manifest_chunk_keys;
using detail::failover::manifest_key;
using detail::failover::parse_manifest;
using detail::failover::write_manifest;

class ScatterList : public scatter_test {
 protected:
  /// The head of a manifest of `countries`.
  std::optional<entry> manifest(const std::string& prefix, std::size_t chunk = 0) {
    return memory->find("countries#list",
                        manifest_key(key::failover({.name = "country"}, prefix), chunk));
  }
};

TEST_F(ScatterList, ARecoveredListIsWholeAndInOrder) {
  const auto all = list();
  const auto live = all("");
  EXPECT_TRUE(live.live());
  EXPECT_EQ(puts, 1) << "items and manifest together";
  clock->advance(1min);
  down = true;
  const auto a = all("");
  EXPECT_EQ(codes_of(a), codes_of(live));
  EXPECT_TRUE(a.stale());
  EXPECT_EQ(a.complete(), completeness::yes);
  EXPECT_EQ(a.as_of(), live.as_of());
  EXPECT_EQ(a[0].as_of(), live.as_of());
}

TEST_F(ScatterList, FiltersHaveManifestsOfTheirOwn) {
  const auto all = list();
  (void)all("");
  (void)all("F");
  down = true;
  EXPECT_EQ(codes_of(all("F")), (codes{"FR"}));
  EXPECT_EQ(all("").size(), 4U);
  EXPECT_THROW((void)all("D"), outage)
      << "rows of the domain are no answer to a question that was never asked";
  EXPECT_EQ(numbers("countries").unlisted, 1U);
}

TEST_F(ScatterList, WhatTheUpstreamNoLongerListsDoesNotComeBack) {
  const auto all = list();
  (void)all("");
  world.erase("DE");
  clock->advance(1s);
  (void)all("");
  down = true;
  EXPECT_TRUE(row("DE", "country")->payload) << "its row is still there";
  EXPECT_EQ(codes_of(all("")), (codes{"ES", "FR", "IT"}));
  EXPECT_EQ(all("").complete(), completeness::yes);
}

TEST_F(ScatterList, WhatASingleCallFoundGoneIsLeftOutAndTheListIsWhole) {
  const auto all = list();
  const auto one = single();
  (void)all("");
  world.erase("DE");
  (void)one("DE");
  down = true;
  const auto a = all("");
  EXPECT_EQ(codes_of(a), (codes{"ES", "FR", "IT"}));
  EXPECT_EQ(a.complete(), completeness::yes);
}

TEST_F(ScatterList, AListFeedsSingleCallsAndIsFedByThem) {
  const auto all = list();
  const auto one = single();
  const auto many = each();
  (void)all("");
  clock->advance(1min);
  world["FR"].name = "newer";
  (void)one("FR");
  down = true;
  EXPECT_EQ(one("IT")->name, "name of IT");
  EXPECT_EQ(many({"ES"})[0]->name, "name of ES");
  EXPECT_EQ(all("").at("FR")->name, "newer");
}

TEST_F(ScatterList, AnItemThatIsLostMakesTheListNotWhole) {
  const auto all = list();
  const auto live = all("");
  memory->erase("country", row("FR", "country")->key, live.as_of());
  damage("DE", [](entry& e) { e.payload = "corrupt"; });
  down = true;
  const auto a = all("");
  EXPECT_EQ(codes_of(a), (codes{"ES", "IT"}));
  EXPECT_EQ(a.complete(), completeness::no);
  EXPECT_EQ(a.missing(), 2U);
  EXPECT_EQ(numbers("countries").partial, 1U);
  EXPECT_EQ(numbers("countries").undecodable, 1U);
}

TEST_F(ScatterList, ATombstoneOlderThanTheListIsALostItem) {
  const auto all = list();
  const auto live = all("");
  const auto fr = *row("FR", "country");
  memory->erase("country", fr.key, fr.as_of);
  memory->put(
      entry{.name = "country", .key = fr.key, .as_of = fr.as_of - 1s, .expire_on = fr.expire_on});
  // A new process: no memory of what was served.
  make();
  const auto again = list();
  down = true;
  EXPECT_EQ(again("").complete(), completeness::no);
}

TEST_F(ScatterList, AnEmptyListIsAnAnswer) {
  const auto all = list();
  (void)all("Z");
  down = true;
  const auto a = all("Z");
  EXPECT_TRUE(a.empty());
  EXPECT_EQ(a.complete(), completeness::yes);
  EXPECT_EQ(numbers("countries").stale, 1U);
}

TEST_F(ScatterList, AnExpiredManifestIsNone) {
  const auto all = list({.domain = "country", .expiry = 1h});
  (void)all("");
  clock->advance(1h);
  down = true;
  EXPECT_EQ(all("").size(), 4U) << "not yet";
  clock->advance(1us);
  EXPECT_THROW((void)all(""), outage);
}

TEST_F(ScatterList, WithoutAManifestItIsServedOnlyIfThatIsAllowedAndMarked) {
  const auto all = list({.domain = "country",
                         .expiry = 24h,
                         .scatter = scatter_options{.unlisted = unlisted::serve}});
  const auto one = single();
  (void)one("FR");
  (void)one("IT");
  (void)one("XX");
  down = true;
  const auto a = all("F");
  EXPECT_EQ(a.size(), 2U) << "all rows of the domain";
  EXPECT_EQ(a.complete(), completeness::unknown);
  EXPECT_EQ(numbers("countries").unlisted, 1U);
}

TEST_F(ScatterList, AManifestThatIsNoneIsNotBelieved) {
  const auto all = list();
  (void)all("");
  const auto good = *manifest("");
  for (const auto* bad : {"", "x", "holdfast-manifest/2 1 1 0\nk", "holdfast-manifest/1 2 1 0\nk",
                          "holdfast-manifest/1 99999999 99999999 0\nk"}) {
    auto row = good;
    row.payload = bad;
    memory->put(row);
    make();
    const auto point = list();
    down = true;
    EXPECT_THROW((void)point(""), outage) << bad;
    EXPECT_EQ(numbers("countries").undecodable, 1U) << bad;
  }
  auto row = good;
  row.payload_class = "holdfast.test.country";
  memory->put(row);
  make();
  EXPECT_THROW((void)list()(""), outage);
}

TEST_F(ScatterList, ALargeListHasAManifestInChunksAndALostChunkCostsItsItems) {
  world.clear();
  for (int i = 0; i < 4000; ++i) {
    auto code = std::to_string(10000 + i);
    world[code] = {code, "n"};
  }
  const auto all = list();
  const auto live = all("");
  ASSERT_TRUE(manifest("", 2));
  EXPECT_FALSE(manifest("", 3));
  EXPECT_LT(manifest("", 0)->payload->size(), 65'536U);
  EXPECT_EQ(puts, 1);
  down = true;
  const auto whole = all("");
  EXPECT_EQ(codes_of(whole), codes_of(live));
  EXPECT_EQ(whole.complete(), completeness::yes);
  // A chunk of another version belongs to another list.
  auto chunk = *manifest("", 1);
  chunk.as_of += 1us;
  memory->put(chunk);
  const auto torn = all("");
  EXPECT_EQ(torn.size(), 4000U - manifest_chunk_keys);
  EXPECT_EQ(torn.missing(), manifest_chunk_keys);
  EXPECT_EQ(torn.complete(), completeness::no);
}

TEST_F(ScatterList, TheNewestListWinsWhateverEndsFirst) {
  const auto all = list();
  (void)all("");
  // An older call that ends later: its rows have an older as_of.
  auto old = *manifest("");
  old.as_of -= 1s;
  old.payload = write_manifest(0, 1, 0, {});
  memory->put(old);
  down = true;
  EXPECT_EQ(all("").size(), 4U);
}

TEST_F(ScatterList, NoListGoesBackInTime) {
  const auto all = list();
  (void)all("");
  const auto old = *manifest("");
  clock->advance(1s);
  world.erase("DE");
  (void)all("");
  memory->erase(place(old), old.key, manifest("")->as_of);
  memory->put(old);
  down = true;
  EXPECT_THROW((void)all(""), outage) << "the stored list is older than the one already served";
}

TEST_F(ScatterList, AListFromTheFutureDoesNotFreezeItsKey) {
  const auto all = list();
  (void)all("");
  auto ahead = memory->find_all("countries#list", 10).entries.at(0);
  ahead.as_of += 24h;  // of a machine with a wrong clock
  ahead.expire_on += 24h;
  memory->put(ahead);
  down = true;
  EXPECT_EQ(all("").size(), 4U);
  down = false;
  clock->advance(1s);
  world.erase("DE");
  EXPECT_EQ(all("").size(), 3U);
  down = true;
  EXPECT_EQ(all("").size(), 3U);
}

TEST_F(ScatterList, PoliciesTenantsAndInvalidation) {
  std::string tenant = "acme";
  make({.caller = {.tenant = [&] { return tenant; }}});
  const auto all = list({.domain = "country",
                         .expiry = 24h,
                         .classify = failure_rules{}.invalidate<gone>(),
                         .scatter = scatter_options{.partial = partial::fail}});
  (void)all("");
  down = true;
  EXPECT_EQ(all("").size(), 4U);
  tenant = "other";
  EXPECT_THROW((void)all(""), outage);
  tenant = "acme";
  const auto fr = memory->find(place("country", "acme"), key::failover({.name = "country"}, "FR"));
  ASSERT_TRUE(fr);
  memory->erase(place("country", "acme"), fr->key, fr->as_of);
  EXPECT_THROW((void)all(""), outage) << "not whole, and the policy says fail";
}

TEST_F(ScatterList, AListThatIsGoneIsGone) {
  bool is_gone = false;
  const auto all = current_engine().protect_list(
      "gone-list",
      {.domain = "country", .scope = scope::shared, .classify = failure_rules{}.invalidate<gone>()},
      [&]() -> std::vector<country> {
        if (is_gone) throw gone();
        if (down) throw outage("down");
        return {world["FR"]};
      },
      [](const country& c) { return std::tuple(c.code); });
  (void)all();
  is_gone = true;
  EXPECT_THROW((void)all(), gone);
  is_gone = false;
  down = true;
  EXPECT_THROW((void)all(), outage);
  EXPECT_TRUE(row("FR", "country")->payload) << "the list is gone, not the country";
}

TEST_F(ScatterList, NamesAreChecked) {
  const auto refusal = [&](const std::string& name, const std::string& domain) -> std::string {
    try {
      (void)current_engine().protect_list(
          name, {.domain = domain}, [](int) { return std::vector<country>(); }, &country::code);
    } catch (const error& e) {
      return std::string(e.message());
    }
    return "accepted";
  };
  EXPECT_NE(refusal(std::string(46, 'n'), "d").find("has 51 characters"), std::string::npos);
  EXPECT_EQ(refusal(std::string(45, 'n'), "d"), "accepted");
  EXPECT_NE(refusal("other", "").find("accepted"), std::string::npos);
  EXPECT_NE(refusal("x", "other#list").find("among the manifests of 'other'"), std::string::npos);
  (void)protect("y#list");
  EXPECT_NE(refusal("y", "z").find("among the rows of 'y#list'"), std::string::npos);
  // A list without arguments must say for whom it is.
  EXPECT_THROW((void)current_engine().protect_list(
                   "no-scope", {}, [] { return std::vector<country>(); }, &country::code),
               error);
  // Rows of other callers must not be served.
  make({.caller = {.vary = [](std::string_view) { return std::optional<std::string>("u"); }}});
  EXPECT_THROW(
      (void)list({.vary = {"user"}, .scatter = scatter_options{.unlisted = unlisted::serve}}),
      error);
}

TEST(Manifest, WhatIsWrittenIsRead) {
  const std::vector<std::string_view> keys{"a", "b", "c"};
  EXPECT_EQ(parse_manifest(write_manifest(3, 1, 0, keys)),
            (manifest_chunk{.members = 3, .chunks = 1, .index = 0, .keys = {"a", "b", "c"}}));
  EXPECT_EQ(parse_manifest(write_manifest(9, 3, 2, keys))->index, 2U);
  EXPECT_EQ(parse_manifest(write_manifest(0, 1, 0, {})), (manifest_chunk{}));
}

TEST(Manifest, WhatContradictsItselfIsRefused) {
  for (const auto* bad :
       {"", "holdfast-manifest/1", "holdfast-manifest/1 1 1", "holdfast-manifest/1 -1 1 0",
        "holdfast-manifest/1 1 1 0", "holdfast-manifest/1 1 1 1\na", "holdfast-manifest/1 1 0 0\na",
        "holdfast-manifest/1 1 1 0\na\nb", "holdfast-manifest/1 2 1 0\na",
        "holdfast-manifest/1 2 1 0\n\na", "holdfast-manifest/1 2 2 0",
        "holdfast-manifest/1 1 2 0\na", "holdfast-manifest/1 1 1 0 \na",
        "holdfast-manifest/1 99999999999999999999 1 0\na"}) {
    EXPECT_FALSE(parse_manifest(bad)) << bad;
  }
}

}  // namespace
}  // namespace holdfast::test
