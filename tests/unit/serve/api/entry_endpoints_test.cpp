// GET, PUT and DELETE of /v1/stores/{store}/{name}/{key}, on a store in memory and on SQLite.

#include <holdfast/error.hpp>

#include "serve/api/call_limit.hpp"
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
using namespace std::chrono_literals;
using detail::serve::client_response;
using test::is_problem;

using field_list = std::vector<std::pair<std::string, std::string>>;

struct EntryEndpoints : ::testing::TestWithParam<const char*> {
  test::temporary_directory directory{"api_entries"};
  test::api_resources api{};

  EntryEndpoints() {
    const bool is_memory = std::string_view(GetParam()) == "memory";
    url = is_memory ? "memory:" : "sqlite:" + (directory.path() / "entries.db").string();
    api.add_store("main", url, {.create_schema = true});
  }
  client_response get(std::string_view path, field_list fields = {},
                      std::string_view bearer = "app store:main:read") {
    return api.send("GET", path, bearer, {}, std::move(fields));
  }
  client_response put(std::string_view path, std::string_view body, field_list fields,
                      std::string_view bearer = "app store:main:write") {
    return api.send("PUT", path, bearer, body, std::move(fields), "text/plain");
  }

  std::string url;
};

INSTANTIATE_TEST_SUITE_P(Stores, EntryEndpoints, ::testing::Values("memory", "sqlite"),
                         [](const auto& test) { return std::string(test.param); });

constexpr auto path = "/v1/stores/main/country/FR";
const field_list an_hour{{"Cache-Control", "max-age=3600"}};

TEST_P(EntryEndpoints, WhatIsPutCanBeRead) {
  const auto stored = put(path, "{\"euro\":30}",
                          {{"Holdfast-As-Of", "2025-12-31T23:59:59.000001Z"},
                           {"Holdfast-Expires", "2026-01-01T05:00:00+01:00"},
                           {"Holdfast-Payload-Class", "geo.Country"}});
  EXPECT_EQ(stored.status, 204) << stored.body;
  const auto answer = get(path);
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, "{\"euro\":30}");
  EXPECT_EQ(answer.fields.find("Holdfast-Answer"), "found");
  EXPECT_EQ(answer.fields.find("Holdfast-As-Of"), "2025-12-31T23:59:59.000001Z");
  EXPECT_EQ(answer.fields.find("Holdfast-Expires"), "2026-01-01T04:00:00.000000Z");
  EXPECT_EQ(answer.fields.find("Holdfast-Payload-Class"), "geo.Country");
  EXPECT_EQ(answer.fields.find("Content-Type"), "application/octet-stream");
  EXPECT_EQ(answer.fields.find("ETag"), stored.fields.find("ETag"));
  const auto head = api.send("HEAD", path, "app store:main:read");
  EXPECT_EQ(head.status, 200);
  EXPECT_TRUE(head.body.empty());
  EXPECT_EQ(head.fields.find("ETag"), answer.fields.find("ETag"));
}

TEST_P(EntryEndpoints, AsOfIsNowAndMaxAgeCountsFromIt) {
  ASSERT_EQ(put(path, "", an_hour).status, 204);
  const auto answer = get(path);
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, "");
  EXPECT_EQ(answer.fields.find("Holdfast-As-Of"), "2026-01-01T00:00:00.000000Z");
  EXPECT_EQ(answer.fields.find("Holdfast-Expires"), "2026-01-01T01:00:00.000000Z");
  api.clock->advance(1h);
  EXPECT_EQ(get(path).status, 200);
  api.clock->advance(1us);
  const auto expired = get(path);
  EXPECT_TRUE(is_problem(expired, 404, "has expired"));
  EXPECT_EQ(expired.fields.find("Holdfast-Answer"), "expired");
}

TEST_P(EntryEndpoints, ConditionalReads) {
  ASSERT_EQ(put(path, "x", an_hour).status, 204);
  const std::string tag(get(path).fields.find("ETag").value_or(""));
  ASSERT_FALSE(tag.empty());
  const auto unchanged = get(path, {{"If-None-Match", "\"other\", " + tag}});
  EXPECT_EQ(unchanged.status, 304);
  EXPECT_EQ(unchanged.body, "");
  EXPECT_EQ(unchanged.fields.find("ETag"), tag);
  EXPECT_EQ(get(path, {{"If-None-Match", "\"other\""}}).status, 200);
  EXPECT_EQ(get(path, {{"If-Match", "\"other\""}}).status, 412);
  api.clock->advance(1s);
  ASSERT_EQ(put(path, "y", an_hour).status, 204);
  EXPECT_EQ(get(path, {{"If-None-Match", tag}}).body, "y");
}

