// What a worker says, and what it does when the store is slow or loses an answer. Without threads:
// an outbox in memory, a virtual clock, and tasks that run when the test runs them.

#include <holdfast/outbox/memory.hpp>
#include <holdfast/worker.hpp>

#include "outbox/memory/backend.hpp"
#include "outbox/worker/core.hpp"
#include "support/manual_executor.hpp"
#include "support/virtual_clock.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace std::chrono_literals;
using holdfast::delivery;
using holdfast::log_level;
using holdfast::outcome;
using holdfast::worker_options;
using holdfast::detail::outbox::memory_backend;
using holdfast::detail::outbox::poll_status;
using holdfast::detail::outbox::worker_core;
using holdfast::test::manual_executor;
using holdfast::test::virtual_clock;
using ::testing::ElementsAre;

struct logged_record {
  log_level level;
  std::string message;
  std::map<std::string, std::string> fields;
};

/// A backend with a slow or unreliable settle.
class settling_backend final : public memory_backend {
 public:
  using memory_backend::memory_backend;
  holdfast::settled settle(std::size_t lane, holdfast::fence token,
                           std::span<const holdfast::settlement> settlements,
                           const std::optional<holdfast::run_request>& next,
                           const holdfast::publish_terms& terms) override {
    auto result = memory_backend::settle(lane, token, settlements, next, terms);
    if (after_settle) after_settle();
    return result;
  }
  std::vector<holdfast::receipt> publish(std::size_t lane, std::span<const holdfast::event> events,
                                         const holdfast::publish_terms& terms) override {
    std::size_t bytes = 0;
    for (const auto& event : events) bytes += event.payload.size();
    published_bytes.push_back(bytes);
    return memory_backend::publish(lane, events, terms);
  }
  std::function<void()> after_settle{};
  std::vector<std::size_t> published_bytes{};
};

class WorkerReport : public ::testing::Test {
 protected:
  std::shared_ptr<virtual_clock> clock_ = std::make_shared<virtual_clock>();
  std::shared_ptr<manual_executor> executor_ = std::make_shared<manual_executor>(clock_);
  std::shared_ptr<settling_backend> store_ =
      std::make_shared<settling_backend>(holdfast::memory_outbox_options{.clock = clock_});
  holdfast::outbox outbox_{store_};
  std::vector<logged_record> log_{};
  std::vector<std::string> seen_{};

  void TearDown() override { executor_->clear(); }

  worker_options with_log(worker_options options = {}) {
    options.clock = clock_;
    options.executor = executor_;
    options.handling.backoff = {.first = 1s, .longest = 1s, .jitter = 0};
    options.handling.max_attempts = 0;
    options.log = [this](const holdfast::log_record& record) {
      logged_record copy{
          .level = record.level, .message = std::string(record.message), .fields = {}};
      for (const auto& [name, value] : record.fields) copy.fields.emplace(name, value);
      log_.push_back(std::move(copy));
    };
    return options;
  }
  void publish(int count, const std::string& type = "t", const std::string& key = {}) const {
    for (int i = 0; i < count; ++i)
      outbox_.publish({.type = type, .key = key, .payload = std::to_string(i)});
  }
  void work(worker_core& worker) const {
    for (int i = 0; i < 1000; ++i) {
      const auto status = worker.poll_lane(0).status;
      executor_->run_all();
      if (status != poll_status::events && status != poll_status::locked_out) return;
    }
    FAIL() << "the worker does not finish";
  }
  std::vector<logged_record> logged(log_level level, const std::string& part) const {
    std::vector<logged_record> matches;
    for (const auto& record : log_) {
      if (record.level == level && record.message.find(part) != std::string::npos)
        matches.push_back(record);
    }
    return matches;
  }
};

TEST_F(WorkerReport, WarnsAtTheFirstFailureThenOnceAMinute) {
  publish(1);
  publish(1, "other");
  const auto worker = worker_core::create(
      outbox_, [](const delivery&) { return outcome::retry("no route to host"); }, with_log());
  work(*worker);
  auto warnings = logged(log_level::warning, "fail");
  ASSERT_EQ(warnings.size(), 2U) << "one for each type";
  EXPECT_EQ(warnings[0].fields["why"], "no route to host");
  EXPECT_EQ(warnings[0].fields["failures"], "1");
  EXPECT_NE(warnings[0].fields["type"], warnings[1].fields["type"]);
  for (int i = 0; i < 59; ++i) {
    clock_->advance(1s);
    work(*worker);
  }
  EXPECT_EQ(logged(log_level::warning, "fail").size(), 2U);
  clock_->advance(2s);
  work(*worker);
  warnings = logged(log_level::warning, "fail");
  ASSERT_EQ(warnings.size(), 4U);
  EXPECT_EQ(warnings.back().fields["failures"], "60");
}

TEST_F(WorkerReport, SaysWhenDeliveriesSucceedAgain) {
  publish(1);
  int calls = 0;
  const auto worker = worker_core::create(
      outbox_,
      [&](const delivery&) {
        return ++calls < 4 ? outcome::throttled(1s, "busy") : outcome::done();
      },
      with_log());
  for (int i = 0; i < 4; ++i) {
    work(*worker);
    EXPECT_EQ(logged(log_level::info, "again").size(), i < 3 ? 0U : 1U);
    clock_->advance(1s);
  }
  ASSERT_EQ(logged(log_level::info, "again").size(), 1U);
  EXPECT_EQ(logged(log_level::info, "again").front().fields["failures"], "3");
  publish(10);
  work(*worker);
  EXPECT_EQ(logged(log_level::info, "again").size(), 1U);
}

