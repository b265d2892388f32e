// What an operator sees and does: numbers, events, groups, replay, discard, check, pause.

#include "support/eventually.hpp"
#include "support/outbox_api.hpp"
#include "support/temporary_directory.hpp"
#include "support/virtual_clock.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace {

using namespace holdfast;
using namespace holdfast::detail::serve;
using namespace std::chrono_literals;
using test::outbox_api;

/// Publishes events and parks them with this error. Returns their ids.
std::vector<std::string> park(const outbox_api& api, std::size_t count, const std::string& type,
                              const std::string& error) {
  std::vector<event> events(count, {.type = type, .payload = R"({"card":"c~rd","euro":3})"});
  (void)api.orders().publish_all(std::move(events));
  std::vector<std::string> ids;
  for (std::size_t lane = 0; lane < api.orders().lanes(); ++lane) {
    for (;;) {
      const auto claim = api.orders().claim({.lane = lane, .most = 1000});
      std::vector<settlement> settlements;
      for (const auto& event : claim.events) {
        ids.push_back(event.event.id);
        settlements.push_back(
            {.id = event.event.id, .action = settlement::kind::park, .error = error});
      }
      if (settlements.empty()) break;
      api.orders().settle(lane, claim.fence, std::move(settlements));
    }
  }
  return ids;
}

nlohmann::json wait_for_job(outbox_api& api, const client_response& started) {
  EXPECT_EQ(started.status, 202) << started.body;
  const std::string id = outbox_api::json(started).value("job", "");
  nlohmann::json job;
  EXPECT_TRUE(test::eventually(
      [&] {
        job = outbox_api::json(api.server->send("GET", "/v1/jobs/" + id, "operator"));
        return job.value("state", "") != "running";
      },
      60s));
  return job;
}

class OutboxAdmin : public testing::TestWithParam<const char*> {
 protected:
  [[nodiscard]] test::outbox_api_options options(std::size_t lanes = 1) const {
    const bool sqlite = std::string_view(GetParam()) == "sqlite";
    return {.url = sqlite ? "sqlite:" + (directory_.path() / "outbox.db").string() : "memory:",
            .lanes = lanes,
            .create_schema = sqlite};
  }