TEST_P(EntryEndpoints, AnOlderVersionIsAConflict) {
  const auto at = [](const char* time) {
    return field_list{{"Holdfast-As-Of", time}, {"Holdfast-Expires", "2026-02-01T00:00:00Z"}};
  };
  ASSERT_EQ(put(path, "new", at("2026-01-01T00:00:00.000002Z")).status, 204);
  const auto older = put(path, "old", at("2026-01-01T00:00:00.000001Z"));
  EXPECT_TRUE(is_problem(older, 409, "urn:holdfast:problem:older"));
  EXPECT_EQ(older.fields.find("Holdfast-As-Of"), "2026-01-01T00:00:00.000002Z");
  EXPECT_EQ(get(path).body, "new");
  // Of equal versions the later arrival is kept.
  EXPECT_EQ(put(path, "same", at("2026-01-01T00:00:00.000002Z")).status, 204);
  EXPECT_EQ(get(path).body, "same");
  EXPECT_EQ(api.send("DELETE", path, "app store:main:write", {}, at("2025-12-31T00:00:00Z")).status,
            409);
  EXPECT_EQ(get(path).body, "same");
}

TEST_P(EntryEndpoints, ADeletionIsATombstone) {
  EXPECT_EQ(get(path).fields.find("Holdfast-Answer"), "missing");
  ASSERT_EQ(put(path, "x", an_hour).status, 204);
  api.clock->advance(1s);
  ASSERT_EQ(api.send("DELETE", path, "app store:main:write").status, 204);
  const auto answer = get(path);
  EXPECT_TRUE(is_problem(answer, 404, "deleted"));
  EXPECT_EQ(answer.fields.find("Holdfast-Answer"), "tombstone");
  EXPECT_EQ(answer.fields.find("Holdfast-Expires"), "2026-01-02T00:00:01.000000Z");
  // A call that started before the deletion must not bring the entry back.
  EXPECT_EQ(put(path, "x",
                {{"Holdfast-As-Of", "2026-01-01T00:00:00.5Z"}, {"Cache-Control", "max-age=60"}})
                .status,
            409);
  EXPECT_EQ(put(path, "y", an_hour).status, 204);
  EXPECT_EQ(get(path).body, "y");
  EXPECT_EQ(api.audit.lines(),
            (std::vector<std::string>{"store.delete main/country/FR 1 done app"}));
}