TEST_F(WorkerReport, FlappingDoesNotFloodTheLog) {
  int calls = 0;
  const auto worker = worker_core::create(
      outbox_,
      [&](const delivery&) { return ++calls % 2 == 0 ? outcome::done() : outcome::retry("no"); },
      with_log());
  for (int i = 0; i < 30; ++i) {
    publish(1);
    work(*worker);
    clock_->advance(1s);
  }
  EXPECT_EQ(logged(log_level::warning, "fail").size(), 1U);
  EXPECT_EQ(logged(log_level::info, "again").size(), 1U);
}

TEST_F(WorkerReport, ASecondWorkerOnAHeldLaneSaysSo) {
  const auto handler = [](const delivery&) { return outcome::done(); };
  const auto first = worker_core::create(outbox_, handler, with_log());
  const auto second = worker_core::create(outbox_, handler, with_log());
  EXPECT_EQ(first->poll_lane(0).status, poll_status::nothing);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(second->poll_lane(0).status, poll_status::locked_out);
    first->renew_leases();
    second->renew_leases();
    clock_->advance(1s);
  }
  const auto records = logged(log_level::info, "hold all lanes");
  ASSERT_EQ(records.size(), 1U);
  EXPECT_FALSE(records.front().fields.at("holder").empty());
}

TEST_F(WorkerReport, EveryTypeWithoutAHandlerIsReportedAndCounted) {
  publish(1, "first");
  publish(1, "second");
  const auto worker = worker_core::create(outbox_, {}, with_log());
  work(*worker);
  std::vector<std::string> types;
  for (const auto& record : logged(log_level::warning, "no handler"))
    types.push_back(record.fields.at("type"));
  EXPECT_THAT(types, ::testing::UnorderedElementsAre("first", "second"));
  EXPECT_EQ(worker->count().unhandled, 2U);
}

/// The thread that renews leases may hang. The worker knows when a lease has ended without it.
TEST_F(WorkerReport, DoesNotBeginEventsWhoseLeaseHasEnded) {
  auto options = with_log({.lease = 10s, .compete = true});
  bool slow = false;
  const auto worker = worker_core::create(
      outbox_,
      [&](const delivery& d) {
        if (slow) clock_->advance(11s);
        slow = false;
        seen_.push_back(d.event().payload);
        return outcome::done();
      },
      options);
  publish(100);
  work(*worker);  // measures the handler, so that batches have several events
  seen_.clear();
  publish(3);
  slow = true;
  EXPECT_EQ(worker->poll_lane(0).status, poll_status::events);
  executor_->run_all();
  EXPECT_EQ(seen_.size(), 1U) << "the leases of the others had ended";
  EXPECT_GE(worker->count().fenced, 2U);
  work(*worker);
  EXPECT_EQ(outbox_.admin().stats().events, 0U);
}

TEST_F(WorkerReport, PaceCountsSettling) {
  const auto handler = [this](const delivery&) {
    clock_->advance(1ms);
    return outcome::done();
  };
  const auto worker =
      worker_core::create(outbox_, handler, with_log({.lease = 10min, .lock_time = 10min}));
  publish(3000);
  store_->after_settle = [&] { clock_->advance(500ms); };
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(worker->poll_lane(0).status, poll_status::events);
    executor_->run_all();
  }
  ASSERT_EQ(worker->poll_lane(0).status, poll_status::events);
  // Each of four threads handles and settles 5 events in half a second.
  EXPECT_LE(worker->in_flight(), 40U) << "five seconds of work were claimed";
}

/// The answer that has the next run of a key is lost. The run waits, but not for a whole lease.
TEST_F(WorkerReport, ALostAnswerDoesNotDelayTheNextRunForALease) {
  publish(2, "t", "k");
  bool lose = true;
  store_->after_settle = [&] {
    if (std::exchange(lose, false))
      throw holdfast::error(holdfast::errc::unavailable, "connection lost",
                            {.transient = true, .in_doubt = true});
  };
  const auto worker = worker_core::create(
      outbox_,
      [&](const delivery& d) {
        seen_.push_back(d.event().payload);
        return outcome::done();
      },
      with_log({.lease = 30s, .lock_time = 60s, .run = 1}));
  work(*worker);
  EXPECT_THAT(seen_, ElementsAre("0"));
  clock_->advance(6s);
  work(*worker);
  EXPECT_THAT(seen_, ElementsAre("0", "1"));
}

TEST_F(WorkerReport, PublishAllIsCutBySize) {
  std::vector<holdfast::event> events;
  for (int i = 0; i < 100; ++i)
    events.push_back({.type = "t",
                      .key = "k",
                      .payload = std::string(200'000, 'x'),
                      .content_type = "text/plain"});
  for (const auto& receipt : outbox_.publish_all(std::move(events))) EXPECT_TRUE(receipt.safe());
  EXPECT_GE(store_->published_bytes.size(), 5U);
  for (const auto bytes : store_->published_bytes) EXPECT_LE(bytes, std::size_t{4} << 20U);
  EXPECT_EQ(outbox_.admin().stats().events, 100U);
}

}  // namespace
