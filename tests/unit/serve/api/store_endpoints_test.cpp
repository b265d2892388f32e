// /v1/stores, /v1/tenants and /v1/search, on stores in memory and on SQLite.

#include <holdfast/error.hpp>
#include <holdfast/outbox.hpp>
#include <holdfast/store/compose.hpp>

#include "serve/api/json_reader.hpp"
#include "support/api_resources.hpp"
#include "support/eventually.hpp"
#include "support/faulty_store.hpp"
#include "support/gate.hpp"
#include "support/temporary_directory.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace holdfast;
using namespace holdfast::detail::serve;
using namespace std::chrono_literals;
using test::is_problem;

struct StoreEndpoints : ::testing::TestWithParam<const char*> {
  test::temporary_directory directory{"api_stores"};
  test::api_resources api{};

  StoreEndpoints() { add("main"); }
  void add(const std::string& name, store_options options = {}) {
    const bool is_memory = std::string_view(GetParam()) == "memory";
    options.create_schema = true;
    api.add_store(name,
                  is_memory ? "memory:" : "sqlite:" + (directory.path() / (name + ".db")).string(),
                  std::move(options));
  }
  store& entries(std::size_t index = 0) { return *api.shared.stores[index].store; }
  void put(const std::string& name, const std::string& key,
           std::optional<std::string> payload = "12345", std::chrono::microseconds lifetime = 1h,
           const std::string& realm = {}, std::size_t index = 0) {
    const auto now = api.clock->now();
    entries(index).put({.name = name,
                        .key = key,
                        .as_of = now,
                        .expire_on = now + lifetime,
                        .payload = payload,
                        .payload_class = payload ? "c" : "",
                        .realm = realm});
  }
  json_object get(std::string_view path, std::string_view bearer = "viewer") {
    const auto answer = api.send("GET", path, bearer);
    EXPECT_EQ(answer.status, 200) << answer.body;
    return json_object::parse(answer.status == 200 ? answer.body : "{}");
  }
  /// The members `name` of the items.
  static std::vector<std::string> texts_of(json_object list, const char* member) {
    std::vector<std::string> texts;
    auto items = *list.objects("items");
    for (auto& item : items) texts.push_back(item.text(member).value_or(""));
    return texts;
  }
};

INSTANTIATE_TEST_SUITE_P(Stores, StoreEndpoints, ::testing::Values("memory", "sqlite"),
                         [](const auto& test) { return std::string(test.param); });

using texts = std::vector<std::string>;

