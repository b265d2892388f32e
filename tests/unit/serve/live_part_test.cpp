// How the live state is connected: jobs, metrics of event streams, what kept answers are worth.

#include "serve/live/live_part.hpp"

#include <holdfast/error.hpp>
#include <holdfast/store/memory.hpp>

#include "serve/api/endpoint_table.hpp"
#include "serve/api/job_runner.hpp"
#include "serve/api/json_reader.hpp"
#include "serve/live/event_metrics.hpp"
#include "serve/live/point_expiries.hpp"
#include "serve/live/running_jobs.hpp"
#include "serve/live/state.hpp"
#include "serve/live/state_metrics.hpp"
#include "support/eventually.hpp"
#include "support/faulty_store.hpp"
#include "support/gate.hpp"
#include "support/virtual_clock.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace {

using namespace holdfast;
using namespace holdfast::detail::serve;
using namespace std::chrono_literals;
using test::eventually;

job_definition waiting_job(test::gate& gate) {
  return {.kind = "outbox.replay",
          .subject = "orders",
          .resource = "memory:",
          .actor = {.name = "ann"},
          .matched = 12,
          .step = [&gate] {
            gate.wait();
            return job_step{.examined = 12, .changed = 5, .finished = true, .result = "{}"};
          }};
}

TEST(RunningJobs, AreShownUntilTheyEnd) {
  EXPECT_EQ(running_jobs(nullptr), "[]");
  test::gate gate;
  job_runner runner({.clock = system_clock()});
  const test::open_in_the_end opener(gate);
  EXPECT_EQ(running_jobs(&runner), "[]");
  const auto id = runner.start(waiting_job(gate));
  auto jobs = json_object::parse("{\"jobs\":" + running_jobs(&runner) + "}");
  auto items = jobs.objects("jobs");
  ASSERT_EQ(items->size(), 1U);
  EXPECT_EQ(items->at(0).text("id"), id);
  EXPECT_EQ(items->at(0).text("kind"), "outbox.replay");
  EXPECT_EQ(items->at(0).text("state"), "running");
  EXPECT_EQ(items->at(0).integer("matched"), 12);
  // Only operators see texts of a database.
  ASSERT_TRUE(runner.stop(id, "a text"));
  EXPECT_EQ(running_jobs(&runner).find("a text"), std::string::npos);
  gate.open();
  EXPECT_TRUE(eventually([&] { return running_jobs(&runner) == "[]"; }));
  EXPECT_EQ(runner.list().size(), 1U);
}

/// A snapshot with one of everything.
snapshot full_snapshot() {
  snapshot current;
  current.stores.push_back({.name = "main", .health = {.value = store_health{.available = true}}});
  outbox_numbers numbers;
  numbers.pending = 5;
  numbers.following = 2;
  numbers.parked = 3;
  numbers.tickets = 1;
  numbers.overdue = 90'500ms;
  numbers.published = 1'000'000;
  numbers.acked = 999'990;
  current.outboxes.push_back({.name = "orders", .stats = {.value = numbers}});
  current.sequences.push_back({.name = "order.id", .counter = {.last = 900}, .remaining = 0.1});
  current.sequences.push_back({.name = "endless", .counter = {.last = 7}});
  current.instances.push_back({.id = "a:1", .kind = "worker"});
  current.instances.push_back({.id = "a:2", .kind = "worker", .silent = true});
  current.instances.push_back({.id = "a:3", .kind = "planted", .healthy = false});
  return current;
}