TEST_P(EntryEndpoints, NewestOfManyWritersWins) {
  constexpr int writers = 8;
  constexpr int rounds = 25;
  std::atomic<int> stored = 0;
  std::atomic<int> older = 0;
  (void)api.server();
  std::vector<std::jthread> threads;
  for (int writer = 0; writer < writers; ++writer) {
    threads.emplace_back([&, writer] {
      for (int i = 0; i < rounds; ++i) {
        // Each writer puts ever older versions, and no two are equal.
        const int micros = 500'000 - (i * writers + writer) * 10;
        const auto answer =
            put(path, std::to_string(micros),
                {{"Holdfast-As-Of", "2026-01-01T00:00:00." + std::to_string(micros) + "Z"},
                 {"Cache-Control", "max-age=60"}});
        if (answer.status == 204) ++stored;
        if (answer.status == 409) ++older;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(stored + older, writers * rounds);
  // Only versions that are newer than all before are stored. Of each writer that is at most the
  // first one, since its later versions are older than the first.
  EXPECT_GE(stored, 1);
  EXPECT_LE(stored, writers);
  EXPECT_EQ(get(path).body, "500000");
}

TEST_P(EntryEndpoints, KeysOfAnyText) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"/v1/stores/main/n/a%20b%3Fc", "a b?c"},
      {"/v1/stores/main/n/%C3%A9%E2%82%AC", "\xC3\xA9\xE2\x82\xAC"},
      {"/v1/stores/main/n/L2EvYg?encoding=base64url", "/a/b"},
      {"/v1/stores/main/n/names", "names"}};
  for (const auto& [target, key] : cases) {
    const bool encoded = target.find('?') != std::string::npos;
    const auto name_path = encoded ? "/v1/stores/main/bg/L2EvYg?encoding=base64url" : target;
    ASSERT_EQ(put(name_path, key, an_hour).status, 204) << target;
    EXPECT_EQ(get(name_path).body, key);
    const auto row = api.shared.stores.front().store->find("n", key);
    ASSERT_TRUE(row) << key;
    EXPECT_EQ(row->payload, key);
  }
}

TEST_P(EntryEndpoints, NamesAndKeysAreLimited) {
  const auto key_of = [](std::size_t length) {
    return "/v1/stores/main/n/" + std::string(length, 'k');
  };
  EXPECT_EQ(put(key_of(256), "x", an_hour).status, 204);
  EXPECT_TRUE(is_problem(put(key_of(257), "x", an_hour), 400, "at most 256"));
  EXPECT_TRUE(is_problem(get(key_of(257)), 400, "\"path\":\"key\""));
  EXPECT_TRUE(is_problem(get("/v1/stores/main/" + std::string(51, 'n') + "/k"), 400, "at most 50"));
  EXPECT_EQ(get("/v1/stores/main/n/%FF").status, 400);
  EXPECT_EQ(get("/v1/stores/main/n/%00").status, 400);
  EXPECT_EQ(get("/v1/stores/main/n/a%2Fb").status, 400);
  EXPECT_TRUE(is_problem(get("/v1/stores/main/bg/AA?encoding=base64url"), 400, "NUL"));
  EXPECT_TRUE(is_problem(get("/v1/stores/main/bg/_w?encoding=base64url"), 400, "UTF-8"));
  EXPECT_TRUE(is_problem(get("/v1/stores/main/bg/a?encoding=base64url"), 400, "base64url"));
  EXPECT_TRUE(is_problem(get("/v1/stores/main/bg/YQ==?encoding=base64url"), 400, "base64url"));
  EXPECT_TRUE(is_problem(get("/v1/stores/main/bg/YQ?encoding=hex"), 400, "base64url"));
  EXPECT_TRUE(
      is_problem(get("/v1/stores/other/n/k", {}, "app store:*:read"), 404, "configured: main"));
}

TEST_P(EntryEndpoints, BadFields) {
  const std::string year = "2027-01-01T00:00:00Z";
  const std::vector<std::tuple<field_list, int, const char*>> cases{
      {{}, 400, "Cache-Control: max-age"},
      {{{"Holdfast-Expires", "tomorrow"}}, 400, "Holdfast-Expires"},
      {{{"Holdfast-Expires", "1960-01-01T00:00:00Z"}}, 400, "from 1970"},
      {{{"Holdfast-Expires", "9999-12-31T23:59:59-12:00"}}, 400, "to 9999"},
      {{{"Holdfast-Expires", year}, {"Cache-Control", "max-age=1"}}, 400, "exclude each other"},
      {{{"Holdfast-Expires", year}, {"Holdfast-Expires", year}}, 400, "occurs twice"},
      {{{"Holdfast-Expires", "2025-12-31T00:00:00Z"}, {"Holdfast-As-Of", "2025-01-01T00:00:00Z"}},
       422,
       "has passed"},
      {{{"Holdfast-Expires", "2025-12-31T00:00:00Z"}}, 400, "before Holdfast-As-Of"},
      {{{"Cache-Control", "max-age=0"}}, 422, "has passed"},
      {{{"Holdfast-As-Of", "2026-01-01T00:05:00.000001Z"}, {"Holdfast-Expires", year}},
       422,
       "clocks"},
      {{{"Holdfast-As-Of", "2026-01-01 00:00:00"}, {"Holdfast-Expires", year}},
       400,
       "Holdfast-As-Of"},
      {{{"If-None-Match", "*"}, {"Holdfast-Expires", year}}, 400, "If-None-Match"},
      {{{"Holdfast-Payload-Class", std::string(257, 'c')}, {"Holdfast-Expires", year}}, 400, "256"},
      {{{"Holdfast-Payload-Class", "\xFF"}, {"Holdfast-Expires", year}}, 400, "UTF-8"}};
  for (const auto& [fields, status, detail] : cases) {
    const auto answer = put(path, "x", fields);
    EXPECT_TRUE(is_problem(answer, status, detail)) << answer.status << answer.body;
    EXPECT_EQ(get(path).status, 404);
  }
  EXPECT_EQ(put(path, std::string((std::size_t{1} << 20U) + 1, 'x'), an_hour).status, 413);
  EXPECT_EQ(put(path, std::string(std::size_t{1} << 20U, 'x'), an_hour).status, 204);
  EXPECT_EQ(get(path).body.size(), std::size_t{1} << 20U);
  EXPECT_EQ(get(std::string(path) + "?tenant=acme").status, 400);
}

TEST_P(EntryEndpoints, RolesAndScopes) {
  ASSERT_EQ(put(path, "secret", an_hour).status, 204);
  EXPECT_EQ(get(path, {}, "viewer").status, 403);
  EXPECT_EQ(get(path, {}, "operator").status, 403);
  EXPECT_EQ(get(path, {}, "app store:main:write").status, 403);
  EXPECT_EQ(put(path, "x", an_hour, "app store:main:read").status, 403);
  EXPECT_EQ(get(path, {}, "app store:main:read @acme").status, 403);
  // An admin may see a payload, and the audit log says who did.
  EXPECT_EQ(get(path, {}, "admin").body, "secret");
  EXPECT_EQ(api.audit.lines(),
            (std::vector<std::string>{"store.reveal main/country/FR 1 done admin"}));
}

TEST(EntryEndpointsTenants, ACallerSeesItsOwnTenantOnly) {
  test::temporary_directory directory("api_tenants");
  test::api_resources api;
  api.add_store("main", "sqlite:" + (directory.path() / "t.db").string(),
                {.create_schema = true, .realms = {{"acme", "ACME_"}, {"beta", "BETA_"}}});
  const auto send = [&](const char* method, const std::string& query, const char* bearer,
                        std::string_view body = {}) {
    return api.send(method, path + query, bearer, body, an_hour, "text/plain");
  };
  EXPECT_EQ(send("PUT", "", "app @acme", "for acme").status, 204);
  EXPECT_EQ(send("PUT", "?tenant=beta", "app", "for beta").status, 204);
  EXPECT_EQ(send("GET", "", "app @acme").body, "for acme");
  EXPECT_EQ(send("GET", "?tenant=acme", "app @acme").body, "for acme");
  EXPECT_EQ(send("GET", "", "app @beta").body, "for beta");
  EXPECT_EQ(send("GET", "?tenant=acme", "app").body, "for acme");
  EXPECT_TRUE(is_problem(send("GET", "?tenant=beta", "app @acme"), 403, "its own tenant"));
  EXPECT_TRUE(is_problem(send("PUT", "?tenant=beta", "app @acme", "x"), 403, "its own tenant"));
  EXPECT_TRUE(is_problem(send("GET", "", "app @gamma"), 403, "tenant"));
  EXPECT_TRUE(is_problem(send("GET", "", "app"), 400, "?tenant=NAME"));
  EXPECT_TRUE(is_problem(send("GET", "?tenant=gamma", "app"), 404, "no tenant"));
  EXPECT_EQ(send("DELETE", "", "app @acme").status, 204);
  EXPECT_EQ(send("GET", "", "app @acme").status, 404);
  EXPECT_EQ(send("GET", "", "app @beta").body, "for beta");
}

struct FaultyEntries : ::testing::Test {
  test::api_resources api{};
  std::shared_ptr<test::faulty_store> entries;

  FaultyEntries() {
    const auto db = open("memory:", {.clock = api.clock});
    entries = std::make_shared<test::faulty_store>(db.store());
    api.add_store("main", db, entries);
  }
  using operation = test::faulty_store::operation;
  /// Requests that were given to a worker.
  std::size_t worker_tasks() {
    const auto workers = api.server().dispatcher().counts().workers;
    return workers.ran + workers.running + workers.queued;
  }
};

TEST_F(FaultyEntries, AStoreThatIsDownIs503) {
  const error down(errc::unavailable, "host db7 refused", {.transient = true});
  entries->before = [&](operation, auto) { throw error(down); };
  const auto read = api.send("GET", path, "app");
  EXPECT_TRUE(is_problem(read, 503, "\"inDoubt\":false")) << read.body;
  EXPECT_EQ(read.body.find("db7"), std::string::npos);
  EXPECT_EQ(read.fields.find("Retry-After"), "1");
  const auto write = api.send("PUT", path, "app", "x", an_hour, "text/plain");
  EXPECT_TRUE(is_problem(write, 503, "\"inDoubt\":false")) << write.body;
  EXPECT_TRUE(is_problem(api.send("DELETE", path, "app"), 503, "\"inDoubt\":false"));
  EXPECT_EQ(api.audit.lines(),
            (std::vector<std::string>{"store.delete main/country/FR 0 failed: unavailable app"}));
}

TEST_F(FaultyEntries, AWriteWhoseResultIsUnknownIsInDoubt) {
  entries->after = [](operation kind, auto) {
    if (kind == operation::put)
      throw error(errc::unavailable, "connection lost", {.transient = true, .in_doubt = true});
  };
  EXPECT_TRUE(is_problem(api.send("PUT", path, "app", "x", an_hour, "text/plain"), 503,
                         "\"inDoubt\":true"));
  // The write succeeds, and reading it back fails.
  entries->after = {};
  entries->before = [](operation kind, auto) {
    if (kind == operation::find) throw error(errc::timeout, "slow", {.transient = true});
  };
  EXPECT_TRUE(is_problem(api.send("PUT", path, "app", "x", an_hour, "text/plain"), 503,
                         "\"inDoubt\":true"));
}

TEST_F(FaultyEntries, AnEntryThatOthersEraseIsWrittenAgain) {
  int puts = 0;
  entries->after = [&](operation kind, std::span<const entry> written) {
    if (kind == operation::put && ++puts == 1)
      api.shared.stores.front().store->erase(place(written[0]), written[0].key, written[0].as_of);
  };
  EXPECT_EQ(api.send("PUT", path, "app", "x", an_hour, "text/plain").status, 204);
  EXPECT_EQ(puts, 2);
  EXPECT_EQ(api.send("GET", path, "app").body, "x");
  entries->after = [&](operation kind, std::span<const entry> written) {
    if (kind == operation::put)
      api.shared.stores.front().store->erase(place(written[0]), written[0].key, written[0].as_of);
  };
  EXPECT_TRUE(is_problem(api.send("PUT", path, "operator", "x", an_hour, "text/plain"), 403, ""));
  EXPECT_TRUE(is_problem(api.send("PUT", path, "admin", "x", an_hour, "text/plain"), 503,
                         "removed each time"));
}

TEST_F(FaultyEntries, ANewerVersionThatComesAfterTheWriteIsNoConflict) {
  test::gate gate;
  const test::open_in_the_end opened(gate);
  std::atomic<bool> is_first = true;
  entries->after = [&](operation kind, auto) {
    if (kind == operation::put && is_first.exchange(false)) gate.wait();
  };
  (void)api.server();
  std::atomic<int> first = 0;
  std::atomic<int> second = 0;
  std::jthread older(
      [&] { first = api.send("PUT", path, "app", "1", an_hour, "text/plain").status; });
  EXPECT_TRUE(test::eventually([&] { return gate.waiting() == 1; }));
  api.clock->advance(1s);
  std::jthread newer(
      [&] { second = api.send("PUT", path, "app", "2", an_hour, "text/plain").status; });
  EXPECT_TRUE(test::eventually(
      [&] { return second != 0 || api.server().dispatcher().counts().workers.running == 2; }));
  gate.open();
  older.join();
  newer.join();
  EXPECT_EQ(first, 204);
  EXPECT_EQ(second, 204);
  EXPECT_EQ(api.send("GET", path, "app").body, "2");
}

TEST_F(FaultyEntries, AStoreThatHangsHoldsNoLoop) {
  test::gate gate;
  const test::open_in_the_end opened(gate);
  entries->before = [&](operation, auto) { gate.wait(); };
  (void)api.server();
  std::atomic<int> answered = 0;
  std::vector<std::jthread> clients;
  for (int i = 0; i < 4; ++i)
    clients.emplace_back([&] { answered += api.send("GET", path, "app").status == 404 ? 1 : 0; });
  EXPECT_TRUE(test::eventually([&] { return gate.waiting() == 4; }));
  // The loop answers others meanwhile.
  EXPECT_EQ(
      api.send("POST", "/v1/keys?scheme=interop-value", "app", R"({"value":{"t":"int","v":"1"}})")
          .status,
      200);
  EXPECT_EQ(answered, 0);
  gate.open();
  clients.clear();
  EXPECT_EQ(answered, 4);
}

TEST_F(FaultyEntries, AStoreThatHangsLeavesWorkersToOthers) {
  test::gate gate;
  const test::open_in_the_end opened(gate);
  entries->before = [&](operation, auto) { gate.wait(); };
  (void)api.server();
  std::vector<std::jthread> clients;
  for (int i = 0; i < 16; ++i)
    clients.emplace_back([&] { EXPECT_EQ(api.send("GET", path, "app").status, 404); });
  EXPECT_TRUE(test::eventually([&] { return gate.waiting() == 16; }));
  // They are slow from now on.
  std::this_thread::sleep_for(1001ms);
  EXPECT_TRUE(is_problem(api.send("GET", path, "app"), 503, R"("reason":"slow_database")"));
  EXPECT_TRUE(is_problem(api.send("PUT", path, "app", "x", an_hour, "text/plain"), 503,
                         "\"inDoubt\":false"));
  EXPECT_EQ(gate.waiting(), 16);
  gate.open();
}

TEST_F(FaultyEntries, ManyWritesOfOneKeyLeaveTheStoreToOthers) {
  test::gate gate;
  const test::open_in_the_end opened(gate);
  entries->before = [&](operation kind, std::span<const entry> written) {
    if (kind == operation::put && written.front().key == "FR") gate.wait();
  };
  (void)api.server();
  const auto put = [&](const std::string& key) {
    return api.send("PUT", "/v1/stores/main/country/" + key, "app", "x", an_hour, "text/plain");
  };
  std::vector<std::jthread> clients;
  std::atomic<int> stored = 0;
  std::atomic<int> refused = 0;
  for (int i = 0; i < 20; ++i)
    clients.emplace_back([&] {
      const auto answer = put("FR");
      if (answer.status == 204) ++stored;
      else if (is_problem(answer, 503, "\"transient\":true")) ++refused;
    });
  EXPECT_TRUE(test::eventually([&] { return gate.waiting() == 1; }));
  // They wait for so long that a database would be called slow.
  const auto end = std::chrono::steady_clock::now() + 1200ms;
  for (int i = 0; std::chrono::steady_clock::now() < end; ++i) {
    const auto answer = put("DE" + std::to_string(i));
    ASSERT_EQ(answer.status, 204) << answer.body;
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_EQ(stored, 0);
  // A later write of the key does not wait, and the application is told why.
  const auto refusal = put("FR");
  EXPECT_TRUE(is_problem(refusal, 503, "writes of this key"));
  EXPECT_TRUE(is_problem(refusal, 503, R"("reason":"busy_key")"));
  gate.open();
  clients.clear();
  EXPECT_EQ(stored + refused, 20);
}

TEST(MissingDatabase, IsNotAMissingEntry) {
  const test::temporary_directory directory("api_entries");
  test::api_resources api;
  api.add_store("main", "sqlite:" + (directory.path() / "missing.db").string() + "?mode=rw");
  EXPECT_TRUE(
      is_problem(api.send("GET", "/v1/stores/main/country/FR", "app"), 503, "\"transient\":true"));
  EXPECT_TRUE(is_problem(api.send("GET", "/v1/stores/main/country/FR", "admin"), 503,
                         "there is no database file"));
}

TEST(CallLimit, RefusesOnlyBehindSlowCalls) {
  using detail::serve::call_limit;
  call_limit limit(2, 1s);
  const call_limit::time_point begin(1h);
  const auto first = limit.begin(begin);
  {
    const auto second = limit.begin(begin + 900ms);
    const auto third = limit.begin(begin + 1s);  // many, and none is slow
    EXPECT_THROW((void)limit.begin(begin + 1s + 1ms), error);
  }
  const auto fourth = limit.begin(begin + 1h);  // slow, and there are few
  EXPECT_THROW((void)limit.begin(begin + 1h), error);
}

TEST_F(FaultyEntries, MemoryIsAnsweredWithoutAWorker) {
  ASSERT_EQ(api.send("PUT", path, "app", "x", an_hour, "text/plain").status, 204);
  entries->waiting = false;
  EXPECT_EQ(api.send("GET", path, "app").body, "x");
  EXPECT_EQ(api.send("GET", "/v1/stores/main/country/DE", "app").status, 404);
  EXPECT_EQ(worker_tasks(), 1U);
  // What memory does not know is asked below.
  entries->waiting = true;
  EXPECT_EQ(api.send("GET", path, "app").body, "x");
  EXPECT_EQ(worker_tasks(), 2U);
}

}  // namespace
