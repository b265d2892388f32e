// The state of the server: rates, sentences, databases that hang, instances, the endpoints.

#include <holdfast/error.hpp>
#include <holdfast/outbox/admin.hpp>
#include <holdfast/reporter.hpp>
#include <holdfast/store/memory.hpp>

#include "serve/api/decision_recorder.hpp"
#include "serve/api/json_reader.hpp"
#include "serve/live/live_endpoints.hpp"
#include "serve/live/served_ages.hpp"
#include "serve/live/state.hpp"
#include "support/eventually.hpp"
#include "support/failure_of.hpp"
#include "support/faulty_store.hpp"
#include "support/gate.hpp"
#include "support/raw_client.hpp"
#include "support/temporary_directory.hpp"
#include "support/virtual_clock.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace holdfast;
using namespace holdfast::detail::serve;
using namespace std::chrono_literals;
using test::eventually;
using test::failure_of;

/// A store whose health can hang.
class hanging_store final : public store {
 public:
  void put(std::span<const entry>) override {}
  using store::put;
  std::optional<entry> find(place, std::string_view) override { return std::nullopt; }
  entry_page find_all(place, std::size_t, std::string_view) override { return {}; }
  bool erase(place, std::string_view, timestamp) override { return false; }
  std::size_t expire(timestamp, std::size_t) override { return 0; }
  std::uint64_t count(place) override { return 0; }
  store_health health() noexcept override {
    std::unique_lock lock(mutex_);
    ++asked_;
    changed_.wait(lock, [this] { return !hangs_; });
    return {.available = true, .unsaved = asked_};
  }
  void hang(bool yes) {
    const std::scoped_lock lock(mutex_);
    hangs_ = yes;
    changed_.notify_all();
  }
  [[nodiscard]] std::uint64_t asked() {
    const std::scoped_lock lock(mutex_);
    return asked_;
  }

 private:
  std::mutex mutex_{};
  std::condition_variable changed_{};
  bool hangs_ = false;
  std::uint64_t asked_ = 0;
};

class recorded_events final : public event_sink {
 public:
  void publish(std::string_view kind, std::string json) noexcept override {
    const std::scoped_lock lock(mutex_);
    if (kind == "state") ++states_;
    last_ = std::move(json);
  }
  [[nodiscard]] int states() {
    const std::scoped_lock lock(mutex_);
    return states_;
  }

 private:
  std::mutex mutex_{};
  int states_ = 0;
  std::string last_{};
};

/// The parts of a server with an engine, two stores, and an outbox in memory.
class LiveState : public testing::Test {
 protected:
  LiveState() {
    const auto db = open("memory:");
    shared_.label = "production";
    shared_.clock = clock_;
    shared_.events = &events_;
    shared_.engine = std::make_shared<engine>(make_memory_store());
    shared_.stores.push_back({.name = "main", .url = "one", .database = db, .store = main_});
    shared_.stores.push_back({.name = "other", .url = "memory:", .database = db, .store = other_});
    shared_.outboxes.push_back(
        {.name = "orders", .url = "memory:", .database = db, .outbox = db.outbox(), .options = {}});
    shared_.sequences.emplace(
        sequence_service{.url = "memory:", .database = db, .blocks = db.block_store()});
    // Sources of memory: databases have no table of instances.
    shared_.stores[0].url = "memory:hanging";
  }
  ~LiveState() override { main_->hang(false); }

  [[nodiscard]] static live_options options() {
    return {.interval = 10ms, .question_interval = 10ms, .answer_limit = 1min};
  }
  static json_object parse(const live_state& state) { return json_object::parse(*state.status()); }

  std::shared_ptr<test::virtual_clock> clock_ = std::make_shared<test::virtual_clock>();
  std::shared_ptr<hanging_store> main_ = std::make_shared<hanging_store>();
  std::shared_ptr<hanging_store> other_ = std::make_shared<hanging_store>();
  recorded_events events_{};
  services shared_{};
  history history_{};
  incident_log incidents_{};
};