TEST(StateMetrics, FollowTheSnapshot) {
  const auto registry = make_prometheus_registry();
  state_metrics metrics(registry);
  const auto expect_lines = [&](const std::vector<std::string>& lines) {
    const auto text = "\n" + registry->text();
    for (const auto& line : lines)
      EXPECT_NE(text.find("\nholdfast_serve_" + line + "\n"), std::string::npos) << line << text;
  };
  auto current = full_snapshot();
  metrics.update(current, 2);
  expect_lines(
      {"store_available{store=\"main\"} 1", "store_unsaved{store=\"main\"} 0",
       "outbox_available{outbox=\"orders\"} 1", "outbox_pending{outbox=\"orders\"} 7",
       "outbox_parked{outbox=\"orders\"} 3", "outbox_tickets{outbox=\"orders\"} 1",
       "outbox_overdue_seconds{outbox=\"orders\"} 90.5", "outbox_paused{outbox=\"orders\"} 0",
       // Totals of the outbox are not events of this moment.
       "outbox_published_total{outbox=\"orders\"} 0", "outbox_acked_total{outbox=\"orders\"} 0",
       "sequence_left_ratio{sequence=\"order.id\"} 0.1",
       "sequence_left_ratio{sequence=\"endless\"} NaN",
       "sequence_ids_granted_total{sequence=\"order.id\"} 0",
       "instances{kind=\"worker\",state=\"healthy\"} 1",
       "instances{kind=\"worker\",state=\"silent\"} 1",
       "instances{kind=\"other\",state=\"unhealthy\"} 1",
       "instances{kind=\"engine\",state=\"healthy\"} 0", "incidents_open 2"});
  EXPECT_EQ(registry->text().find("planted"), std::string::npos);

  auto& numbers = *current.outboxes[0].stats.value;
  numbers.published += 40;
  numbers.acked += 30;
  numbers.paused = true;
  current.sequences[0].counter.last += 50;
  metrics.update(current, 0);
  expect_lines({"outbox_published_total{outbox=\"orders\"} 40",
                "outbox_acked_total{outbox=\"orders\"} 30", "outbox_paused{outbox=\"orders\"} 1",
                "sequence_ids_granted_total{sequence=\"order.id\"} 50", "incidents_open 0"});

  // A database that does not answer keeps its last numbers; a removed sequence has none.
  current.stores[0].health.problem = "the database does not answer";
  current.outboxes[0].stats.problem = "the database does not answer";
  current.sequences.erase(current.sequences.begin());
  current.instances.clear();
  metrics.update(current, 0);
  expect_lines({"store_available{store=\"main\"} 0", "outbox_available{outbox=\"orders\"} 0",
                "outbox_parked{outbox=\"orders\"} 3",
                "sequence_left_ratio{sequence=\"order.id\"} NaN",
                "instances{kind=\"worker\",state=\"silent\"} 0"});
}

TEST(EventMetrics, FollowTheHub) {
  const auto registry = make_prometheus_registry();
  event_metrics metrics(*registry);
  EXPECT_NE(registry->text().find("\nholdfast_sse_streams 0\n"), std::string::npos);
  metrics.update({.streams = 3, .refused = 1, .published = 40, .too_large = 2, .resumed = 5});
  metrics.update({.streams = 2, .refused = 1, .published = 41, .too_large = 2, .resumed = 5});
  const auto text = registry->text();
  for (const auto* line :
       {"holdfast_sse_streams 2", "holdfast_sse_refused_total 1", "holdfast_sse_events_total 41",
        "holdfast_sse_dropped_events_total 2", "holdfast_sse_resumed_total 5"})
    EXPECT_NE(text.find(std::string("\n") + line + "\n"), std::string::npos) << line << text;
}

/// An engine of a server, which records what its answers are worth.
class LiveExpiries : public testing::Test {
 protected:
  [[nodiscard]] engine_options options() const {
    return {.clock = clock_, .insight = {.coverage = true, .sample = 1}};
  }
  [[nodiscard]] std::shared_ptr<store> memory() const {
    return make_memory_store({.clock = clock_});
  }
  std::shared_ptr<test::virtual_clock> clock_ = std::make_shared<test::virtual_clock>();
};

TEST_F(LiveExpiries, AreThoseOfTheOutlook) {
  const auto points = std::make_shared<engine>(memory(), options());
  const auto countries =
      points->protect("countries", {.expiry = 1h}, [](int) { return std::string("{}"); });
  (void)points->protect("unused", [](int) { return std::string("{}"); });
  (void)countries(1);
  clock_->advance(10min);
  (void)countries(2);
  (void)points->flush(clock_->steady() + 1min);
  point_expiries expiries(points, {.max_age = 0ms});
  EXPECT_FALSE(expiries.get("countries").first) << "not asked yet";
  expiries.ask();
  const auto times = expiries.get("countries");
  EXPECT_EQ(times.first, clock_->now() + 50min);
  ASSERT_TRUE(times.half);
  EXPECT_GE(*times.half, *times.first);
  EXPECT_FALSE(expiries.get("unused").first);
  EXPECT_FALSE(expiries.get("missing").first);
}

TEST_F(LiveExpiries, AreAskedForAgainWhenTheyAreOld) {
  const auto points = std::make_shared<engine>(memory(), options());
  const auto countries =
      points->protect("countries", {.expiry = 1h}, [](int) { return std::string("{}"); });
  point_expiries rarely(points, {.max_age = 1h});
  point_expiries always(points, {.max_age = 0ms});
  rarely.ask();
  (void)countries(1);
  (void)points->flush(clock_->steady() + 1min);
  rarely.ask();
  always.ask();
  EXPECT_FALSE(rarely.get("countries").first);
  EXPECT_TRUE(always.get("countries").first);
}

