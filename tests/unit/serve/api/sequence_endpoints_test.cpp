// /v1/sequences, on counters in memory and on SQLite.

#include <holdfast/error.hpp>

#include "serve/api/counter_rates.hpp"
#include "serve/api/json_reader.hpp"
#include "serve/api/sequence_cache.hpp"
#include "support/api_resources.hpp"
#include "support/temporary_directory.hpp"

#include <gtest/gtest.h>

#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace holdfast;
using namespace holdfast::detail::serve;
using namespace std::chrono_literals;
using test::is_problem;

struct SequenceEndpoints : ::testing::TestWithParam<const char*> {
  test::temporary_directory directory{"api_sequences"};
  test::api_resources api{};

  SequenceEndpoints() {
    const bool is_memory = std::string_view(GetParam()) == "memory";
    url = is_memory ? "memory:" : "sqlite:" + (directory.path() / "ids.db").string();
    api.add_sequences(url, {.blocks = fixed_blocks{.size = 20}, .store = {.create_schema = true}});
  }
  client_response post(std::string_view path, std::string_view body = {},
                       std::string_view bearer = "admin") {
    return api.send("POST", path, bearer, body);
  }
  json_object get(std::string_view path) {
    const auto answer = api.send("GET", path, "viewer");
    EXPECT_EQ(answer.status, 200) << answer.body;
    return json_object::parse(answer.body);
  }

  std::string url;
};

INSTANTIATE_TEST_SUITE_P(Stores, SequenceEndpoints, ::testing::Values("memory", "sqlite"),
                         [](const auto& test) { return std::string(test.param); });

constexpr auto next = "/v1/sequences/order.id/next";

TEST_P(SequenceEndpoints, DrawsIds) {
  EXPECT_EQ(post(next).body, R"({"first":"1","step":"1","count":1,"ids":["1"]})");
  EXPECT_EQ(post(next, R"({"count":3})").body,
            R"({"first":"2","step":"1","count":3,"ids":["2","3","4"]})");
  EXPECT_EQ(post(next, "{}").body, R"({"first":"5","step":"1","count":1,"ids":["5"]})");
  EXPECT_EQ(post(next, R"({"count":"1"})").body,
            R"({"first":"6","step":"1","count":1,"ids":["6"]})");
}

TEST_P(SequenceEndpoints, ListsIdsUpToAThousand) {
  auto thousand = json_object::parse(post(next, R"({"count":1000})").body);
  EXPECT_EQ(thousand.texts("ids")->size(), 1000U);
  auto more = json_object::parse(post(next, R"({"count":1001})").body);
  EXPECT_FALSE(more.has("ids"));
  EXPECT_EQ(more.integer("count"), 1001);
  auto million = json_object::parse(post(next, R"({"count":1000000})").body);
  EXPECT_EQ(million.integer("count"), 1'000'000);
  EXPECT_GT(million.integer("first").value_or(0), more.integer("first").value_or(0) + 1000);
}

TEST_P(SequenceEndpoints, BadCounts) {
  for (const auto* body :
       {R"({"count":0})", R"({"count":-1})", R"({"count":1000001})", R"({"count":1.5})",
        R"({"count":"x"})", R"({"count":99999999999999999999})", R"({"cuont":1})", "[]", "{", "1",
        R"({"count":1,"count":2})"}) {
    const auto answer = post(next, body);
    EXPECT_EQ(answer.status, 400) << body << answer.body;
    EXPECT_NE(answer.body.find("\"detail\":\""), std::string::npos) << body;
  }
  EXPECT_TRUE(is_problem(post(next, R"({"count":0})"), 400, "1 to 1000000"));
  EXPECT_TRUE(is_problem(post("/v1/sequences/a%20b/next"), 400, "name"));
  EXPECT_TRUE(is_problem(post("/v1/sequences/" + std::string(129, 'x') + "/next"), 400, "128"));
  EXPECT_EQ(api.send("GET", next, "admin").status, 405);
}