 private:
  test::temporary_directory directory_{};
};
INSTANTIATE_TEST_SUITE_P(Backends, OutboxAdmin, testing::Values("memory", "sqlite"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(OutboxAdmin, ADatabaseThatHangsLeavesWorkersToOthers) {
  outbox_api api(options());
  auto& calls = *api.shared.find_outbox("orders").calls;
  const auto long_ago = std::chrono::steady_clock::now() - 1h;
  std::vector<std::unique_ptr<call_limit::running_call>> hanging;
  for (std::size_t i = 0; i < call_limit::default_most; ++i)
    hanging.emplace_back(new call_limit::running_call(calls.begin(long_ago)));
  const auto refused = api.send("POST", "/events", "app", R"({"type":"t"})");
  EXPECT_EQ(refused.status, 503) << refused.body;
  EXPECT_TRUE(outbox_api::json(refused)["transient"]);
  const auto list = outbox_api::json(api.server->send("GET", "/v1/outboxes", "viewer"));
  EXPECT_FALSE(list["items"][0]["available"]);
  EXPECT_TRUE(list["items"][1]["available"]);
  hanging.clear();
  EXPECT_EQ(api.send("POST", "/events", "app", R"({"type":"t"})").status, 201);
}

TEST_P(OutboxAdmin, ShowsNumbersOfOutboxesAndLanes) {
  outbox_api api(options(2));
  park(api, 10, "t", "e");
  api.orders().publish({.type = "t"});
  const auto list = outbox_api::json(api.server->send("GET", "/v1/outboxes", "viewer"));
  ASSERT_EQ(list["items"].size(), 2U);
  EXPECT_EQ(list["items"][0]["name"], "orders");
  EXPECT_EQ(list["items"][0]["parked"], 10);
  EXPECT_EQ(list["items"][0]["pending"], 1);
  const auto one = outbox_api::json(api.send("GET", "", "viewer"));
  ASSERT_EQ(one["lanes"].size(), 2U);
  EXPECT_EQ(one["lanes"][0]["parked"].get<int>() + one["lanes"][1]["parked"].get<int>(), 10);
  EXPECT_EQ(one["totals"]["published"], 11);
}

TEST_P(OutboxAdmin, PagesOfEventsHaveEachEventOnceAndNoPayload) {
  outbox_api api(options(4));
  park(api, 257, "t", "e");
  std::set<std::string> ids;
  std::string after;
  int pages = 0;
  do {
    const auto response =
        api.send("GET", "/parked?limit=7" + (after.empty() ? "" : "&after=" + after), "viewer");
    ASSERT_EQ(response.status, 200) << response.body;
    EXPECT_EQ(response.body.find("c~rd"), std::string::npos);
    const auto page = outbox_api::json(response);
    for (const auto& item : page["items"]) {
      EXPECT_TRUE(ids.insert(item["id"]).second);
      EXPECT_EQ(item["payloadBytes"], 24);
    }
    after = page.value("next", "");
    ++pages;
  } while (!after.empty() && pages < 100);
  EXPECT_EQ(ids.size(), 257U);
}

TEST_P(OutboxAdmin, FiltersByTypeKeyErrorAndAge) {
  outbox_api api(options());
  park(api, 3, "order.paid", "HTTP status 422");
  park(api, 2, "mail.sent", "HTTP status 500");
  api.orders().publish({.type = "order.paid", .key = "k 1"});
  const auto count = [&](const std::string& path) {
    const auto response = api.send("GET", path, "viewer");
    EXPECT_EQ(response.status, 200) << response.body;
    return outbox_api::json(response)["items"].size();
  };
  EXPECT_EQ(count("/parked?type=order.paid"), 3U);
  EXPECT_EQ(count("/parked?type=order.*"), 3U);
  EXPECT_EQ(count("/parked?type=order"), 0U);
  EXPECT_EQ(count("/parked?error=HTTP%20status%20500"), 2U);
  EXPECT_EQ(count("/parked?error=HTTP*"), 5U);
  EXPECT_EQ(count("/events?type=order.paid"), 4U);
  EXPECT_EQ(count("/events?key=k%201"), 1U);
  EXPECT_EQ(count("/parked?olderThan=1h"), 0U);
  EXPECT_EQ(count("/parked?olderThan=0s"), 5U);
  EXPECT_EQ(api.send("GET", "/parked?after=x", "viewer").status, 400);
  EXPECT_EQ(api.send("GET", "/parked?after=9:~", "viewer").status, 400);
  EXPECT_EQ(api.send("GET", "/parked?limit=1001", "viewer").status, 400);
  EXPECT_EQ(api.send("GET", "/parked?limt=1", "viewer").status, 400);
  EXPECT_EQ(api.send("GET", "/parked?olderThan=old", "viewer").status, 400);
}

TEST_P(OutboxAdmin, GroupsParkedEvents) {
  outbox_api api(options());
  park(api, 3, "a", "e1");
  park(api, 5, "b", "e1");
  const auto groups = outbox_api::json(api.send("GET", "/parked/groups", "viewer"));
  ASSERT_EQ(groups["items"].size(), 2U);
  EXPECT_EQ(groups["items"][0]["type"], "b");
  EXPECT_EQ(groups["items"][0]["count"], 5);
  EXPECT_EQ(groups["items"][1]["count"], 3);
  EXPECT_EQ(groups["atLeast"], false);
  EXPECT_LE(groups["items"][0]["first"].get<std::string>(),
            groups["items"][0]["last"].get<std::string>());
}

TEST_P(OutboxAdmin, ShowsAndExplainsAnEvent) {
  outbox_api api(options());
  const auto id = park(api, 1, "t", "HTTP 422").front();
  const auto shown = api.send("GET", "/events/" + id, "viewer");
  EXPECT_EQ(shown.status, 200);
  EXPECT_EQ(shown.body.find("c~rd"), std::string::npos);
  const auto why = outbox_api::json(api.send("GET", "/events/" + id + "/explain", "viewer"));
  EXPECT_EQ(why["says"], "it is parked: replay or discard it (last error: HTTP 422)");
  EXPECT_EQ(why["event"]["state"], "parked");
  EXPECT_EQ(api.send("GET", "/events/x", "viewer").status, 400);
  EXPECT_EQ(api.send("GET", "/events/" + new_event_id(), "viewer").status, 404);
}

TEST_P(OutboxAdmin, RevealsAPayloadToAnAdminOnly) {
  outbox_api api(options());
  const auto id = park(api, 1, "t", "e").front();
  EXPECT_EQ(api.send("GET", "/events/" + id + "?reveal=1", "operator").status, 403);
  EXPECT_TRUE(api.audit.of("outbox.reveal").empty());
  const auto shown = api.send("GET", "/events/" + id + "?reveal=1", "admin");
  EXPECT_EQ(outbox_api::json(shown)["payload"]["euro"], 3);
  EXPECT_EQ(outbox_api::json(shown)["payload"]["card"], "***");
  ASSERT_EQ(api.audit.of("outbox.reveal").size(), 1U);
  EXPECT_EQ(api.audit.of("outbox.reveal").front().subject, "orders/" + id);
}

TEST_P(OutboxAdmin, ReplaysAndDiscardsIds) {
  outbox_api api(options(4));
  const auto ids = park(api, 4, "t", "e");
  const auto act = [&](const std::string& action, const std::vector<std::string>& list) {
    return api.send("POST", "/" + action, "operator", nlohmann::json({{"ids", list}}).dump());
  };
  const auto unknown = new_event_id();
  const auto replayed = outbox_api::json(act("replay", {ids[0], unknown, ids[1]}));
  EXPECT_EQ(replayed["changed"], 2);
  EXPECT_EQ(replayed["items"][0]["result"], "replayed");
  EXPECT_EQ(replayed["items"][1]["result"], "notParked");
  EXPECT_EQ(outbox_api::json(act("discard", {ids[2]}))["items"][0]["result"], "discarded");
  const auto stats = api.orders().admin().stats();
  EXPECT_EQ(stats.parked, 1U);
  EXPECT_EQ(stats.pending, 2U);
  EXPECT_EQ(api.audit.of("outbox.replay").front().count, 2U);
  EXPECT_EQ(api.audit.of("outbox.discard").front().count, 1U);
  EXPECT_EQ(act("replay", {}).status, 400);
  EXPECT_EQ(act("replay", {"x"}).status, 400);
  EXPECT_EQ(act("replay", {ids[3], ids[3]}).status, 400);
  EXPECT_EQ(act("replay", std::vector<std::string>(501, ids[3])).status, 400);
}

TEST_P(OutboxAdmin, AJobTakesWhatMatchesAndNoMoreThanAtMost) {
  outbox_api api(options(2));
  park(api, 700, "a", "e");
  park(api, 30, "b", "e");
  const auto first = api.send("POST", "/replay", "operator",
                              R"({"select":{"type":"a","error":"e"},"atMost":600})");
  EXPECT_EQ(outbox_api::json(first)["matched"], 700);
  const auto job = wait_for_job(api, first);
  EXPECT_EQ(job["state"], "done") << job;
  EXPECT_EQ(job["changed"], 600);
  EXPECT_EQ(api.orders().admin().stats().parked, 130U);
  EXPECT_EQ(api.orders().admin().stats().pending, 600U);
  const auto rest = wait_for_job(api, api.send("POST", "/discard", "operator", R"({"select":{}})"));
  EXPECT_EQ(rest["changed"], 130);
  EXPECT_EQ(api.orders().admin().stats().events, 600U);
  // Two steps with changes, and the end.
  EXPECT_GE(api.audit.of("outbox.replay").size(), 3U);
  EXPECT_FALSE(api.events.jobs().empty());
}

TEST_P(OutboxAdmin, ChecksAndRepairs) {
  outbox_api api(options(2));
  park(api, 5, "t", "e");
  const auto job = wait_for_job(api, api.send("POST", "/check", "operator"));
  EXPECT_EQ(job["state"], "done") << job;
  EXPECT_EQ(job["result"]["well"], true);
  EXPECT_EQ(job["result"]["events"], 5);
  EXPECT_EQ(api.send("POST", "/check", "operator", R"({"repair":true})").status, 400);
  EXPECT_EQ(api.send("POST", "/check", "operator", R"({"repair":true,"confirm":"mails"})").status,
            400);
  const auto repaired = wait_for_job(
      api, api.send("POST", "/check", "operator", R"({"repair":true,"confirm":"orders"})"));
  EXPECT_EQ(repaired["kind"], "outbox.repair");
  EXPECT_EQ(api.audit.of("outbox.repair").size(), 1U);
}

TEST_P(OutboxAdmin, PausesAndResumes) {
  outbox_api api(options());
  api.orders().publish({.type = "t"});
  EXPECT_EQ(api.send("POST", "/pause", "operator").status, 200);
  EXPECT_EQ(api.orders().claim().status, claim_status::paused);
  EXPECT_EQ(api.send("POST", "/resume", "operator").status, 200);
  EXPECT_EQ(api.orders().claim().status, claim_status::some);
  EXPECT_EQ(api.audit.of("outbox.pause").size(), 1U);
  EXPECT_EQ(api.audit.of("outbox.resume").size(), 1U);
}

TEST(OutboxActions, AnEventThatIsParkedAgainIsNotTakenAgain) {
  const auto clock = std::make_shared<test::virtual_clock>();
  outbox_api api({.clock = clock});
  park(api, 1200, "t", "e");
  // A worker that parks everything at once, while the job runs.
  std::atomic<bool> ended = false;
  std::thread worker([&] {
    while (!ended) {
      clock->advance(1ms);
      const auto claim = api.orders().claim({.most = 1000});
      std::vector<settlement> settlements;
      for (const auto& event : claim.events)
        settlements.push_back({.id = event.event.id, .action = settlement::kind::park});
      if (!settlements.empty()) api.orders().settle(0, claim.fence, std::move(settlements));
    }
  });
  const auto job = wait_for_job(api, api.send("POST", "/replay", "operator", R"({"select":{}})"));
  ended = true;
  worker.join();
  EXPECT_EQ(job["changed"], 1200) << job;
}

TEST(OutboxActions, ManyParkedEventsStayBounded) {
  outbox_api api;
  park(api, 100'000, "t", "e");
  const auto groups = outbox_api::json(api.send("GET", "/parked/groups", "viewer"));
  EXPECT_EQ(groups["atLeast"], true);
  EXPECT_LE(groups["examined"], 10'100);
  const auto started = api.send("POST", "/replay", "operator", R"({"select":{}})");
  EXPECT_LE(outbox_api::json(started)["matched"], 10'100);
  EXPECT_EQ(outbox_api::json(started)["atLeast"], true);
  // Stopped after its step: what is not done stays parked.
  const auto id = outbox_api::json(started)["job"].get<std::string>();
  ASSERT_TRUE(test::eventually([&] { return !api.events.jobs().empty(); }));
  EXPECT_EQ(api.server->send("DELETE", "/v1/jobs/" + id, "operator").status, 202);
  const auto stopped = wait_for_job(api, started);
  EXPECT_EQ(stopped["state"], "stopped");
  EXPECT_EQ(stopped["reason"], "stopped by operator");
  EXPECT_EQ(api.server->send("DELETE", "/v1/jobs/" + id, "operator").status, 409);
  const auto changed = stopped["changed"].get<std::uint64_t>();
  EXPECT_EQ(changed % 500, 0U);
  EXPECT_EQ(api.orders().admin().stats().parked, 100'000 - changed);
  const auto rest = wait_for_job(api, api.send("POST", "/replay", "operator", R"({"select":{}})"));
  EXPECT_EQ(rest["changed"], 100'000 - changed);
  EXPECT_GE(rest["steps"].get<std::uint64_t>(), (100'000 - changed) / 500);
}

TEST(OutboxActions, BadSelectionsAreRefused) {
  outbox_api api;
  for (const char* body :
       {"{}", R"({"ids":["x"],"select":{}})", R"({"select":{"typ":"a"}})", R"({"select":7})",
        R"({"select":{},"atMost":0})", R"({"select":{},"atMost":"many"})",
        R"({"select":{"olderThan":"old"}})", R"({"ids":"x"})", R"({"ids":[7]})", "[]", ""}) {
    const auto response = api.send("POST", "/replay", "operator", body);
    EXPECT_EQ(response.status, 400) << body << "\n" << response.body;
  }
  EXPECT_TRUE(api.jobs->list().empty());
}

TEST(OutboxActions, RolesAndTenants) {
  outbox_api api;
  park(api, 1, "t", "e");
  for (const char* bearer : {"viewer", "app", "app outbox:orders:act"}) {
    EXPECT_EQ(api.send("POST", "/replay", bearer, R"({"select":{}})").status, 403) << bearer;
    EXPECT_EQ(api.send("POST", "/pause", bearer).status, 403) << bearer;
    EXPECT_EQ(api.server->send("GET", "/v1/jobs", bearer).status, 403) << bearer;
  }
  EXPECT_EQ(api.send("GET", "/parked", "app outbox:mails:read").status, 403);
  EXPECT_EQ(api.send("GET", "/parked", "viewer @acme").status, 403);
  const auto names = [&](const char* bearer) {
    std::string text;
    const auto list = outbox_api::json(api.server->send("GET", "/v1/outboxes", bearer));
    for (const auto& item : list["items"]) text += item["name"].get<std::string>() + " ";
    return text;
  };
  EXPECT_EQ(names("viewer"), "orders mails ");
  EXPECT_EQ(names("viewer @acme"), "");
  EXPECT_EQ(names("app @acme,outbox:mails:read"), "mails ");
  EXPECT_EQ(names("app outbox:orders:publish"), "");
  (void)wait_for_job(api, api.send("POST", "/check", "operator"));
  const auto jobs = [&](const char* bearer) {
    return outbox_api::json(api.server->send("GET", "/v1/jobs", bearer))["items"].size();
  };
  EXPECT_EQ(jobs("operator"), 1U);
  EXPECT_EQ(jobs("operator @acme"), 0U);
}

}  // namespace
