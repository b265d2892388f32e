// Points over HTTP: numbers, entries, drills, explanations, and protected calls of other programs.

#include <holdfast/store/memory.hpp>

#include "serve/api/call_points.hpp"
#include "serve/api/decision_recorder.hpp"
#include "serve/api/explain_endpoints.hpp"
#include "serve/api/point_endpoints.hpp"
#include "support/api_server.hpp"
#include "support/virtual_clock.hpp"

#include <gtest/gtest.h>

#include <mutex>
#include <thread>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
namespace serve = detail::serve;

class recording_audit final : public serve::audit_log {
 public:
  void record(serve::audit_entry entry) noexcept override {
    const std::scoped_lock lock(mutex_);
    entries_.push_back(std::move(entry));
  }
  using serve::audit_log::record;
  [[nodiscard]] std::vector<std::string> actions() {
    const std::scoped_lock lock(mutex_);
    std::vector<std::string> result;
    for (const auto& each : entries_)
      result.push_back(each.caller + " " + each.action + " " + each.subject + " " + each.result);
    return result;
  }

 private:
  std::mutex mutex_{};
  std::vector<serve::audit_entry> entries_{};
};

class ApiPoints : public ::testing::Test {
 protected:
  ApiPoints() {
    shared_.clock = clock_;
    shared_.decisions = std::make_shared<decision_log>();
    auto insight = serve::server_insight(shared_.decisions);
    insight.sample = 1;
    shared_.engine = std::make_shared<engine>(
        memory_, engine_options{.clock = clock_,
                                .insight = std::move(insight),
                                .configure = [](std::string_view name, point_options& options) {
                                  if (name == "countries") options.expiry = 24h;
                                }});
    shared_.point_names = {"countries"};
    shared_.audit = &audit_;
    serve::add_point_endpoints(table_, shared_);
    serve::add_explain_endpoints(table_, shared_);
    server_.emplace(table_);
  }

  serve::client_response send(std::string_view method, std::string_view target,
                              std::string_view bearer = "operator", std::string_view body = {}) {
    return server_->send(method, target, bearer, body);
  }
  /// Status and content.
  std::string text(std::string_view method, std::string_view target,
                   std::string_view bearer = "operator", std::string_view body = {}) {
    const auto response = send(method, target, bearer, body);
    return std::to_string(response.status) + " " + response.body;
  }
  std::string keep(std::string_view body, std::string_view point = "countries") {
    return text("POST", "/v1/points/" + std::string(point) + "/answers", "app point:*:write", body);
  }
  std::string recover(std::string_view body, std::string_view point = "countries") {
    return text("POST", "/v1/points/" + std::string(point) + "/recover", "app point:*:read", body);
  }
  static bool has(const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
  }

  std::shared_ptr<virtual_clock> clock_ = std::make_shared<virtual_clock>();
  std::shared_ptr<store> memory_ = make_memory_store({.clock = clock_});
  recording_audit audit_{};
  serve::services shared_{};
  serve::endpoint_table table_{};
  std::optional<api_server> server_{};
};

constexpr auto fr = R"({"args":[{"t":"str","v":"FR"}]})";