TEST_F(LiveExpiries, StayWhatTheyWereWhileTheStoreFails) {
  std::atomic<bool> down = false;
  const auto store = std::make_shared<test::faulty_store>(memory());
  store->waiting = false;  // a slow machine must not make an answer late
  store->before = [&](auto, auto) {
    if (down) throw error(errc::unavailable, "down");
  };
  const auto points = std::make_shared<engine>(store, options());
  const auto countries =
      points->protect("countries", {.expiry = 1h}, [](int) { return std::string("{}"); });
  (void)countries(1);
  (void)points->flush(clock_->steady() + 1min);
  point_expiries expiries(points, {.max_age = 0ms});
  expiries.ask();
  const auto times = expiries.get("countries");
  ASSERT_TRUE(times.first);
  down = true;
  expiries.ask();
  EXPECT_EQ(expiries.get("countries").first, times.first);
}

TEST_F(LiveExpiries, OfAnEngineThatIsGoneAreNotAskedFor) {
  auto points = std::make_shared<engine>(memory(), options());
  point_expiries expiries(points);
  points.reset();
  EXPECT_NO_THROW(expiries.ask());
}

/// The part as the server uses it, with an engine and a store in memory.
class LivePart : public LiveExpiries {
 protected:
  LivePart() {
    const auto db = open("memory:");
    shared_.clock = clock_;
    shared_.metrics = make_prometheus_registry();
    shared_.engine = std::make_shared<engine>(memory(), options());
    shared_.stores.push_back(
        {.name = "main", .url = "memory:", .database = db, .store = db.store()});
    part_->attach(shared_);
    part_->add_endpoints(table_, shared_);
  }
  ~LivePart() override {
    (void)part_->finish(std::chrono::steady_clock::now() + 1min);
    gate_.open();
  }

  /// Empty until the first sample.
  [[nodiscard]] std::string status() {
    const auto row = std::ranges::find(table_.rows(), "/v1/status", &endpoint::path);
    api_request request;
    request.caller = {.name = "ann", .role = role::viewer, .identified = true};
    try {
      return row->answer(request).body;
    } catch (const error& problem) {
      EXPECT_TRUE(problem.transient());
      return {};
    }
  }
  bool shows(const std::string& text) {
    return eventually([&] { return status().find(text) != std::string::npos; });
  }

  test::gate gate_{};
  job_runner runner_{{.clock = clock_}};
  services shared_{};
  endpoint_table table_{};
  std::unique_ptr<server_part> part_ = make_live_part();
};

TEST_F(LivePart, ListsRunningJobs) {
  shared_.jobs = &runner_;  // by another part, after the endpoints of this one
  part_->start({});
  ASSERT_TRUE(shows("\"jobs\":[]"));
  const auto id = runner_.start(waiting_job(gate_));
  EXPECT_TRUE(shows("\"jobs\":[{\"id\":\"" + id)) << status();
  gate_.open();
  EXPECT_TRUE(shows("\"jobs\":[]"));
}

TEST_F(LivePart, HasMetricsOfItsState) {
  part_->start({});
  EXPECT_TRUE(eventually([&] {
    return shared_.metrics->text().find("\nholdfast_serve_store_available{store=\"main\"} 1\n") !=
           std::string::npos;
  })) << shared_.metrics->text();
}

TEST_F(LivePart, HasMetricsOfItsStreams) {
  // The part publishes an event for each new state, too; how many depends on the machine's speed.
  constexpr int jobs = 1'000;
  for (int i = 0; i < jobs; ++i) shared_.events->publish("job", "{}");
  part_->start({});
  EXPECT_TRUE(eventually([&] {
    const std::string name = "\nholdfast_sse_events_total ";
    const auto text = shared_.metrics->text();
    const auto line = text.find(name);
    return line != std::string::npos && std::stod(text.substr(line + name.size())) >= jobs;
  })) << shared_.metrics->text();
}

TEST_F(LivePart, ShowsWhatKeptAnswersAreWorth) {
  const auto countries =
      shared_.engine->protect("countries", {.expiry = 1h}, [](int) { return std::string("{}"); });
  (void)shared_.engine->protect("unused", [](int) { return std::string("{}"); });
  (void)countries(1);
  (void)shared_.engine->flush(clock_->steady() + 1min);
  clock_->advance(1s);
  (void)countries(1);  // covered; the first one was not
  part_->start({});
  ASSERT_TRUE(shows("\"expires\":{\"first\":\"")) << status();
  EXPECT_TRUE(shows("\"coverage\":0.5")) << status();
  auto points = json_object::parse(status()).objects("points");
  EXPECT_EQ(points->at(0).object("expires")->time("first"), clock_->now() + 1h);
  EXPECT_FALSE(points->at(1).has("coverage"));
  EXPECT_FALSE(points->at(1).has("expires"));
}

}  // namespace