TEST_P(StoreEndpoints, ShowsHealthOptionsAndFindings) {
  add("second");
  EXPECT_EQ(texts_of(get("/v1/stores"), "name"), (texts{"main", "second"}));
  auto shown = get("/v1/stores/main");
  auto health = shown.object("health");
  ASSERT_TRUE(health);
  EXPECT_EQ(health->boolean("available"), true);
  EXPECT_FALSE(health->has("problem"));  // may have the message of a backend
  EXPECT_TRUE(shown.object("findings"));
  EXPECT_EQ(shown.object("options")->integer("maxSkewMilliseconds"), 300'000);
  EXPECT_TRUE(get("/v1/stores/main", "operator").object("health")->has("problem"));
  EXPECT_TRUE(is_problem(api.send("GET", "/v1/stores/x", "viewer"), 404, "main, second"));
  EXPECT_EQ(api.send("GET", "/v1/stores", "app").status, 403);
}

TEST_P(StoreEndpoints, CountsTheEntriesOfEachName) {
  for (int i = 0; i < 250; ++i) put("many", "k" + std::to_string(i));
  put("few", "a", "1234567", 10min);
  api.clock->advance(1min);
  put("few", "b", std::nullopt, 2h);
  put("few", "c", "123", 1s);
  api.clock->advance(1min);
  auto list = get("/v1/stores/main/names");
  auto items = *list.objects("items");
  ASSERT_EQ(items.size(), 2U);
  EXPECT_EQ(items[0].text("name"), "few");
  EXPECT_EQ(items[0].integer("entries"), 3);
  EXPECT_EQ(items[0].integer("tombstones"), 1);
  EXPECT_EQ(items[0].integer("expired"), 1);
  EXPECT_EQ(items[0].integer("bytes"), 10);
  EXPECT_EQ(items[0].text("oldest"), "2026-01-01T00:00:00.000000Z");
  EXPECT_EQ(items[0].text("newest"), "2026-01-01T00:01:00.000000Z");
  EXPECT_EQ(items[0].text("nextExpiry"), "2026-01-01T00:10:00.000000Z");
  EXPECT_EQ(items[0].boolean("atLeast"), false);
  EXPECT_EQ(items[1].text("name"), "many");
  EXPECT_EQ(items[1].integer("entries"), 250);
  EXPECT_EQ(list.boolean("atLeast"), false);
  EXPECT_FALSE(list.text("next"));
}

TEST_P(StoreEndpoints, NamesComePageByPage) {
  for (const auto* name : {"b", "a", "c", "d"}) put(name, "k");
  auto first = get("/v1/stores/main/names?limit=3");
  EXPECT_EQ(first.text("next"), "c");
  EXPECT_EQ(first.boolean("atLeast"), true);
  EXPECT_EQ(texts_of(std::move(first), "name"), (texts{"a", "b", "c"}));
  auto last = get("/v1/stores/main/names?limit=3&after=c");
  EXPECT_FALSE(last.text("next"));
  EXPECT_EQ(texts_of(std::move(last), "name"), (texts{"d"}));
  EXPECT_EQ(texts_of(get("/v1/stores/main/names?after=d"), "name"), texts{});
  EXPECT_EQ(api.send("GET", "/v1/stores/main/names?limit=0", "viewer").status, 400);
}

TEST_P(StoreEndpoints, ALargeNameIsALowerBoundAndHidesNoOther) {
  std::vector<entry> rows;
  const auto now = api.clock->now();
  const auto add_rows = [&](const std::string& name, int count) {
    for (int i = 0; i < count; ++i)
      rows.push_back({.name = name,
                      .key = std::to_string(i),
                      .as_of = now,
                      .expire_on = now + 1h,
                      .payload = "x",
                      .payload_class = "c"});
  };
  add_rows("large", 9'000);
  add_rows("small", 10);
  entries().put(rows);
  auto items = *get("/v1/stores/main/names").objects("items");
  ASSERT_EQ(items.size(), 2U);
  EXPECT_EQ(items[0].text("name"), "large");
  EXPECT_EQ(items[0].boolean("atLeast"), true);
  EXPECT_LE(items[0].integer("entries").value_or(0), 5'000);
  EXPECT_EQ(items[1].integer("entries"), 10);
}

TEST_P(StoreEndpoints, KeysWithoutPayloads) {
  put("n", "a", "secret");
  put("n", "b", std::nullopt);
  put("n", "c/d", "x", 1s);
  api.clock->advance(2s);
  const auto answer = api.send("GET", "/v1/stores/main/n", "viewer");
  EXPECT_EQ(answer.body.find("secret"), std::string::npos);
  auto list = json_object::parse(answer.body);
  auto items = *list.objects("items");
  ASSERT_EQ(items.size(), 3U);
  EXPECT_EQ(items[0].integer("bytes"), 6);
  EXPECT_EQ(items[0].text("class"), "c");
  EXPECT_EQ(items[0].text("asOf"), "2026-01-01T00:00:00.000000Z");
  EXPECT_EQ(items[1].boolean("tombstone"), true);
  EXPECT_EQ(items[2].text("key"), "c/d");
  EXPECT_EQ(items[2].boolean("expired"), true);
  auto page = get("/v1/stores/main/n?limit=1&after=a", "app store:main:read");
  EXPECT_EQ(page.text("next"), "b");
  EXPECT_EQ(texts_of(std::move(page), "key"), (texts{"b"}));
  EXPECT_EQ(texts_of(get("/v1/stores/main/bg?encoding=base64url"), "key").size(), 3U);
  EXPECT_EQ(texts_of(get("/v1/stores/main/unknown"), "key"), texts{});
  EXPECT_EQ(api.send("GET", "/v1/stores/main/n", "app store:x:read").status, 403);
  EXPECT_EQ(api.send("GET", "/v1/stores/main/n?limit=1001", "viewer").status, 400);
}

TEST_P(StoreEndpoints, DoctorAndClean) {
  EXPECT_EQ(get("/v1/stores/main/doctor").boolean("usable"), true);
  for (int i = 0; i < 700; ++i) put("n", std::to_string(i), "x", 1s);
  put("n", "stays");
  api.clock->advance(2s);
  EXPECT_EQ(api.send("POST", "/v1/stores/main/clean", "viewer").status, 403);
  EXPECT_EQ(api.send("POST", "/v1/stores/main/clean", "operator", R"({"all":1})").status, 400);
  const auto cleaned = api.send("POST", "/v1/stores/main/clean", "operator", "{}");
  EXPECT_EQ(cleaned.body, R"({"removed":700,"more":false})");
  EXPECT_EQ(entries().count("n"), 1U);
  EXPECT_EQ(api.audit.lines(), (texts{"store.clean main 700 done operator"}));
}

TEST_P(StoreEndpoints, TenantsAreSeparate) {
  add("shared", {.realms = {{"acme", "ACME_"}, {"beta", "BETA_"}}});
  put("n", "k1", "x", 1h, "acme", 1);
  put("n", "k2", "xy", 1h, "acme", 1);
  put("other", "k3", "x", 1h, "beta", 1);
  EXPECT_EQ(texts_of(get("/v1/tenants"), "tenant"), (texts{"acme", "beta"}));
  EXPECT_EQ(texts_of(get("/v1/tenants?limit=1&after=acme"), "tenant"), (texts{"beta"}));
  EXPECT_EQ(get("/v1/tenants?limit=1").text("next"), "acme");
  EXPECT_EQ(texts_of(get("/v1/tenants", "viewer @beta"), "tenant"), (texts{"beta"}));
  auto acme = get("/v1/tenants/acme");
  auto stores = *acme.objects("stores");
  ASSERT_EQ(stores.size(), 1U);
  EXPECT_EQ(stores[0].text("store"), "shared");
  EXPECT_EQ(stores[0].integer("entries"), 2);
  EXPECT_EQ(stores[0].integer("bytes"), 3);
  EXPECT_EQ(stores[0].objects("names")->front().text("name"), "n");
  EXPECT_EQ(get("/v1/tenants/acme", "viewer @acme").text("tenant"), "acme");
  EXPECT_EQ(api.send("GET", "/v1/tenants/acme", "viewer @beta").status, 404);
  EXPECT_EQ(api.send("GET", "/v1/tenants/gamma", "viewer").status, 404);
  // A tenant sees the stores that it is in, and there its own names and keys.
  EXPECT_EQ(texts_of(get("/v1/stores", "viewer @acme"), "name"), (texts{"shared"}));
  EXPECT_EQ(api.send("GET", "/v1/stores/main", "viewer @acme").status, 403);
  EXPECT_EQ(texts_of(get("/v1/stores/shared/names", "viewer @acme"), "name"), (texts{"n"}));
  EXPECT_EQ(texts_of(get("/v1/stores/shared/names?tenant=beta"), "name"), (texts{"other"}));
  EXPECT_EQ(texts_of(get("/v1/stores/shared/other", "viewer @acme"), "key"), texts{});
  EXPECT_EQ(api.send("GET", "/v1/stores/shared/names", "viewer").status, 400);
  EXPECT_EQ(api.send("GET", "/v1/stores/shared/doctor", "viewer @acme").status, 403);
  EXPECT_EQ(api.send("POST", "/v1/stores/shared/clean", "operator @acme").status, 403);
}

TEST_P(StoreEndpoints, SearchFindsKeysNamesSequencesAndEvents) {
  add("shared", {.realms = {{"acme", "ACME_"}, {"beta", "BETA_"}}});
  put("country", "FR");
  put("city", "FR", std::nullopt);
  put("country", "FR", "x", 1h, "acme", 1);
  put("pages", "/a/b?c=1");
  api.add_sequences("memory:");
  for (const auto* name : {"FR", "FR.id", "GR"})
    (void)api.shared.sequences->blocks->ensure_at_least(name, 1);
  const auto db = open("memory:");
  api.shared.outboxes.push_back(
      {.name = "orders", .url = "memory:", .database = db, .outbox = db.outbox(), .options = {}});
  const std::string id = "0197b5a0-1111-7222-8333-444455556666";
  (void)api.shared.outboxes.front().outbox.publish(
      {.type = "t", .key = "k", .payload = "p", .id = id});
  auto all = get("/v1/search?q=FR");
  EXPECT_EQ(all.boolean("complete"), true);
  EXPECT_EQ(texts_of(std::move(all), "kind"),
            (texts{"sequence", "sequence", "entry", "entry", "entry"}));
  EXPECT_EQ(texts_of(get("/v1/search?q=" + id), "outbox"), (texts{"orders"}));
  EXPECT_EQ(texts_of(get("/v1/search?q=0197B5A0-1111-7222-8333-444455556666"), "id"), (texts{id}));
  EXPECT_EQ(texts_of(get("/v1/search?q=" + id, "viewer @acme"), "kind"), texts{});
  EXPECT_EQ(texts_of(get("/v1/search?q=FR", "viewer @acme"), "store"), (texts{"shared"}));
  EXPECT_EQ(texts_of(get("/v1/search?q=FR", "viewer @beta"), "store"), texts{});
  EXPECT_EQ(texts_of(get("/v1/search?q=countr"), "kind"), (texts{"name", "name"}));
  EXPECT_EQ(texts_of(get("/v1/search?q=https%3A%2F%2Fexample.org%2Fa%2Fb%3Fc%3D1"), "key"),
            (texts{"/a/b?c=1"}));
  EXPECT_EQ(texts_of(get("/v1/search?q=nothing"), "kind"), texts{});
  EXPECT_TRUE(is_problem(api.send("GET", "/v1/search", "viewer"), 400, "\"path\":\"q\""));
  EXPECT_EQ(api.send("GET", "/v1/search?q=" + std::string(2049, 'x'), "viewer").status, 400);
  EXPECT_EQ(texts_of(get("/v1/search?q=" + std::string(2048, 'x')), "kind"), texts{});
  EXPECT_EQ(texts_of(get("/v1/search?q=%01%27%3B--"), "kind"), texts{});
  EXPECT_EQ(api.send("GET", "/v1/search?q=FR", "app").status, 403);
}

TEST_P(StoreEndpoints, SearchStopsAtFiftyHits) {
  for (int i = 0; i < 60; ++i) put("name" + std::to_string(i), "k");
  auto hits = get("/v1/search?q=k");
  EXPECT_EQ(hits.boolean("complete"), false);
  EXPECT_EQ(hits.objects("items")->size(), 50U);
}

struct HangingStore : ::testing::Test {
  test::api_resources api{};
  std::shared_ptr<test::faulty_store> entries;

  HangingStore() {
    const auto db = open("memory:", {.clock = api.clock});
    entries = std::make_shared<test::faulty_store>(db.store());
    api.add_store("main", db, entries);
  }
};

TEST_F(HangingStore, OneQuestionAtATime) {
  test::gate gate;
  const test::open_in_the_end opened(gate);
  entries->before = [&](auto, auto) { gate.wait(); };
  (void)api.server();
  std::atomic<int> status = 0;
  std::jthread first([&] { status = api.send("GET", "/v1/stores/main/n", "viewer").status; });
  EXPECT_TRUE(test::eventually([&] { return gate.waiting() == 1; }));
  for (const auto* path : {"/v1/stores/main/n", "/v1/stores/main/names"})
    EXPECT_TRUE(is_problem(api.send("GET", path, "operator"), 503, "in a second")) << path;
  EXPECT_TRUE(
      is_problem(api.send("POST", "/v1/stores/main/clean", "operator"), 503, "in a second"));
  EXPECT_EQ(gate.waiting(), 1);
  gate.open();
  first.join();
  EXPECT_EQ(status, 200);
}

/// A store whose questions hang.
class hanging_store final : public store, public name_listing {
 public:
  explicit hanging_store(test::gate& held) : held_(held) {}
  void put(std::span<const entry>) override {}
  using store::put;
  std::optional<entry> find(place, std::string_view) override { return std::nullopt; }
  entry_page find_all(place, std::size_t, std::string_view) override { return {}; }
  bool erase(place, std::string_view, timestamp) override { return false; }
  std::size_t expire(timestamp, std::size_t) override { return 0; }
  std::uint64_t count(place) override { return 0; }
  store_health health() noexcept override {
    held_.wait();
    return {.available = true};
  }
  std::vector<std::string> names(std::string_view, std::size_t, std::string_view) override {
    held_.wait();
    return {};
  }

 private:
  test::gate& held_;
};

TEST(HangingStores, DoNotAddUp) {
  test::gate gate;
  test::api_resources api;
  const test::open_in_the_end opened(gate);
  const auto db = open("memory:", {.clock = api.clock});
  for (const auto* name : {"a", "b", "c", "d"})
    api.add_store(name, db, std::make_shared<hanging_store>(gate), {.realms = {{"acme", "A_"}}});
  api.add_store("healthy", db, db.store());
  (void)api.server();
  for (const std::string path : {"/v1/stores", "/v1/tenants", "/v1/search?q=x"}) {
    const int before = gate.waiting();
    std::jthread client;
    client_response answer;
    std::atomic<bool> answered = false;
    client = std::jthread([&] {
      answer = api.send("GET", path, "viewer");
      answered = true;
    });
    // All four are asked before one of them has answered.
    EXPECT_TRUE(test::eventually([&] { return gate.waiting() == before + 4; })) << path;
    EXPECT_TRUE(test::eventually([&] { return answered.load(); })) << path;
    client.join();
    EXPECT_EQ(answer.status, 200) << path << answer.body;
    EXPECT_EQ(gate.waiting(), before + 4) << "they still hang";
  }
  gate.open();
}

TEST_F(HangingStore, AStoreThatFailsIsNamed) {
  entries->before = [](auto, auto) {
    throw error(errc::unavailable, "host db7 refused", {.transient = true});
  };
  entries->available = false;
  EXPECT_TRUE(is_problem(api.send("GET", "/v1/stores/main/n", "viewer"), 503, "unavailable"));
  EXPECT_TRUE(is_problem(api.send("POST", "/v1/stores/main/clean", "operator"), 503, "db7"));
  EXPECT_EQ(api.audit.lines(), (texts{"store.clean main 0 failed: unavailable operator"}));
  const auto shown = api.send("GET", "/v1/stores/main", "viewer");
  EXPECT_EQ(shown.status, 200);
  EXPECT_NE(shown.body.find("\"available\":false"), std::string::npos) << shown.body;
  // A store that another program wrote need not list its names.
  EXPECT_TRUE(is_problem(api.send("GET", "/v1/stores/main/names", "viewer"), 422, "names"));
}

TEST(NameListing, IsThatOfTheBottom) {
  test::temporary_directory directory("names");
  for (const auto& url :
       {std::string("memory:"), "sqlite:" + (directory.path() / "names.db").string()}) {
    const auto db = open(url);
    const auto composed = compose(db, {.tiered = tiered_options{}}, {.create_schema = true});
    const auto now = system_clock()->now();
    for (const auto* name : {"b", "a", "\xC3\xA9", "B"})
      composed->put(
          {.name = name, .key = "k", .as_of = now, .expire_on = now + 1h, .payload = "x"});
    auto* const listing = find_name_listing(*composed);
    ASSERT_NE(listing, nullptr) << url;
    EXPECT_EQ(listing->names({}, 10), (texts{"B", "a", "b", "\xC3\xA9"})) << url;
    EXPECT_EQ(listing->names({}, 2), (texts{"B", "a"})) << url;
    EXPECT_EQ(listing->names({}, 2, "a"), (texts{"b", "\xC3\xA9"})) << url;
    EXPECT_EQ(listing->names({}, 0), texts{}) << url;
    EXPECT_EQ(listing->names({}, 2, "\xC3\xA9"), texts{}) << url;
    EXPECT_TRUE(composed->erase("a", "k", now));
    EXPECT_EQ(listing->names({}, 10), (texts{"B", "b", "\xC3\xA9"})) << url;
  }
}

}  // namespace