TEST_F(LiveState, ShowsEverything) {
  const auto point = shared_.engine->protect("countries", [](int) { return std::string("{}"); });
  (void)point(1);
  (void)shared_.outboxes[0].outbox.publish({.type = "paid", .payload = "{}"});
  const std::vector<block_request> ids{{.name = "order.id", .count = 10}};
  (void)shared_.sequences->blocks->allocate(ids);
  live_state state(shared_, history_, incidents_, options());
  EXPECT_EQ(state.status(), nullptr);
  state.start();
  ASSERT_TRUE(eventually([&] {
    const auto text = state.status();
    return text && text->find("\"pending\":1") != std::string::npos &&
           text->find("order.id") != std::string::npos &&
           text->find("not asked") == std::string::npos;
  })) << *state.status();
  auto status = parse(state);
  EXPECT_EQ(status.text("label"), "production");
  EXPECT_EQ(status.boolean("healthy"), true);
  EXPECT_EQ(status.texts("says")->size(), 0U);
  EXPECT_EQ(status.objects("points")->at(0).text("name"), "countries");
  EXPECT_EQ(status.objects("sequences")->at(0).text("last"), "10");
  EXPECT_EQ(status.objects("stores")->at(0).boolean("available"), true);
  EXPECT_EQ(status.objects("outboxes")->at(0).text("overdue"), "0s");
  state.stop();
}

TEST_F(LiveState, LanesFindingsAndWhatIsLeft) {
  auto db = open("memory:");
  shared_.outboxes[0].outbox = db.outbox({.lanes = 4});
  auto& orders = shared_.outboxes[0].outbox;
  const auto published = orders.publish({.type = "paid", .key = "k", .payload = "{}"});
  ASSERT_TRUE(published.safe());
  const auto lane = orders.lane_of("k");
  ASSERT_TRUE(orders.lock(lane, "web-2:771", 1h).held);
  auto ids = shared_.stores[0].database.sequence(
      "invoice", {.blocks = fixed_blocks{.size = 250}, .max = 1000});
  EXPECT_EQ(ids.next(), 1);
  live_state state(shared_, history_, incidents_, options());
  state.start();
  ASSERT_TRUE(eventually([&] {
    const auto text = state.status();
    return text && text->find("\"left\":0.75") != std::string::npos &&
           text->find("\"findings\":{") != std::string::npos &&
           text->find("web-2:771") != std::string::npos;
  })) << *state.status();
  state.stop();
  auto status = parse(state);
  auto outboxes = status.objects("outboxes");
  auto lanes = outboxes->at(0).objects("lanes");
  ASSERT_EQ(lanes->size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(lanes->at(i).integer("lane"), static_cast<std::int64_t>(i));
    EXPECT_EQ(lanes->at(i).integer("pending"), i == lane ? 1 : 0);
    EXPECT_EQ(lanes->at(i).text("holder"),
              i == lane ? std::optional<std::string>("web-2:771") : std::nullopt);
  }
}

TEST_F(LiveState, AnOutboxIsFailingUntilADeliverySucceeds) {
  auto& orders = shared_.outboxes[0].outbox;
  for (const std::string key : {"a", "b", "c"})
    ASSERT_TRUE(orders.publish({.type = "paid", .key = key, .payload = "{}"}).safe());
  const auto events = orders.claim({.most = 3});
  ASSERT_EQ(events.events.size(), 3U);
  const auto settle = [&](std::size_t i, settlement::kind action) {
    const auto& each = events.events[i].event;
    (void)orders.settle(events.lane, events.fence,
                        {{.id = each.id, .key = each.key, .action = action, .delay = 1h}});
  };
  live_state state(shared_, history_, incidents_, options());
  state.start();
  const auto shows = [&](bool failing, const std::string& pending) {
    return eventually([&] {
      const auto text = state.status();
      return text && text->find("\"pending\":" + pending) != std::string::npos &&
             text->find(failing ? "\"failing\":true" : "\"failing\":false") != std::string::npos;
    });
  };
  EXPECT_TRUE(shows(false, "3"));
  settle(0, settlement::kind::retry);
  EXPECT_TRUE(shows(true, "3"));
  settle(1, settlement::kind::ack);
  EXPECT_TRUE(shows(false, "2"));
  settle(2, settlement::kind::park);
  EXPECT_TRUE(shows(true, "1"));
  state.stop();
}

