// Incidents by a clock of the test: when they open and close, notes, limits, a restart.

#include <holdfast/error.hpp>

#include "serve/api/json_reader.hpp"
#include "serve/live/incidents.hpp"
#include "support/failure_of.hpp"
#include "support/temporary_directory.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace {

using namespace holdfast;
using namespace holdfast::detail::serve;
using namespace std::chrono_literals;

constexpr timestamp start = std::chrono::sys_days(std::chrono::year(2026) / 11 / 15) + 23h;
const incident_condition stale{"point", "countries", "countries answers from the store"};
const incident_condition failed{"store", "main", "main does not answer"};

std::unique_ptr<state_database> incident_database(const test::temporary_directory& directory) {
  return std::make_unique<state_database>(
      state_database_options{.url = "sqlite://" + (directory.path() / "state.db").string(),
                             .clock = system_clock(),
                             .log = std::make_shared<const logger>(log_sink{})});
}

/// Observes every second.
void pass(incident_log& tested, timestamp& now, std::chrono::seconds time,
          const std::vector<incident_condition>& conditions) {
  for (const auto end = now + time; now < end;) {
    now += 1s;
    tested.observe(now, conditions);
  }
}

TEST(Incidents, OpenAfterHalfAMinuteAndCloseAfterFiveQuietOnes) {
  incident_log tested;
  auto now = start;
  pass(tested, now, 30s, {stale});
  EXPECT_TRUE(tested.open().empty()) << "29 seconds after the first";
  pass(tested, now, 1s, {stale});
  ASSERT_EQ(tested.open(), std::vector<std::string>{"2026-11-15-01"});
  auto found = tested.find("2026-11-15-01");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->opened, start + 1s) << "when it began, not when it was noticed";
  ASSERT_EQ(found->timeline.size(), 1U);
  EXPECT_EQ(found->timeline[0].text, stale.text);
  pass(tested, now, 60s, {stale, failed});
  pass(tested, now, 299s, {});
  EXPECT_FALSE(tested.open().empty());
  pass(tested, now, 1s, {});
  EXPECT_TRUE(tested.open().empty());
  found = tested.find("2026-11-15-01");
  EXPECT_EQ(found->closed, now);
  EXPECT_EQ(found->subjects, (std::vector<std::string>{"point countries", "store main"}));
  std::vector<std::string> kinds;
  for (const auto& entry : found->timeline) kinds.push_back(entry.kind);
  EXPECT_EQ(kinds, (std::vector<std::string>{"begin", "begin", "end", "end"}));
}

TEST(Incidents, ShortTroubleIsNone) {
  incident_log tested;
  auto now = start;
  for (int i = 0; i < 20; ++i) {
    pass(tested, now, 25s, {stale});
    pass(tested, now, 1s, {});
  }
  EXPECT_TRUE(tested.list(10).empty());
}

TEST(Incidents, AgainWithinFiveMinutesIsTheSameIncident) {
  incident_log tested;
  auto now = start;
  pass(tested, now, 40s, {stale});
  pass(tested, now, 200s, {});
  pass(tested, now, 40s, {stale});
  pass(tested, now, 299s, {});
  EXPECT_EQ(tested.list(10).size(), 1U);
  EXPECT_FALSE(tested.open().empty());
  pass(tested, now, 1s, {});
  pass(tested, now, 31s, {failed});
  EXPECT_EQ(tested.list(10).size(), 2U);
  EXPECT_EQ(tested.list(1)[0].id, "2026-11-15-02") << "the newest first";
  EXPECT_EQ(tested.list(10, "2026-11-15-02").size(), 1U);
  EXPECT_TRUE(tested.list(10, "unknown").empty());
}

