// Bulk actions: their states, their limits, and the end of the server.

#include "serve/api/job_runner.hpp"

#include <holdfast/error.hpp>

#include "support/eventually.hpp"
#include "support/failure_of.hpp"
#include "support/outbox_api.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

namespace {

using namespace holdfast;
using namespace holdfast::detail::serve;
using namespace std::chrono_literals;

job_state state_of(const job_runner& runner, const std::string& id) {
  const auto status = runner.find(id);
  return status ? status->state : job_state::failed;
}

bool ends(const job_runner& runner, const std::string& id) {
  return test::eventually([&] { return state_of(runner, id) != job_state::running; });
}

job_definition endless(std::string resource, std::atomic<int>& steps) {
  return {.kind = "test.endless",
          .subject = resource,
          .resource = resource,
          .actor = {.name = "ann"},
          .step = [&steps] {
            ++steps;
            return job_step{.examined = 2, .changed = 1};
          }};
}

TEST(JobRunner, RunsStepsToTheEndAndRecordsThem) {
  test::kept_audit audit;
  test::kept_events events;
  job_runner runner({.audit = &audit, .events = &events});
  int step = 0;
  const auto id =
      runner.start({.kind = "test.count",
                    .subject = "s",
                    .resource = "r",
                    .actor = {.name = "ann"},
                    .matched = 3,
                    .step = [&step] {
                      ++step;
                      return job_step{.examined = 10,
                                      .changed = step == 2 ? 0U : 5U,
                                      .finished = step == 3,
                                      .result = "{\"step\":" + std::to_string(step) + "}"};
                    }});
  ASSERT_TRUE(ends(runner, id));
  const auto status = *runner.find(id);
  EXPECT_EQ(status.state, job_state::done);
  EXPECT_EQ(status.steps, 3U);
  EXPECT_EQ(status.examined, 30U);
  EXPECT_EQ(status.changed, 10U);
  EXPECT_EQ(status.result, "{\"step\":3}");
  const auto entries = audit.of("test.count");
  ASSERT_EQ(entries.size(), 3U);
  EXPECT_EQ(entries[0].caller, "ann");
  EXPECT_EQ(entries[0].count, 5U);
  EXPECT_EQ(entries[2].count, 10U);
  EXPECT_EQ(entries[2].result, "job " + id + " done");
  ASSERT_TRUE(test::eventually([&] { return events.jobs().size() == 3; }));
  EXPECT_EQ(nlohmann::json::parse(events.jobs().back())["state"], "done");
}

/// Notes the state that the job has when a record of it is written.
class state_audit final : public audit_log {
 public:
  using audit_log::record;
  void record(audit_entry entry) noexcept override {
    const auto id = entry.result.substr(4, entry.result.find(' ', 4) - 4);
    states.push_back(state_of(*runner, id));
  }

  const job_runner* runner = nullptr;
  std::vector<job_state> states{};
};

TEST(JobRunner, RecordsTheEndBeforeItIsSeen) {
  state_audit audit;
  job_runner runner({.audit = &audit});
  audit.runner = &runner;
  const auto id = runner.start(
      {.kind = "test.once", .resource = "r", .step = [] { return job_step{.finished = true}; }});
  ASSERT_TRUE(ends(runner, id));
  EXPECT_EQ(audit.states, std::vector{job_state::running});
}

TEST(JobRunner, AFailureEndsAJobAndIsSaid) {
  std::atomic<int> steps = 0;  // before the runner, whose threads use it
  test::kept_audit audit;
  job_runner runner({.audit = &audit});
  const auto id = runner.start({.kind = "test.fail", .resource = "r", .step = []() -> job_step {
                                  throw error(errc::unavailable, "the database is down");
                                }});
  ASSERT_TRUE(ends(runner, id));
  EXPECT_EQ(state_of(runner, id), job_state::failed);
  EXPECT_NE(runner.find(id)->reason.find("the database is down"), std::string::npos);
  EXPECT_EQ(audit.of("test.fail").size(), 1U);
  // The resource is free again.
  EXPECT_TRUE(runner.stop(runner.start(endless("r", steps)), "end"));
}

TEST(JobRunner, OneJobForEachResourceAndSixteenInAll) {
  std::atomic<int> steps = 0;
  job_runner runner({});
  for (int i = 0; i < 16; ++i) (void)runner.start(endless("r" + std::to_string(i), steps));
  EXPECT_EQ(test::failure_of([&] { (void)runner.start(endless("r0", steps)); }).code(),
            errc::duplicate);
  const auto refused = test::failure_of([&] { (void)runner.start(endless("other", steps)); });
  EXPECT_EQ(refused.code(), errc::unavailable);
  EXPECT_TRUE(refused.transient());
  const auto id = runner.list().back().id;
  EXPECT_TRUE(runner.stop(id, "end"));
  ASSERT_TRUE(ends(runner, id));
  EXPECT_FALSE(runner.stop(id, "again"));
  EXPECT_FALSE(runner.stop("j-none", "end"));
  (void)runner.start(endless("other", steps));
}

TEST(JobRunner, TheEndOfTheServerStopsJobsAfterTheirStep) {
  std::atomic<int> steps = 0;
  test::kept_audit audit;
  job_runner runner({.audit = &audit});
  const auto id = runner.start(endless("r", steps));
  ASSERT_TRUE(test::eventually([&] { return steps > 2; }));
  runner.stop_all();
  EXPECT_EQ(runner.wait_for_end(std::chrono::steady_clock::now() + 60s), 0U);
  const auto status = *runner.find(id);
  EXPECT_EQ(status.state, job_state::stopped);
  EXPECT_EQ(status.changed, static_cast<std::uint64_t>(steps));
  EXPECT_EQ(status.reason, "the server stops; start the job again to continue");
  EXPECT_NE(audit.of("test.endless").back().result.find("stopped: the server stops"),
            std::string::npos);
  EXPECT_EQ(test::failure_of([&] { (void)runner.start(endless("r", steps)); }).code(),
            errc::unavailable);
}

TEST(JobRunner, PausesAsLongAsAStepTook) {
  std::atomic<int> steps = 0;
  std::chrono::steady_clock::duration worked{};
  job_runner runner({});
  const auto begin = std::chrono::steady_clock::now();
  const auto id = runner.start({.resource = "r", .step = [&] {
                                  const auto start = std::chrono::steady_clock::now();
                                  std::this_thread::sleep_for(5ms);
                                  worked += std::chrono::steady_clock::now() - start;
                                  return job_step{.finished = ++steps == 10};
                                }});
  ASSERT_TRUE(ends(runner, id));
  // Nine pauses between ten steps.
  EXPECT_GE(std::chrono::steady_clock::now() - begin, worked * 19 / 10);
}

TEST(JobRunner, ForgetsTheOldestThatHaveEnded) {
  job_runner runner({.max_ended = 3});
  std::vector<std::string> ids;
  for (int i = 0; i < 10; ++i) {
    ids.push_back(
        runner.start({.resource = "r", .step = [] { return job_step{.finished = true}; }}));
    ASSERT_TRUE(ends(runner, ids.back()));
  }
  EXPECT_LE(runner.list().size(), 4U);
  EXPECT_FALSE(runner.find(ids.front()));
  EXPECT_TRUE(runner.find(ids.back()));
}

}  // namespace