TEST_P(SequenceEndpoints, NoIdTwiceForManyCallers) {
  constexpr int callers = 8;
  constexpr int draws = 60;
  std::mutex mutex;
  std::set<std::string> ids;
  std::size_t count = 0;
  (void)api.server();
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < callers; ++i) {
      threads.emplace_back([&, i] {
        for (int j = 0; j < draws; ++j) {
          const auto answer = post(next, (i + j) % 3 == 0 ? R"({"count":7})" : "");
          EXPECT_EQ(answer.status, 200) << answer.body;
          auto body = json_object::parse(answer.body);
          const std::scoped_lock lock(mutex);
          const auto drawn = *body.texts("ids");
          for (const auto& id : drawn) {
            ids.insert(id);
            ++count;
          }
        }
      });
    }
  }
  EXPECT_EQ(ids.size(), count);
  EXPECT_GE(count, std::size_t{callers * draws});
}

TEST_P(SequenceEndpoints, MemoryIsAnsweredWithoutAWorker) {
  ASSERT_EQ(post(next).status, 200);  // opens the sequence, and leases 20 ids
  const auto tasks = [&] {
    const auto workers = api.server().dispatcher().counts().workers;
    return workers.ran + workers.running + workers.queued;
  };
  for (int id = 2; id <= 20; ++id)
    EXPECT_NE(post(next).body.find("\"" + std::to_string(id) + "\""), std::string::npos);
  EXPECT_EQ(tasks(), 1U);
  EXPECT_EQ(post(next).status, 200);
  EXPECT_EQ(post(next, R"({"count":2})").status, 200);
  EXPECT_GE(tasks(), 2U);
}

TEST_P(SequenceEndpoints, ShowsASequence) {
  EXPECT_TRUE(is_problem(api.send("GET", "/v1/sequences/order.id", "viewer"), 404, "no sequence"));
  ASSERT_EQ(post(next).status, 200);
  auto shown = get("/v1/sequences/order.id");
  EXPECT_EQ(shown.text("last"), "20");
  EXPECT_EQ(shown.object("counter")->text("last"), "20");
  EXPECT_EQ(shown.object("counter")->text("epoch"), "1");
  EXPECT_EQ(shown.text("start"), "1");
  EXPECT_EQ(shown.text("end"), "9223372036854775807");
  EXPECT_EQ(shown.text("remaining"), "9223372036854775787");
  EXPECT_EQ(shown.boolean("cycle"), false);
  EXPECT_NE(shown.text("definition").value_or("").find("increment=1"), std::string::npos);
  // Looking draws nothing.
  EXPECT_EQ(get("/v1/sequences/order.id").text("last"), "20");
}

TEST_P(SequenceEndpoints, ListsSequencesPageByPage) {
  for (const auto* name : {"a", "b", "c"})
    ASSERT_EQ(post("/v1/sequences/" + std::string(name) + "/next").status, 200);
  auto first = get("/v1/sequences?limit=2");
  EXPECT_EQ(first.objects("items")->size(), 2U);
  EXPECT_EQ(first.text("next"), "b");
  auto last = get("/v1/sequences?limit=2&after=b");
  const auto items = last.raw("items");
  EXPECT_EQ(items, R"([{"name":"c","counter":{"last":"20","epoch":"1"}}])");
  EXPECT_FALSE(last.text("next"));
  EXPECT_EQ(api.send("GET", "/v1/sequences?limit=0", "viewer").status, 400);
  EXPECT_EQ(api.send("GET", "/v1/sequences?limit=1001", "viewer").status, 400);
}