TEST_F(LiveState, TheOldestAnswerThatWasServedLately) {
  shared_.ages = std::make_shared<served_ages>();
  shared_.engine = std::make_shared<engine>(
      make_memory_store({.clock = clock_}),
      engine_options{.clock = clock_,
                     .insight = server_insight(std::make_shared<decision_log>(), shared_.ages)});
  std::atomic<bool> up = true;
  const auto point = shared_.engine->protect("countries", [&](int) {
    if (!up) throw std::runtime_error("down");
    return std::string("{}");
  });
  live_state state(shared_, history_, incidents_, options());
  const auto shown = [&] {
    state.sample();
    auto points = parse(state).objects("points");
    return points->at(0).text("oldestServed");
  };
  (void)point(1);
  EXPECT_EQ(shown(), std::nullopt) << "live answers have no age";
  clock_->advance(412s);
  (void)point(2);
  up = false;
  (void)point(1);
  (void)point(2);
  EXPECT_EQ(shown(), "412s");
  clock_->advance(2 * served_ages::window);
  EXPECT_EQ(shown(), std::nullopt);
}

TEST_F(LiveState, RatesAndSentencesOfAPoint) {
  std::atomic<bool> up = true;
  const auto point = shared_.engine->protect("countries", [&](int) {
    if (!up) throw std::runtime_error("down");
    return std::string("{}");
  });
  live_state state(shared_, history_, incidents_, options());
  (void)point(1);
  state.sample();
  up = false;
  for (int second = 0; second < 40; ++second) {
    (void)point(1);
    (void)point(1);
    clock_->advance(1s);
    state.sample();
  }
  auto status = parse(state);
  auto points = status.objects("points");
  EXPECT_EQ(points->at(0).raw("rate"), "2");
  EXPECT_EQ(points->at(0).raw("staleRatio"), "1");
  EXPECT_EQ(status.texts("says")->at(0), "countries answers 100.0 % of its calls from the store");
  ASSERT_EQ(status.texts("incidents")->size(), 1U) << "after 30 seconds";
  EXPECT_THROW((void)point(2), std::runtime_error);
  clock_->advance(1s);
  state.sample();
  EXPECT_NE(parse(state).texts("says")->at(0).find("without an answer"), std::string::npos);
  for (int second = 0; second < 320; ++second) {
    clock_->advance(1s);
    state.sample();
  }
  EXPECT_EQ(parse(state).texts("incidents")->size(), 0U);
  EXPECT_EQ(parse(state).boolean("healthy"), true);
  const auto past = history_.read({.series = {"point.staleRatio"},
                                   .begin_time = clock_->now() - 10min,
                                   .end_time = clock_->now(),
                                   .step = 10s});
  const auto& values = past.all.at(0).values;
  EXPECT_TRUE(std::ranges::find(values, 1.0) != values.end());
}

TEST_F(LiveState, DatabaseThatHangsStopsOnlyItself) {
  auto hurried = options();
  hurried.answer_limit = 50ms;
  live_state state(shared_, history_, incidents_, std::move(hurried));
  state.start();
  // A loaded machine can be too slow for this limit, too, but not each time.
  const auto only_other_answers = [&] {
    auto stores = parse(state).objects("stores");
    return stores->at(0).boolean("available") == false &&
           stores->at(1).boolean("available") == true;
  };
  ASSERT_TRUE(eventually([&] { return main_->asked() > 2 && other_->asked() > 2; }));
  main_->hang(true);
  ASSERT_TRUE(eventually(only_other_answers));
  const auto asked_main = main_->asked();
  const auto asked_other = other_->asked();
  ASSERT_TRUE(eventually([&] { return other_->asked() > asked_other + 5; }));
  EXPECT_LE(main_->asked(), asked_main + 1) << "one question at a time";
  EXPECT_TRUE(eventually(only_other_answers));
  auto stores = parse(state).objects("stores");
  EXPECT_TRUE(stores->at(0).has("asOf")) << "the last answer is shown with its time";
  EXPECT_TRUE(stores->at(0).has("unsaved"));
  main_->hang(false);
  EXPECT_TRUE(
      eventually([&] { return state.status()->find("does not answer") == std::string::npos; }));
  main_->hang(true);
  ASSERT_TRUE(eventually(
      [&] { return state.status()->find("the database does not answer") != std::string::npos; }));
  state.stop();  // does not wait for the store
}

TEST_F(LiveState, IsPublishedOnlyWhenItChanges) {
  live_state state(shared_, history_, incidents_, options());
  state.sample();
  EXPECT_EQ(events_.states(), 1);
  for (int i = 0; i < 10; ++i) {
    clock_->advance(1s);
    state.sample();
  }
  EXPECT_EQ(events_.states(), 1) << "only the time was different";
  (void)shared_.engine->protect("new", [](int) { return std::string("{}"); });
  state.sample();
  EXPECT_EQ(events_.states(), 2);
}