TEST(Incidents, NotesAndActionsAreInTheTimeline) {
  incident_log tested;
  auto now = start;
  tested.record_action({.time = now, .caller = "ann", .action = "outbox.replay"});
  pass(tested, now, 40s, {stale});
  tested.record_action({.time = now,
                        .caller = "ann",
                        .action = "outbox.replay",
                        .subject = "orders",
                        .count = 12,
                        .result = "done"});
  const auto id = tested.open().at(0);
  const auto changed = tested.add_note(id, "bob", "asked <the> vendor | again\n", now);
  ASSERT_EQ(changed.timeline.size(), 3U);
  EXPECT_EQ(changed.timeline[1].text, "outbox.replay orders (12): done");
  const auto markdown = to_markdown(changed);
  EXPECT_NE(markdown.find("asked \\<the\\> vendor \\| again "), std::string::npos) << markdown;
  auto json = json_object::parse(to_json(changed));
  EXPECT_EQ(json.objects("timeline")->size(), 3U);
  using test::failure_of;
  EXPECT_EQ(failure_of([&] { tested.add_note("no", "bob", "x", now); }).code(), errc::not_found);
  EXPECT_EQ(failure_of([&] { tested.add_note(id, "bob", "", now); }).code(),
            errc::invalid_argument);
  EXPECT_EQ(failure_of([&] { tested.add_note(id, "bob", "\xFF", now); }).code(),
            errc::invalid_argument);
  EXPECT_EQ(failure_of([&] { tested.add_note(id, "bob", std::string(4'001, 'x'), now); }).code(),
            errc::invalid_argument);
}

TEST(Incidents, AreBounded) {
  incident_log tested(nullptr, nullptr, {.kept = 3, .max_entries = 5});
  auto now = start;
  for (int i = 0; i < 5; ++i) {
    pass(tested, now, 40s, {stale});
    pass(tested, now, 300s, {});
  }
  EXPECT_EQ(tested.list(10).size(), 3U);
  pass(tested, now, 40s, {stale});
  for (int i = 0; i < 10; ++i) tested.record_action({.time = now, .caller = "a", .action = "b"});
  EXPECT_EQ(tested.list(1)[0].timeline.size(), 5U);
  EXPECT_EQ(tested.list(1)[0].left_out, 6U);
  const auto id = tested.open().at(0);
  EXPECT_EQ(test::failure_of([&] { tested.add_note(id, "bob", "x", now); }).code(),
            errc::too_large);
}

TEST(Incidents, SurviveARestart) {
  const test::temporary_directory directory("incidents");
  auto now = start;
  std::string id;
  {
    const auto database = incident_database(directory);
    incident_log before(database.get());
    pass(before, now, 40s, {stale});
    id = before.open().at(0);
    before.add_note(id, "bob", "caf\u00e9 \"quoted\"\n", now);
  }
  const auto database = incident_database(directory);
  incident_log after(database.get(), nullptr, {.kept = 2});
  EXPECT_EQ(after.failures(), 0U);
  ASSERT_EQ(after.open(), std::vector<std::string>{id}) << "it is still open";
  EXPECT_EQ(after.find(id)->timeline.back().text, "caf\u00e9 \"quoted\"\n");
  pass(after, now, 301s, {});
  EXPECT_TRUE(after.open().empty()) << "and closed after five quiet minutes";
  for (int i = 0; i < 4; ++i) {
    pass(after, now, 40s, {stale});
    pass(after, now, 300s, {});
  }
  const incident_log later(database.get());
  EXPECT_LE(later.list(10).size(), 3U) << "old rows are removed";
  EXPECT_EQ(later.list(1)[0].id, after.list(1)[0].id);
}

std::vector<std::string> timeline_of(const incident_log& tested) {
  std::vector<std::string> entries;
  const auto newest = tested.list(1).at(0);
  for (const auto& entry : newest.timeline) entries.push_back(entry.kind + " " + entry.subject);
  return entries;
}

TEST(Incidents, ARestartNeitherRepeatsABeginNorLosesAnEnd) {
  const test::temporary_directory directory("incidents");
  auto now = start;
  {
    const auto database = incident_database(directory);
    incident_log before(database.get());
    pass(before, now, 40s, {stale, failed});
    pass(before, now, 600s, {stale, failed});
  }
  const auto database = incident_database(directory);
  incident_log after(database.get());
  // Nothing is known in the first seconds. Then the point is still bad, and the store is well.
  pass(after, now, 10s, {});
  EXPECT_FALSE(after.open().empty()) << "it was bad until the restart";
  pass(after, now, 60s, {stale});
  const std::vector<std::string> begins{"begin point countries", "begin store main"};
  auto expected = begins;
  expected.emplace_back("end store main");
  EXPECT_EQ(timeline_of(after), expected);
  pass(after, now, 1s, {});
  expected.emplace_back("end point countries");
  EXPECT_EQ(timeline_of(after), expected);
  pass(after, now, 298s, {});
  EXPECT_FALSE(after.open().empty());
  pass(after, now, 1s, {});
  EXPECT_TRUE(after.open().empty());
  EXPECT_EQ(after.list(10).size(), 1U);
}

TEST(Incidents, WorkWithoutAStateDatabaseThatAnswers) {
  state_database broken({.url = "sqlite:///nonexistent/state.db",
                         .clock = system_clock(),
                         .log = std::make_shared<const logger>(log_sink{})});
  incident_log tested(&broken);
  auto now = start;
  pass(tested, now, 40s, {stale});
  EXPECT_EQ(tested.open().size(), 1U);
  EXPECT_GE(tested.failures(), 2U);
}

TEST(Incidents, UnreadableRowsAreSkipped) {
  const test::temporary_directory directory("incidents");
  const auto database = incident_database(directory);
  {
    const incident_log creates_table(database.get());
  }
  {
    auto session = database->write("test");
    for (const auto* row :
         {"('x', 0, 1, '{\"id\":3}')", "('y', 1, 2, ',\"closed\":\"2026-11-15T00:10:00Z\"}')",
          "('y', 0, 2, '{\"id\":\"y\",\"opened\":\"2026-11-15T00:00:00Z\"')"})
      session.execute(
          std::string("INSERT INTO HOLDFAST_SERVE_INCIDENT (INCIDENT_ID, LINE_NUMBER, OPENED_ON, "
                      "BODY) VALUES ") +
              row,
          {});
  }
  const incident_log tested(database.get());
  EXPECT_EQ(tested.failures(), 1U);
  EXPECT_TRUE(tested.find("y"));
}

TEST(Incidents, AnIdThatWasChangedDoesNotStopTheNextIncident) {
  const test::temporary_directory directory("incidents");
  const auto database = incident_database(directory);
  {
    const incident_log creates_table(database.get());
  }
  {
    auto session = database->write("test");
    session.execute(
        "INSERT INTO HOLDFAST_SERVE_INCIDENT (INCIDENT_ID, LINE_NUMBER, OPENED_ON, BODY) VALUES "
        "('x', 0, 1, '{\"id\":\"2026-11-15-99999999999999999999\","
        "\"opened\":\"2026-11-15T00:00:00Z\",\"closed\":\"2026-11-15T00:10:00Z\"}')",
        {});
  }
  incident_log tested(database.get());
  EXPECT_EQ(tested.failures(), 0U);
  auto now = start;
  pass(tested, now, 40s, {stale});
  EXPECT_EQ(tested.open(), std::vector<std::string>{"2026-11-15-01"});
}

}  // namespace