TEST_P(SequenceEndpoints, EnsureLeavesOutImportedIds) {
  ASSERT_EQ(post(next).status, 200);
  const auto ensured = post("/v1/sequences/order.id/ensure", R"({"id":"5000"})", "operator");
  EXPECT_EQ(ensured.body, R"({"last":"5000"})");
  // Also the lease of this server is beyond it.
  EXPECT_EQ(post(next).body, R"({"first":"5001","step":"1","count":1,"ids":["5001"]})");
  EXPECT_TRUE(is_problem(post("/v1/sequences/order.id/ensure", "{}"), 400, "\"path\":\"id\""));
  EXPECT_TRUE(is_problem(post("/v1/sequences/order.id/ensure"), 400, "JSON"));
  EXPECT_EQ(post("/v1/sequences/order.id/ensure", R"({"id":1})", "app").status, 403);
  EXPECT_EQ(api.audit.lines(),
            (std::vector<std::string>{"sequence.ensure order.id 1 done operator"}));
}

TEST_P(SequenceEndpoints, ResetNeedsTheStateOfTheCounter) {
  constexpr auto reset = "/v1/sequences/order.id/reset";
  const auto body = R"({"last":"20","epoch":"1","next":"7"})";
  EXPECT_TRUE(is_problem(post(reset, body), 404, "no sequence"));
  ASSERT_EQ(post(next).status, 200);
  EXPECT_TRUE(
      is_problem(post(reset, R"({"last":"19","epoch":"1","next":"7"})"), 409, "not as expected"));
  EXPECT_TRUE(is_problem(post(reset, R"({"epoch":"1","next":"7"})"), 400, "\"path\":\"last\""));
  EXPECT_TRUE(is_problem(post(reset, R"({"last":"20","next":"7"})"), 400, "\"path\":\"epoch\""));
  EXPECT_TRUE(is_problem(post(reset, R"({"last":"20","epoch":"1"})"), 400, "\"path\":\"next\""));
  EXPECT_TRUE(is_problem(post(reset, R"({"last":-1,"epoch":"1","next":"7"})"), 400, "last"));
  EXPECT_EQ(post(reset, R"({"last":"20","epoch":"1","next":"-4"})").status, 400);
  EXPECT_EQ(post(reset, body, "operator").status, 403);
  EXPECT_EQ(post(reset, body).body, R"({"next":"7"})");
  EXPECT_EQ(post(next).body, R"({"first":"7","step":"1","count":1,"ids":["7"]})");
  const auto lines = api.audit.lines();
  EXPECT_EQ(lines.front(), "sequence.reset order.id 0 failed: not_found admin");
  EXPECT_EQ(lines[1], "sequence.reset order.id 0 refused: duplicate admin");
  EXPECT_EQ(lines.back(), "sequence.reset order.id 1 done admin");
}

TEST_P(SequenceEndpoints, UsesTheDefinitionOfTheCounter) {
  {
    auto ids = api.shared.sequences->database.sequence(
        "even", {.blocks = fixed_blocks{.size = 2}, .start = 10, .increment = 2, .max = 20});
    EXPECT_EQ(ids.next(), 10);
  }
  // A block of the server has 20 ids, and the sequence has six.
  auto answer = post("/v1/sequences/even/next");
  EXPECT_EQ(json_object::parse(answer.body).text("step"), "2");
  for (int i = 0; i < 4 && answer.status == 200; ++i) answer = post("/v1/sequences/even/next");
  EXPECT_TRUE(is_problem(answer, 422, "exhausted")) << answer.body;
  auto shown = get("/v1/sequences/even");
  EXPECT_EQ(shown.text("last"), "20");
  EXPECT_EQ(shown.text("increment"), "2");
  EXPECT_EQ(shown.text("end"), "20");
  EXPECT_EQ(shown.text("remaining"), "0");
}

TEST_P(SequenceEndpoints, FollowsANewDefinition) {
  ASSERT_EQ(post(next).status, 200);
  auto other = api.shared.sequences->database.sequence("order.id", {.increment = 10});
  other.redefine(*api.shared.sequences->blocks->definition("order.id"));
  // The lease of the old definition is used up first.
  for (int i = 2; i <= 20; ++i) ASSERT_EQ(post(next).status, 200);
  const auto answer = post(next);
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(json_object::parse(answer.body).text("step"), "10");
}