TEST_F(LiveState, InstancesComeFromTheirReports) {
  const test::temporary_directory directory("live", "", test::medium::memory);
  const auto url = "sqlite://" + (directory.path() / "app.db").string();
  const auto db = open(url);
  shared_.stores.push_back(
      {.name = "app", .url = url, .database = db, .store = db.store({.create_schema = true})});
  engine application{make_memory_store()};
  const auto point = application.protect("remote", [](int) { return std::string("{}"); });
  auto reporting = std::make_unique<reporter>(
      application, db, reporter_options{.every = 1h, .instance = "web-2", .create_schema = true});
  live_state state(shared_, history_, incidents_, options());
  state.start();
  ASSERT_TRUE(eventually([&] {
    return state.status() && state.status()->find("\"id\":\"web-2\"") != std::string::npos &&
           state.status()->find("\"name\":\"remote\"") != std::string::npos;
  }));
  auto status = parse(state);
  EXPECT_EQ(status.objects("instances")->at(0).boolean("silent"), false);
  reporting.reset();
  EXPECT_TRUE(
      eventually([&] { return state.status()->find("\"instances\":[]") != std::string::npos; }));
  state.stop();
}

TEST(PointTotals, SurviveRestartsOfInstances) {
  point_totals totals;
  const auto counts = [](std::uint64_t number) {
    return std::vector<reported_point>{
        {.name = "p", .counts = {.started = number, .ended = number, .stale = number / 2}}};
  };
  auto now = std::chrono::steady_clock::time_point(1h);
  totals.add("a", counts(1'000));
  EXPECT_EQ(totals.finish(now).at(0).calls, 0U) << "what was before is not counted";
  totals.add("a", counts(1'010));
  totals.add("b", counts(5'000));
  EXPECT_EQ(totals.finish(now += 5s).at(0).calls, 10U);
  totals.add("a", counts(4));  // started again
  totals.add("b", counts(5'006));
  auto point = totals.finish(now += 5s).at(0);
  EXPECT_EQ(point.calls, 20U);
  EXPECT_EQ(point.rate, 2.0);
  EXPECT_EQ(point.instances, 2U);
  for (int i = 0; i < 20; ++i) point = totals.finish(now += 1s).at(0);
  EXPECT_EQ(point.calls, 0U);
  EXPECT_EQ(point.instances, 0U);
  EXPECT_TRUE(totals.finish(now += 2h).empty());
}

TEST(PointTotals, AReportHoldsUntilTheNextOne) {
  point_totals totals;
  const std::vector<reported_point> both{
      {.name = "a", .breaker = breaker_state::open, .running = 2}, {.name = "b", .running = 1}};
  auto now = std::chrono::steady_clock::time_point(1h);
  totals.add("web-1", both);
  totals.add("web-2", both);
  (void)totals.finish(now);
  totals.repeat("web-1");
  auto points = totals.finish(now += 1s);
  EXPECT_EQ(points.at(0).instances, 1U) << "the other one is silent";
  EXPECT_EQ(points.at(0).breaker, breaker_state::open);
  EXPECT_EQ(points.at(1).running, 1U);
  totals.repeat("web-1");
  totals.add("web-2", {{.name = "b", .running = 5}});
  points = totals.finish(now += 1s);
  EXPECT_EQ(points.at(0).instances, 1U) << "web-2 reports this point no more";
  EXPECT_EQ(points.at(1).instances, 2U);
  EXPECT_EQ(points.at(1).running, 6U);
  totals.repeat("unknown");
  EXPECT_EQ(totals.finish(now += 1s).at(0).instances, 0U);
}

TEST(PointTotals, FollowAThousandPointsOfTwoHundredInstances) {
  point_totals totals;
  std::vector<reported_point> points;
  for (int i = 0; i < 1'000; ++i) points.push_back({.name = "point " + std::to_string(i)});
  auto now = std::chrono::steady_clock::time_point(1h);
  for (const std::uint64_t calls : {0U, 10U}) {
    for (auto& point : points) point.counts = {.started = calls, .ended = calls};
    for (int i = 0; i < 200; ++i) totals.add("web-" + std::to_string(i), points);
    const auto samples = totals.finish(now += 10s);
    ASSERT_EQ(samples.size(), 1'000U);
    for (const auto& sample : samples) {
      ASSERT_EQ(sample.instances, 200U);
      ASSERT_EQ(sample.calls, 200 * calls);
    }
  }
}

TEST(PointTotals, ShowTheWorstBreaker) {
  point_totals totals;
  totals.add("a", {{.name = "p", .breaker = breaker_state::open}});
  totals.add("b", {{.name = "p", .breaker = breaker_state::half_open}});
  EXPECT_EQ(totals.finish({}).at(0).breaker, breaker_state::open);
}

/// Calls endpoints without the router.
class LiveEndpoints : public LiveState {
 protected:
  server_response call(std::string_view method, std::string_view path,
                       std::vector<std::pair<std::string, std::string>> query = {},
                       std::string body = {}, std::string tenant = {}) {
    const auto rows = live_endpoints({state_, hub_, history_, incidents_, shared_});
    const auto row = std::ranges::find_if(
        rows, [&](const endpoint& each) { return each.method == method && each.path == path; });
    if (row == rows.end()) throw std::logic_error("no such row");
    api_request request;
    request.caller = {.name = "ann", .role = role::operator_, .identified = true};
    request.caller.tenant = std::move(tenant);
    request.query_parameters = std::move(query);
    request.path_parameters = {{"id", incidents_.open().empty() ? "none" : incidents_.open()[0]}};
    request.body = std::move(body);
    return row->answer(request);
  }
  event_hub hub_{};
  live_state state_{shared_, history_, incidents_, options()};
};

TEST_F(LiveEndpoints, StatusAndHistory) {
  EXPECT_TRUE(failure_of([&] { call("GET", "/v1/status"); }).transient());
  state_.sample();
  EXPECT_EQ(call("GET", "/v1/status").body, *state_.status());
  auto history = json_object::parse(
      call("GET", "/v1/history", {{"series", "store.available:main"}, {"step", "1m"}}).body);
  EXPECT_EQ(history.raw_elements("at")->size(), 61U);
  auto series = history.objects("series");
  EXPECT_EQ(series->at(0).text("name"), "store.available");
  EXPECT_EQ(series->at(0).object("labels")->text("store"), "main");
  EXPECT_EQ(series->at(0).raw_elements("values")->back(), "0") << "not asked";
  EXPECT_EQ(series->at(0).raw_elements("values")->front(), "null");
  EXPECT_EQ(failure_of([&] { call("GET", "/v1/history"); }).path(), "series");
  EXPECT_EQ(failure_of([&] {
              call("GET", "/v1/history", {{"series", "x"}, {"from", "yesterday"}});
            }).code(),
            errc::invalid_argument);
  for (const auto* path : {"/v1/status", "/v1/history", "/v1/incidents"})
    EXPECT_EQ(failure_of([&] { call("GET", path, {}, {}, "acme"); }).code(), errc::permission);
}

TEST_F(LiveEndpoints, IncidentsAndNotes) {
  EXPECT_EQ(call("GET", "/v1/incidents").body, R"({"items":[]})");
  EXPECT_EQ(failure_of([&] { call("GET", "/v1/incidents/{id}"); }).code(), errc::not_found);
  auto now = clock_->now();
  for (int i = 0; i < 40; ++i)
    incidents_.observe(now += 1s, {{"store", "main", "main does not answer"}});
  EXPECT_EQ(call("POST", "/v1/incidents/{id}/notes", {}, R"({"text":"on it"})").status, 201);
  EXPECT_EQ(failure_of([&] {
              call("POST", "/v1/incidents/{id}/notes", {}, R"({"text":"x","txt":1})");
            }).code(),
            errc::invalid_argument);
  auto list = json_object::parse(call("GET", "/v1/incidents", {{"limit", "1"}}).body);
  EXPECT_EQ(list.objects("items")->at(0).integer("entries"), 2);
  const auto json = call("GET", "/v1/incidents/{id}").body;
  EXPECT_NE(json.find("\"subject\":\"ann\",\"text\":\"on it\""), std::string::npos) << json;
  const auto markdown = call("GET", "/v1/incidents/{id}", {{"format", "markdown"}});
  EXPECT_EQ(markdown.fields.find("Content-Type"), "text/markdown; charset=utf-8");
  EXPECT_NE(markdown.body.find("| note | ann | on it |"), std::string::npos) << markdown.body;
  EXPECT_EQ(failure_of([&] { call("GET", "/v1/incidents/{id}", {{"format", "pdf"}}); }).path(),
            "format");
}

}  // namespace