TEST_F(ApiPoints, AnAnswerIsKeptAndRecovered) {
  const auto kept = keep(R"({"args":[{"t":"str","v":"FR"}],"payload":{"name":"France"}})");
  EXPECT_EQ(kept.substr(0, 4), "200 ") << kept;
  EXPECT_TRUE(has(kept, R"("expires":"2026-01-02T00:00:00.000000Z")")) << kept;
  // The key is that of a C++ program.
  EXPECT_TRUE(memory_->find("countries", key::failover({.name = "countries"}, "FR")));
  clock_->advance(412s);
  const auto recovered = send("POST", "/v1/points/countries/recover", "app point:*:read", fr);
  EXPECT_EQ(recovered.status, 200);
  EXPECT_TRUE(has(recovered.body, R"("payload":{"name":"France"},"absent":false)"))
      << recovered.body;
  EXPECT_TRUE(has(recovered.body, R"("age":"412s","cause":"failed")"));
  const auto field = std::string(recovered.fields.find("Holdfast-Answer").value_or(""));
  EXPECT_TRUE(has(field, "stored;as-of=@1767225600;expires=@1767312000;cause=failed;ref=\""))
      << field;
  const auto ref = field.substr(field.find("ref=\"") + 5, 8);
  const auto explained = text("GET", "/v1/explain/" + ref, "viewer");
  EXPECT_TRUE(has(explained, R"("says":"Served the answer of 00:00:00 UTC (6 min 52 s old) )"))
      << explained;
  EXPECT_TRUE(has(explained, R"("rule":"recovered")"));
  // A program reported the failure. How the server does that is of no interest.
  EXPECT_TRUE(has(explained, "because the upstream failed after ")) << explained;
  EXPECT_FALSE(has(explained, "holdfast::")) << explained;
}

TEST_F(ApiPoints, NothingKeptIsNotFoundWithAnExplanation) {
  const auto missing = recover(fr);
  EXPECT_EQ(missing.substr(0, 4), "404 ") << missing;
  EXPECT_TRUE(has(missing, "no answer is kept for it")) << missing;
  const auto ref = missing.substr(missing.find("/v1/explain/") + 12, 8);
  EXPECT_TRUE(has(text("GET", "/v1/explain/" + ref), R"("rule":"unserved")"));
  EXPECT_EQ(text("GET", "/v1/explain/00000000").substr(0, 4), "404 ");
  EXPECT_TRUE(
      has(recover(R"({"args":[{"t":"str","v":"FR"}],"cause":"timeout"})"), "had not answered"));
}

TEST_F(ApiPoints, TombstonesAndNullAreDifferent) {
  (void)keep(R"({"args":[{"t":"int","v":"1"}],"payload":null})");
  EXPECT_TRUE(
      has(recover(R"({"args":[{"t":"int","v":"1"}]})"), R"("payload":null,"absent":false)"));
  clock_->advance(1s);
  (void)keep(R"({"args":[{"t":"int","v":"1"}],"absent":true})");
  EXPECT_TRUE(has(recover(R"({"args":[{"t":"int","v":"1"}]})"), R"("payload":null,"absent":true)"));
}

TEST_F(ApiPoints, VersionsAndExpiriesOfTheProgramCount) {
  clock_->advance(1h);
  EXPECT_TRUE(
      has(keep(R"({"args":[],"payload":1,"asOf":"2026-01-01T00:30:00Z"})"),
          R"("asOf":"2026-01-01T00:30:00.000000Z","expires":"2026-01-02T00:30:00.000000Z")"));
  (void)keep(R"({"args":[],"payload":0,"asOf":"2026-01-01T00:20:00Z"})");
  EXPECT_TRUE(has(recover(R"({"args":[]})"), R"("payload":1)")) << "the newer answer stays";
  EXPECT_TRUE(has(keep(R"({"args":[],"payload":2,"expires":"2026-01-01T01:00:10Z"})"),
                  R"("expires":"2026-01-01T01:00:10.000000Z")"));
  clock_->advance(11s);
  EXPECT_EQ(recover(R"({"args":[]})").substr(0, 4), "404 ");
  EXPECT_EQ(keep(R"({"args":[],"payload":2,"expires":"2026-01-01T01:00:10Z"})").substr(0, 4),
            "422 ");
  EXPECT_EQ(keep(R"({"args":[],"payload":2,"asOf":"2026-01-01T02:00:00Z"})").substr(0, 4), "422 ");
  EXPECT_EQ(keep(R"({"args":[],"payload":2,"asOf":"2025-12-01T02:00:00Z"})").substr(0, 4), "422 ");
  EXPECT_EQ(keep(R"({"args":[],"payload":2,"asOf":"2026-01-01T01:01:00Z"})").substr(0, 4), "200 ")
      << "the clock of the program may be a little ahead";
}

TEST_F(ApiPoints, BadRequestsSayWhatIsWrong) {
  for (const auto* body : {
           R"({"payload":1})",
           R"({"args":{},"payload":1})",
           R"({"args":[1],"payload":1})",
           R"({"args":[{"t":"int","v":"1"}]})",
           R"({"args":[],"payload":1,"absent":true})",
           R"({"args":[],"payload":1,"asof":"2026-01-01T00:00:00Z"})",
           R"({"args":[],"payload":1,"asOf":5})",
           R"({"args":[],"payload":})",
           R"([])",
       })
    EXPECT_EQ(keep(body).substr(0, 4), "400 ") << body << ": " << keep(body);
  EXPECT_TRUE(
      has(keep(R"({"args":[{"t":"int","v":"1"},{"t":"int","v":"x"}],"payload":1})"), "args[1]"));
  EXPECT_EQ(recover(R"({"args":[],"cause":"because"})").substr(0, 4), "400 ");
  EXPECT_EQ(keep(R"({"args":[],"payload":1})", "a%20b").substr(0, 4), "400 ");
  EXPECT_EQ(keep(R"({"args":[],"payload":1})", std::string(51, 'x')).substr(0, 4), "400 ");
  std::string many = R"({"payload":1,"args":[)";
  for (int i = 0; i < 101; ++i) many += std::string(i == 0 ? "" : ",") + R"({"t":"int","v":"1"})";
  EXPECT_EQ(keep(many + "]}").substr(0, 4), "413 ");
}

TEST_F(ApiPoints, RolesAndScopesAreKept) {
  const auto status = [&](std::string_view method, std::string_view target, std::string_view bearer,
                          std::string_view body = {}) {
    return send(method, target, bearer, body).status;
  };
  EXPECT_EQ(status("GET", "/v1/points", ""), 401);
  EXPECT_EQ(status("GET", "/v1/points", "app"), 403);
  EXPECT_EQ(status("GET", "/v1/points", "viewer"), 200);
  EXPECT_EQ(status("POST", "/v1/points/countries/drill", "viewer", "{}"), 403);
  EXPECT_EQ(status("POST", "/v1/points/countries/invalidate", "viewer", R"({"key":"x"})"), 403);
  EXPECT_EQ(status("POST", "/v1/points/countries/recover", "app point:other:read", fr), 403);
  EXPECT_EQ(status("POST", "/v1/points/countries/recover", "app point:countries:read", fr), 404);
  EXPECT_EQ(status("POST", "/v1/points/countries/answers", "app point:countries:read", fr), 403);
}

TEST_F(ApiPoints, NewPointsAreBounded) {
  for (std::size_t i = 0; i < serve::call_points::most_new_points; ++i)
    ASSERT_EQ(keep(R"({"args":[],"payload":1})", "p" + std::to_string(i)).substr(0, 4), "200 ");
  EXPECT_EQ(keep(R"({"args":[],"payload":1})", "one-more").substr(0, 4), "413 ");
  EXPECT_EQ(keep(R"({"args":[],"payload":1})").substr(0, 4), "200 ") << "that of the file";
  EXPECT_EQ(text("GET", "/v1/points/one-more").substr(0, 4), "404 ");
}

TEST_F(ApiPoints, AreListedInPages) {
  (void)keep(R"({"args":[],"payload":1})", "b");
  (void)keep(R"({"args":[],"payload":1})", "a");
  const auto first = text("GET", "/v1/points?limit=2", "viewer");
  EXPECT_TRUE(has(first, R"("name":"a")")) << first;
  EXPECT_TRUE(has(first, R"("name":"b")"));
  EXPECT_TRUE(has(first, R"("next":"b")"));
  const auto rest = text("GET", "/v1/points?after=b", "viewer");
  EXPECT_TRUE(has(rest, R"("name":"countries")"));
  EXPECT_FALSE(has(rest, R"("next")"));
  EXPECT_EQ(text("GET", "/v1/points?limit=0").substr(0, 4), "400 ");
}

TEST_F(ApiPoints, RulesOutlookAndCoverageAreShown) {
  for (int i = 0; i < 10; ++i) {
    (void)keep(R"({"args":[{"t":"str","v":"FR"}],"payload":1})");
    clock_->advance(1s);
  }
  const auto point = text("GET", "/v1/points/countries", "viewer");
  EXPECT_TRUE(has(point, R"("live":10,)")) << point;
  EXPECT_TRUE(has(point, R"("payloadClass":"json")"));
  EXPECT_TRUE(has(point, R"("rules":{"domain":"countries","enabled":true,"expiry":)"));
  const auto coverage = text("GET", "/v1/points/countries/coverage", "viewer");
  EXPECT_TRUE(has(coverage, R"("checked":10,"covered":9,"notFound":1)")) << coverage;
  const auto outlook = text("GET", "/v1/points/countries/outlook", "viewer");
  EXPECT_TRUE(
      has(outlook, R"("says":"If the upstream stays down, the first answers expire in 23 h)"))
      << outlook;
  EXPECT_TRUE(has(outlook, R"("covered":1)"));
  EXPECT_TRUE(has(outlook, R"("first":{"at":"2026-01-02T00:00:09.000000Z","in":"86399s"})"));
  EXPECT_EQ(text("GET", "/v1/points/never/outlook").substr(0, 4), "404 ");
  const auto decisions = text("GET", "/v1/decisions?point=countries&limit=3", "viewer");
  EXPECT_TRUE(has(decisions, R"("rule":"live")")) << decisions;
}

TEST_F(ApiPoints, EntriesHideTheirPayloads) {
  (void)keep(R"({"args":[{"t":"str","v":"a"}],"payload":{"name":"Ann","password":"hunter2"}})");
  clock_->advance(1s);
  (void)keep(R"({"args":[{"t":"str","v":"b"}],"absent":true})");
  const auto list = text("GET", "/v1/points/countries/entries", "viewer");
  EXPECT_FALSE(has(list, "hunter2"));
  EXPECT_FALSE(has(list, "Ann"));
  EXPECT_TRUE(has(list, R"("tombstone":true)")) << list;
  EXPECT_TRUE(has(list, R"("bytes":35)")) << list;
  const auto first = text("GET", "/v1/points/countries/entries?limit=1", "viewer");
  EXPECT_TRUE(has(first, R"("next":")"));
  const auto key = key::failover({.name = "countries"}, "a");
  const auto target = "/v1/points/countries/entries/" + key;
  EXPECT_FALSE(has(text("GET", target, "viewer"), "Ann"));
  EXPECT_EQ(text("GET", target + "?reveal=1", "operator").substr(0, 4), "403 ");
  EXPECT_TRUE(audit_.actions().empty());
  const auto revealed = text("GET", target + "?reveal=1", "admin");
  EXPECT_TRUE(has(revealed, "Ann")) << revealed;
  EXPECT_FALSE(has(revealed, "hunter2"));
  EXPECT_EQ(audit_.actions(),
            std::vector<std::string>{"admin point.reveal countries/" + key + " done"});
  EXPECT_EQ(text("GET", "/v1/points/countries/entries/never", "viewer").substr(0, 4), "404 ");
}

TEST_F(ApiPoints, PayloadsThatAreNotJsonAreWithheld) {
  memory_->put({.name = "countries",
                .key = "k",
                .as_of = clock_->now(),
                .expire_on = clock_->now() + 1h,
                .payload = "password=hunter2",
                .payload_class = "other"});
  const auto revealed = text("GET", "/v1/points/countries/entries/k?reveal=1", "admin");
  EXPECT_FALSE(has(revealed, "hunter2"));
  EXPECT_TRUE(has(revealed, "cannot be masked")) << revealed;
}

TEST_F(ApiPoints, AreInvalidatedByKeyAndByArguments) {
  (void)keep(R"({"args":[{"t":"str","v":"FR"}],"payload":1})");
  clock_->advance(1s);
  EXPECT_EQ(text("POST", "/v1/points/countries/invalidate", "operator", fr),
            R"(200 {"invalidated":1})");
  EXPECT_TRUE(has(recover(fr), R"("absent":true)"));
  clock_->advance(1s);
  (void)keep(R"({"args":[{"t":"str","v":"FR"}],"payload":1})");
  clock_->advance(1s);
  const auto key = key::failover({.name = "countries"}, "FR");
  EXPECT_EQ(
      text("POST", "/v1/points/countries/invalidate", "operator", R"({"key":")" + key + "\"}"),
      R"(200 {"invalidated":1})");
  EXPECT_EQ(text("POST", "/v1/points/countries/invalidate", "operator", R"({"key":"x"})"),
            R"(200 {"invalidated":0})");
  EXPECT_EQ(text("POST", "/v1/points/countries/invalidate", "operator", "{}").substr(0, 4), "400 ");
  EXPECT_EQ(text("POST", "/v1/points/never/invalidate", "operator", fr).substr(0, 4), "404 ");
  EXPECT_EQ(audit_.actions().size(), 3U);
}

TEST_F(ApiPoints, DrillsAreStartedShownAndEnded) {
  const auto target = std::string_view("/v1/points/countries/drill");
  EXPECT_EQ(text("GET", target, "viewer").substr(0, 4), "404 ");
  const auto started = text("POST", target, "operator", R"({"part":0.5,"length":"2m"})");
  EXPECT_EQ(started.substr(0, 4), "201 ") << started;
  EXPECT_TRUE(has(started, R"("part":0.5,"length":"120s","whatIf":false)"));
  EXPECT_EQ(text("POST", target, "operator", "{}").substr(0, 4), "409 ");
  EXPECT_TRUE(has(text("GET", target, "viewer"), R"("end":"running")"));
  EXPECT_TRUE(has(text("GET", "/v1/drills", "viewer"), R"("point":"countries")"));
  EXPECT_TRUE(has(text("DELETE", target, "operator"), R"("end":"request")"));
  EXPECT_EQ(text("POST", target, "operator", R"({"part":"half"})").substr(0, 4), "400 ");
  EXPECT_EQ(text("POST", target, "operator", R"({"part":2})").substr(0, 4), "400 ");
  EXPECT_EQ(text("POST", target, "operator", R"({"length":"16m"})").substr(0, 4), "400 ");
  EXPECT_EQ(text("POST", "/v1/points/never/drill", "operator", "{}").substr(0, 4), "404 ");
  EXPECT_TRUE(has(audit_.actions().front(), "operator point.drill countries done"));
}

TEST_F(ApiPoints, AnAnswerWithoutAKeyIsRefused) {
  serve::services shared{.clock = clock_};
  shared.engine = std::make_shared<engine>(
      memory_, engine_options{.clock = clock_, .caller = {.tenant = []() -> std::string {
                                                 throw std::runtime_error("no tenant");
                                               }}});
  serve::endpoint_table table;
  serve::add_point_endpoints(table, shared);
  api_server server(table);
  const auto refused = server.send("POST", "/v1/points/p/answers", "app point:p:write",
                                   R"({"args":[],"payload":1})");
  EXPECT_EQ(refused.status, 422);
  EXPECT_TRUE(has(refused.body, "was not kept")) << refused.body;
}

TEST_F(ApiPoints, PointsOfTheServerItselfAreNotForOthers) {
  serve::services shared{.clock = clock_};
  shared.engine = std::make_shared<engine>(memory_, engine_options{.clock = clock_});
  shared.point_names = {"own"};
  const auto own = shared.engine->protect("own", [](int n) { return std::to_string(n); });
  serve::endpoint_table table;
  serve::add_point_endpoints(table, shared);
  api_server server(table);
  EXPECT_EQ(server
                .send("POST", "/v1/points/own/answers", "app point:own:write",
                      R"({"args":[],"payload":1})")
                .status,
            409);
  EXPECT_EQ(server.send("GET", "/v1/points/own", "viewer").status, 200);
}

TEST_F(ApiPoints, ManyClientsAtOnce) {
  std::vector<std::jthread> threads;
  std::atomic<int> failures{0};
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 50; ++i) {
        const auto args = R"({"args":[{"t":"int","v":")" + std::to_string(i) + R"("}])";
        const auto point = "p" + std::to_string((thread + i) % 3);
        if (!keep(args + R"(,"payload":1})", point).starts_with("200")) ++failures;
        if (!recover(args + "}", point).starts_with("200")) ++failures;
        if (!text("GET", "/v1/points", "viewer").starts_with("200")) ++failures;
      }
    });
  threads.clear();
  EXPECT_EQ(failures, 0);
}

}  // namespace
}  // namespace holdfast::test