TEST_P(SequenceEndpoints, RolesScopesAndTenants) {
  EXPECT_EQ(post(next, {}, "app sequence:order.id:next").status, 200);
  EXPECT_EQ(post(next, {}, "app sequence:other:next").status, 403);
  EXPECT_EQ(post(next, {}, "viewer").status, 403);
  EXPECT_EQ(post(next, {}, "app sequence:order.id:next @acme").status, 200);
  EXPECT_TRUE(is_problem(post(next, {}, "app @acme"), 403, "sequence:NAME:next"));
  EXPECT_EQ(api.send("GET", "/v1/sequences", "viewer @acme").status, 403);
  EXPECT_EQ(api.send("GET", "/v1/sequences/order.id", "viewer @acme").status, 403);
}

TEST(SequenceEndpointsWithout, AreNotFound) {
  test::api_resources api;
  for (const auto& answer : {api.send("POST", next), api.send("GET", "/v1/sequences"),
                             api.send("GET", "/v1/sequences/a")})
    EXPECT_TRUE(is_problem(answer, 404, "no database for sequences"));
}

TEST(SequenceCache, ClosesTheLeastRecentlyUsed) {
  test::api_resources api;
  api.add_sequences("memory:");
  sequence_cache cache(api.shared, 2);
  const auto a = cache.open("a");
  const auto b = cache.open("b");
  EXPECT_EQ(cache.open("a"), a);  // b is now the least recently used
  EXPECT_EQ(a->ids.next(), 1);
  EXPECT_NE(cache.open("c"), nullptr);
  EXPECT_EQ(cache.size(), 2U);
  EXPECT_FALSE(cache.find("b"));
  EXPECT_TRUE(b->closed);
  EXPECT_EQ(cache.find("a"), a);
  EXPECT_FALSE(a->closed);
  EXPECT_THROW((void)b->ids.next(), error);
  cache.close("a");
  EXPECT_TRUE(a->closed);
  EXPECT_FALSE(cache.find("a"));
  cache.close("never opened");
}

TEST(SequenceCache, ManyThreadsAndFewPlaces) {
  test::api_resources api;
  api.add_sequences("memory:");
  sequence_cache cache(api.shared, 3);
  std::mutex mutex;
  std::set<std::pair<int, std::int64_t>> ids;
  std::size_t drawn = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        for (int j = 0; j < 300; ++j) {
          const int name = (i + j) % 7;
          const auto sequence = cache.open("s" + std::to_string(name));
          try {
            const auto id = sequence->ids.next();
            const std::scoped_lock lock(mutex);
            ids.emplace(name, id);
            ++drawn;
          } catch (const error& e) {
            // Closed by another thread meanwhile.
            EXPECT_TRUE(sequence->closed) << e.what();
          }
        }
      });
    }
  }
  EXPECT_EQ(ids.size(), drawn);
  EXPECT_LE(cache.size(), 3U);
}

TEST(CounterRates, NeedASecond) {
  counter_rates rates(2);
  const std::chrono::steady_clock::time_point begin(1h);
  EXPECT_FALSE(rates.record("a", 100, begin));
  EXPECT_FALSE(rates.record("a", 120, begin + 500ms));
  EXPECT_EQ(rates.record("a", 140, begin + 2s), 20.0);
  EXPECT_EQ(rates.record("a", 999, begin + 2s + 1ms), 20.0);
  EXPECT_FALSE(rates.record("a", 10, begin + 3s));  // reset
  EXPECT_EQ(rates.record("a", 10, begin + 5s), 0.0);
  // Others push it out.
  EXPECT_FALSE(rates.record("b", 1, begin));
  EXPECT_FALSE(rates.record("c", 1, begin));
  EXPECT_FALSE(rates.record("a", 10, begin + 9s));
}

}  // namespace
