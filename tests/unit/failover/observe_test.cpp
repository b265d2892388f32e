// What an operator sees: numbers, health, report; and that none of it can break a call. And the end
// of an engine.

#include <holdfast/store/compose.hpp>

#include "support/eventually.hpp"
#include "support/gate.hpp"
#include "unit/failover/fixture.hpp"

#include <algorithm>
#include <future>
#include <latch>
#include <thread>

namespace holdfast::test {
namespace {

class FailoverObserved : public failover_test {};

TEST_F(FailoverObserved, EveryCallEndsInOneWay) {
  const auto point = protect();
  (void)point("FR");
  down = true;
  (void)point("FR");
  EXPECT_THROW((void)point("DE"), outage);
  auto pending = std::optional(point.begin("FR"));
  EXPECT_EQ(status().running, 1U);
  pending.reset();
  const auto n = numbers();
  EXPECT_EQ(n.started, 4U);
  EXPECT_EQ(n.live, 1U);
  EXPECT_EQ(n.stale, 1U);
  EXPECT_EQ(n.failed, 1U);
  EXPECT_EQ(n.abandoned, 1U);
  EXPECT_EQ(status().running, 0U);
}

TEST_F(FailoverObserved, TheSeriesAreThere) {
  const auto registry = make_prometheus_registry();
  make({.metrics = registry});
  const auto point = protect("country-by-code",
                             {.domain = "country", .expiry = 24h, .breaker = breaker_options{}});
  (void)point("FR");
  clock->advance(90s);
  down = true;
  (void)point("FR");
  EXPECT_THROW((void)point("DE"), outage);
  current_engine().report();
  const auto text = registry->text();
  for (
      const char* each : {
          R"(holdfast_failover_calls_total{domain="country",name="country-by-code",result="live"} 1)",
          R"(holdfast_failover_calls_total{domain="country",name="country-by-code",result="stale"} 1)",
          R"(holdfast_failover_user_impact_total{domain="country",impact="blocked",name="country-by-code"} 1)",
          R"(holdfast_failover_user_impact_total{domain="country",impact="unblocked",name="country-by-code"} 2)",
          R"(holdfast_failover_stores_total{domain="country",name="country-by-code",result="stored"} 1)",
          R"(holdfast_failover_unserved_total{domain="country",name="country-by-code",reason="not_found"} 1)",
          R"(holdfast_failover_exceptions_total{domain="country",exception_type="holdfast::test::outage",name="country-by-code"} 2)",
          R"(holdfast_failover_served_age_seconds_bucket{domain="country",name="country-by-code",le="300"} 1)",
          R"(holdfast_failover_served_age_seconds_bucket{domain="country",name="country-by-code",le="60"} 0)",
          R"(holdfast_failover_payload_bytes_count{domain="country",name="country-by-code"} 1)",
          R"(holdfast_failover_upstream_seconds_count{domain="country",name="country-by-code",result="failure"} 2)",
          R"(holdfast_failover_operation_seconds_count{action="recover",domain="country",name="country-by-code"} 2)",
          R"(holdfast_failover_breaker_state{domain="country",name="country-by-code"} 0)",
          R"(holdfast_failover_expiry_seconds{domain="country",name="country-by-code"} 86400)",
          R"(holdfast_failover_points 1)",
          R"(holdfast_failover_healthy 1)",
          R"(holdfast_failover_unsaved 0)",
          R"(holdfast_failover_oldest_unsaved_seconds 0)",
          R"(holdfast_failover_coalesced_total{domain="country",kind="call",name="country-by-code"} 0)",
      }) {
    EXPECT_NE(text.find(each), std::string::npos) << each << "\nis not in\n" << text;
  }
}

TEST_F(FailoverObserved, TheHealthGaugesAreOfTheLastPeriod) {
  const auto registry = make_prometheus_registry();
  make({.metrics = registry});
  const auto point = protect();
  const auto value = [&](const std::string& name) {
    const auto text = registry->text();
    const auto position = text.find("\nholdfast_failover_" + name + "{");
    return position == std::string::npos
               ? std::string("missing")
               : text.substr(text.find("} ", position) + 2, 4)
                     .substr(0, text.substr(text.find("} ", position) + 2, 4).find('\n'));
  };
  EXPECT_EQ(value("api_health"), "1");
  (void)point("FR");
  down = true;
  (void)point("FR");
  EXPECT_THROW((void)point("DE"), outage);
  EXPECT_THROW((void)point("DE"), outage);
  current_engine().report();
  EXPECT_EQ(value("api_health"), "0.5");
  EXPECT_EQ(value("stale_ratio"), "0.25");
  current_engine().report();
  EXPECT_EQ(value("api_health"), "1");
}

struct broken_counter : metrics::counter {
  void add(std::uint64_t) override { throw std::runtime_error("sink"); }
};
struct broken_gauge : metrics::gauge {
  void set(double) override { throw std::runtime_error("sink"); }
  void add(double) override { throw std::runtime_error("sink"); }
};
struct broken_histogram : metrics::histogram {
  void observe(double) override { throw std::runtime_error("sink"); }
};
struct broken_sink : metrics_sink {
  std::shared_ptr<metrics::counter> make_counter(std::string_view, metrics::labels,
                                                 std::string_view) override {
    return std::make_shared<broken_counter>();
  }
  std::shared_ptr<metrics::gauge> make_gauge(std::string_view, metrics::labels,
                                             std::string_view) override {
    return std::make_shared<broken_gauge>();
  }
  std::shared_ptr<metrics::histogram> make_histogram(std::string_view, metrics::labels,
                                                     std::string_view,
                                                     std::span<const double>) override {
    return std::make_shared<broken_histogram>();
  }
};

TEST_F(FailoverObserved, SinksThatThrowCostACountNotACall) {
  make({.log = [](const log_record&) { throw std::runtime_error("log"); },
        .metrics = std::make_shared<broken_sink>()});
  const auto point = protect();
  EXPECT_TRUE(point("FR").live());
  down = true;
  EXPECT_EQ(point("FR")->name, "France");
  EXPECT_THROW((void)point("DE"), outage);
  EXPECT_NO_THROW(current_engine().report());
  EXPECT_GT(current_engine().health().sink_failures, 5U);
}

TEST_F(FailoverObserved, HealthAsksTheStore) {
  make();
  auto health = current_engine().health();
  EXPECT_TRUE(health.healthy) << "an engine without points is well";
  EXPECT_EQ(health.points, 0U);
  (void)protect();
  EXPECT_EQ(current_engine().health().points, 1U);
}

TEST_F(FailoverObserved, AStoreThatDoesNotAnswerIsUnhealthyWithinTheReadDeadline) {
  struct hung final : store {
    void put(std::span<const entry>) override {}
    std::optional<entry> find(place, std::string_view) override { return {}; }
    entry_page find_all(place, std::size_t, std::string_view) override { return {}; }
    bool erase(place, std::string_view, timestamp) override { return false; }
    std::size_t expire(timestamp, std::size_t) override { return 0; }
    std::uint64_t count(place) override { return 0; }
    store_health health() noexcept override {
      go.wait();
      return {.available = true};
    }
    std::latch go{1};
  };
  const auto store = std::make_shared<hung>();
  {
    holdfast::engine e(
        store, {.storage = {.write_behind = std::nullopt, .read_deadline = 20ms}, .linger = 10ms});
    const auto health = e.health();
    EXPECT_FALSE(health.healthy);
    EXPECT_NE(health.problem.find("read deadline"), std::string::npos);
  }
  store->go.count_down();
}

TEST_F(FailoverObserved, AReportIsSaidByItselfAndNamesThePoint) {
  const auto run = std::make_shared<manual_executor>(clock);
  make({.threads = {.executor = run}, .reports = {.every = 60s}});
  const auto point = protect("country-by-code", {.domain = "country"});
  (void)point("FR");
  EXPECT_FALSE(logged("failover report"));
  run->advance(60s);
  EXPECT_TRUE(
      logged("failover report name=country-by-code domain=country expiry=3600 s breaker=closed "
             "calls=1 live=1"));
  log.clear();
  run->advance(60s);
  EXPECT_TRUE(logged("failover report"));
}

TEST_F(FailoverObserved, ReportsComeThoughTheClockIsFarAheadOfTheMachine) {
  clock = std::make_shared<virtual_clock>(virtual_clock::default_start(), virtual_clock::far_ahead);
  make({.reports = {.every = 1ms}});
  const auto point = protect();
  EXPECT_TRUE(eventually([&] { return logged("failover report"); }));
}

TEST_F(FailoverObserved, ReportsByCronFollowTheWallClock) {
  const auto run = std::make_shared<manual_executor>(clock);
  make({.threads = {.executor = run}, .reports = {.cron = "0 0 3 * * *"}});
  const auto point = protect();
  const auto reports = [this] {
    const auto is_report = [](const std::string& line) {
      return line.starts_with("failover report");
    };
    return std::count_if(log.begin(), log.end(), is_report);
  };
  run->advance(2h);
  clock->jump(59min);  // the clock is set
  EXPECT_EQ(reports(), 0);
  run->advance(1min);
  EXPECT_EQ(reports(), 1) << "at three by the wall clock, an hour earlier than it looked at first";
  run->advance(24h);
  EXPECT_EQ(reports(), 2) << "once a day";
}

TEST_F(FailoverObserved, ReportsGoOnAfterATimerWasRefused) {
  struct full_now_and_then final : executor {
    explicit full_now_and_then(std::shared_ptr<manual_executor> behind) : run(std::move(behind)) {}
    bool post(task work) override { return run->post(std::move(work)); }
    bool post_after(std::chrono::steady_clock::duration delay, task work) override {
      return !full && run->post_after(delay, std::move(work));
    }
    std::shared_ptr<manual_executor> run;
    bool full = true;
  };
  const auto run = std::make_shared<manual_executor>(clock);
  const auto full = std::make_shared<full_now_and_then>(run);
  make({.threads = {.executor = full}, .reports = {.every = 60s}});
  EXPECT_TRUE(logged("the next call schedules the next report"));
  const auto point = protect();
  (void)point("FR");
  EXPECT_EQ(run->size(), 0U) << "refused again";
  for (int i = 0; i < 2; ++i) {
    full->full = false;
    (void)point("FR");
    (void)point("FR");
    EXPECT_EQ(run->size(), 1U) << "armed once";
    log.clear();
    full->full = true;  // for the one after this
    run->advance(60s);
    EXPECT_TRUE(logged("failover report"));
    EXPECT_EQ(run->size(), 0U);
  }
}

TEST_F(FailoverObserved, LogLinesAreLimited) {
  const auto point = protect();
  down = true;
  for (int i = 0; i < 100; ++i) EXPECT_THROW((void)point("FR"), outage);
  EXPECT_EQ(log.size(), 1U);
}

TEST_F(FailoverObserved, AReportCountsTheEntriesThatTheStoreHas) {
  const auto registry = make_prometheus_registry();
  const auto gauge = [&](const std::string& name, const std::string& domain) {
    const auto text = registry->text();
    const auto series =
        "holdfast_failover_live_entries{domain=\"" + domain + "\",name=\"" + name + "\"} ";
    const auto position = text.find(series);
    return position == std::string::npos
               ? "none"
               : text.substr(position + series.size(),
                             text.find('\n', position) - position - series.size());
  };
  int counts = 0;
  const auto begin = [&](engine_options options, bool waits) {
    options.metrics = registry;
    make(std::move(options), waits);
    shaky->before = [&](faulty_store::operation operation, std::span<const entry>) {
      if (operation == faulty_store::operation::count) ++counts;
      if (store_down) throw error(errc::unavailable, "the store is down");
    };
    return protect("country-by-code", {.domain = "country"});
  };
  {
    const auto point = begin({}, false);
    (void)protect("list", {.domain = "country"});
    (void)point("FR");
    (void)point("DE");
    down = true;
    (void)point("DE");
    down = false;
    EXPECT_EQ(counts, 0) << "no call counts";
    current_engine().report();
    EXPECT_EQ(counts, 1) << "once for all points of a domain";
    EXPECT_EQ(gauge("country-by-code", "country"), "2");
    EXPECT_EQ(gauge("list", "country"), "2");
    store_down = true;
    EXPECT_NO_THROW(current_engine().report());
    store_down = false;
  }
  counts = 0;
  {
    const auto point = begin({}, true);
    current_engine().report();
    EXPECT_EQ(counts, 0) << "a database is not asked unasked";
  }
  {
    const auto point = begin(
        {.storage = {.write_behind = std::nullopt}, .reports = {.count_entries = true}}, true);
    (void)point("IT");
    current_engine().report();
    EXPECT_EQ(counts, 1);
    EXPECT_EQ(gauge("country-by-code", "country"), "3");
  }
  {
    const auto point = begin({.caller = {.tenant = [] { return std::string("acme"); }}}, false);
    counts = 0;
    current_engine().report();
    EXPECT_EQ(counts, 0) << "each tenant has a part, and nobody knows them all";
  }
  finish();
}

class FailoverClose : public failover_test {};

TEST_F(FailoverClose, ClosingWaitsForCallsWritesWhatIsQueuedAndRefusesMore) {
  make({}, true);
  const auto point = protect();
  (void)point("FR");
  const auto report = current_engine().close(clock->steady() + 20s);
  EXPECT_TRUE(report.clean());
  EXPECT_TRUE(row("FR")) << "drained";
  try {
    (void)point("FR");
    FAIL();
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::unavailable);
  }
  EXPECT_THROW((void)protect("another"), error);
  EXPECT_THROW((void)point.begin("FR"), error);
  EXPECT_TRUE(current_engine().close(clock->steady() + 1s).clean()) << "closing twice is harmless";
}

TEST_F(FailoverClose, WhatStillRunsIsNamed) {
  const auto held = std::make_shared<std::latch>(1);
  const auto inside = std::make_shared<std::atomic<bool>>(false);
  const auto ended = std::make_shared<std::atomic<bool>>(false);
  const auto point = current_engine().protect("hung", {.deadline = 10ms},
                                              [held, inside, ended](int) -> std::string {
                                                *inside = true;
                                                held->wait();
                                                *ended = true;
                                                return "late";
                                              });
  EXPECT_THROW((void)point(1), error);
  EXPECT_TRUE(eventually([&] { return inside->load(); }));
  const auto began = std::chrono::steady_clock::now();
  const auto report = current_engine().close(clock->steady() + 200ms);
  EXPECT_LT(std::chrono::steady_clock::now() - began, 10s);
  ASSERT_EQ(report.still_running.size(), 1U);
  EXPECT_EQ(report.still_running[0], (close_report::running_calls{.point = "hung", .calls = 1}));
  EXPECT_FALSE(report.clean());
  held->count_down();
  EXPECT_TRUE(eventually([&] { return ended->load(); }));
}

TEST_F(FailoverClose, AHungUpstreamDoesNotHangTheDestructor) {
  const auto held = std::make_shared<std::latch>(1);
  const auto inside = std::make_shared<std::atomic<bool>>(false);
  const auto ended = std::make_shared<std::atomic<bool>>(false);
  auto began = std::chrono::steady_clock::now();
  {
    holdfast::engine e(make_memory_store(), {.linger = 50ms});
    const auto point =
        e.protect("hung", {.deadline = 10ms}, [held, inside, ended](int) -> std::string {
          *inside = true;
          held->wait();
          *ended = true;
          return "late";
        });
    EXPECT_THROW((void)point(1), error);
    // Work that has not started is not waited for
    EXPECT_TRUE(eventually([&] { return inside->load(); }));
    began = std::chrono::steady_clock::now();
  }
  EXPECT_LT(std::chrono::steady_clock::now() - began, 10s);
  held->count_down();
  EXPECT_TRUE(eventually([&] { return ended->load(); })) << "it owns what it needs to end later";
}

TEST_F(FailoverClose, CallsAreAskedToStop) {
  const auto stopped = std::make_shared<std::atomic<bool>>(false);
  const auto running = std::make_shared<std::atomic<bool>>(false);
  const auto point = current_engine().protect(
      "waiting", {}, [stopped, running](const call_context& context, int) -> std::string {
        *running = true;
        while (!context.stop.stop_requested()) std::this_thread::yield();
        *stopped = true;
        throw cancelled();
      });
  std::thread caller([&] { EXPECT_THROW((void)point(1), cancelled); });
  ASSERT_TRUE(eventually([&] { return running->load(); }));
  EXPECT_TRUE(current_engine().close(clock->steady() + 20s).clean());
  EXPECT_TRUE(stopped->load());
  caller.join();
}

TEST_F(FailoverClose, WhatCouldNotBeWrittenIsReported) {
  make({}, true);
  store_down = true;
  const auto point = protect();
  (void)point("FR");
  (void)point("DE");
  std::jthread time([this](const std::stop_token& stop) {  // the queue waits by this clock
    while (!stop.stop_requested()) {
      clock->advance(5ms);
      std::this_thread::sleep_for(1ms);
    }
  });
  const auto report = current_engine().close(clock->steady() + 100ms);
  EXPECT_EQ(report.unsaved, 2U);
  EXPECT_FALSE(report.clean());
}

TEST_F(FailoverClose, AClockThatStandsStillDoesNotHoldTheWrites) {
  make({}, true);
  store_down = true;
  (void)protect()("FR");
  auto closed = std::async(std::launch::async,
                           [this] { return current_engine().close(clock->steady() + 50ms); });
  const bool in_time = closed.wait_for(60s) == std::future_status::ready;
  EXPECT_TRUE(in_time);
  if (!in_time) clock->advance(1s);
  EXPECT_EQ(closed.get().unsaved, 1U);
}

/// A queue that was given, on the machine's clock, and an engine with another one.
class FailoverGivenQueue : public FailoverClose {
 protected:
  engine& make_over(std::chrono::steady_clock::duration steady_start) {
    clock = std::make_shared<virtual_clock>(system_clock()->now(), steady_start);
    shaky->waiting = true;
    shaky->before = [held = held](faulty_store::operation operation, std::span<const entry>) {
      if (operation == faulty_store::operation::put) held->wait();
    };
    queue = make_write_behind(shaky, {.linger = 0ms});
    engine_ =
        std::make_unique<holdfast::engine>(queue, engine_options{.clock = clock, .linger = 0ms});
    (void)engine_->protect("country-by-code", {}, [](int) { return std::string("x"); })(1);
    return *engine_;
  }
  const std::shared_ptr<gate> held = std::make_shared<gate>();
  std::shared_ptr<write_behind> queue{};
  std::unique_ptr<holdfast::engine> engine_{};
};

TEST_F(FailoverGivenQueue, IsNotWaitedForLongerThanTheDeadline) {
  auto& queued_engine = make_over(virtual_clock::far_ahead);
  const open_in_the_end release(*held);
  auto flushed =
      std::async(std::launch::async, [&] { return queued_engine.flush(clock->steady() + 50ms); });
  const bool in_time = flushed.wait_for(60s) == std::future_status::ready;
  EXPECT_TRUE(in_time) << "a moment of the engine's clock is none of the queue's";
  if (!in_time) held->open();
  EXPECT_NE(flushed.get(), in_time);
  if (in_time) {
    EXPECT_EQ(queued_engine.close(clock->steady() + 50ms).unsaved, 1U);
  }
}

TEST_F(FailoverGivenQueue, IsWaitedForAsLongAsTheDeadlineSays) {
  auto& queued_engine = make_over(0s);
  const open_in_the_end release(*held);
  std::jthread later([this] {
    std::this_thread::sleep_for(50ms);
    held->open();
  });
  EXPECT_TRUE(queued_engine.flush(clock->steady() + 20s));
}

TEST_F(FailoverClose, WhatWaitsInTheQueueOfTheGivenStoreIsUnsavedToo) {
  shaky->before = [this](faulty_store::operation, std::span<const entry>) {
    if (store_down) throw error(errc::unavailable, "the store is down", {.transient = true});
  };
  const auto with_queue = [this](bool composed) -> std::shared_ptr<store> {
    if (!composed) return make_write_behind(shaky, {.linger = 0ms});
    return compose(shaky, {.tenants = tenant_options{.tenants = {"acme"}, .default_tenant = "acme"},
                           .tiered = tiered_options{},
                           .write_behind = write_behind_options{.linger = 0ms}});
  };
  const auto until = [](std::chrono::milliseconds time) {
    return std::chrono::steady_clock::now() + time;
  };
  for (const bool composed : {false, true}) {
    for (const bool queues : {true, false}) {
      const auto store_with_queue = with_queue(composed);
      engine_options options{.linger = 0ms};
      if (!queues) options.storage.write_behind.reset();
      holdfast::engine e(store_with_queue, options);
      EXPECT_EQ(e.store(), store_with_queue) << "one queue is enough";
      const auto point =
          e.protect("country-by-code", [](const std::string& code) { return country{code, "x"}; });
      store_down = true;
      (void)point("FR");
      EXPECT_FALSE(e.flush(until(20ms)));
      EXPECT_EQ(e.health().unsaved, 1U);
      store_down = false;
      EXPECT_TRUE(e.flush(until(20s)));
      store_down = true;
      (void)point("DE");
      const auto report = e.close(until(20ms));
      EXPECT_EQ(report.unsaved, 1U);
      EXPECT_FALSE(report.clean());
      store_down = false;
      EXPECT_NO_THROW(store_with_queue->put({.name = "another",
                                             .key = "engine",
                                             .as_of = clock->now(),
                                             .expire_on = timestamp::max()}))
          << "what was given is not closed: others may use it";
    }
  }
}

TEST_F(FailoverClose, APointOutlivesItsEngine) {
  const auto point = [&] {
    holdfast::engine e(memory, {.clock = clock});
    return e.protect("short-lived", [](int n) { return std::to_string(n); });
  }();
  EXPECT_THROW((void)point(1), error);
}

}  // namespace
}  // namespace holdfast::test
