// The audit log: nothing waits for it, nothing is lost while the queue has room.

#include <holdfast/error.hpp>

#include "serve/auth/audit_writer.hpp"
#include "serve/auth/state_tables.hpp"
#include "support/failure_of.hpp"
#include "unit/serve/auth_fixture.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace holdfast;
using namespace holdfast::detail::serve;
using namespace std::chrono_literals;
using test::auth_state;
using test::failure_of;

class AuthAudit : public ::testing::Test {
 protected:
  auth_state state{};
  std::shared_ptr<const logger> log = std::make_shared<const logger>(state.log.sink());
  state_database database{{.url = state.url(), .clock = state.clock, .log = log}};
  std::shared_ptr<prometheus_registry> metrics = make_prometheus_registry();
  audit_writer audit{{.clock = state.clock, .log = log, .metrics = isolate(metrics)}};

  void SetUp() override { database.add_tables(identity_tables()); }

  std::vector<stored_audit_entry> list(const audit_filter& filter = {}, std::size_t limit = 1000) {
    audit.write_queue(database);
    auto session = database.read("test");
    return list_audit(session, filter, limit);
  }
};

TEST_F(AuthAudit, EntriesComeBackAsTheyWere) {
  audit.record({.caller = "ops",
                .address = "10.0.0.1",
                .tenant = "acme",
                .action = "outbox.replay",
                .subject = "orders \xC3\xA9 ' \" %",
                .count = 12,
                .result = "done"});
  const auto entries = list();
  ASSERT_EQ(entries.size(), 1U);
  const auto& entry = entries.front().entry;
  EXPECT_EQ(entry.time, state.clock->now());
  EXPECT_EQ(entry.caller, "ops");
  EXPECT_EQ(entry.address, "10.0.0.1");
  EXPECT_EQ(entry.tenant, "acme");
  EXPECT_EQ(entry.action, "outbox.replay");
  EXPECT_EQ(entry.subject, "orders \xC3\xA9 ' \" %");
  EXPECT_EQ(entry.count, 12U);
  EXPECT_EQ(entry.result, "done");
}

TEST_F(AuthAudit, TheNewestComeFirstInPages) {
  for (int i = 0; i < 25; ++i) {
    audit.record({.action = "a", .subject = std::to_string(i)});
    if (i % 10 == 9) state.clock->advance(1us);
  }
  std::vector<std::string> subjects;
  audit_filter filter;
  for (;;) {
    const auto page = list(filter, 4);
    for (const auto& entry : page) subjects.push_back(entry.entry.subject);
    if (page.size() < 4) break;
    filter.after = page.back().id;
  }
  ASSERT_EQ(subjects.size(), 25U);
  for (int i = 0; i < 25; ++i)
    EXPECT_EQ(subjects[static_cast<std::size_t>(i)], std::to_string(24 - i));
}

TEST_F(AuthAudit, IsFiltered) {
  const auto start = state.clock->now();
  audit.record({.caller = "a", .tenant = "x", .action = "token.add", .subject = "s"});
  state.clock->advance(1h);
  audit.record({.caller = "b", .tenant = "y", .action = "token.revoke", .subject = "s"});
  EXPECT_EQ(list({.caller = "a"}).size(), 1U);
  EXPECT_EQ(list({.tenant = "y"}).size(), 1U);
  EXPECT_EQ(list({.action = "token.add"}).size(), 1U);
  EXPECT_EQ(list({.subject = "s"}).size(), 2U);
  EXPECT_EQ(list({.caller = "a", .tenant = "y"}).size(), 0U);
  EXPECT_EQ(list({.begin = start + 1h}).size(), 1U);
  EXPECT_EQ(list({.end = start + 1h}).size(), 1U);
  EXPECT_EQ(list({.begin = start, .end = start}).size(), 0U);
  EXPECT_EQ(list({.caller = "' OR '1' = '1"}).size(), 0U);
}

TEST_F(AuthAudit, TextOfAnySizeAndKindIsStored) {
  audit.record({.caller = std::string(1'000, 'x'),
                .action = "a\nb\x01\x7F",
                .subject = std::string(1'000'000, '\xFF'),
                .count = ~std::uint64_t{0},
                .result = std::string("\0 null", 6)});
  const auto entries = list();
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries.front().entry.caller, std::string(200, 'x'));
  EXPECT_EQ(entries.front().entry.action, "a?b??");
  EXPECT_EQ(entries.front().entry.subject, std::string(500, '?'));
  EXPECT_EQ(entries.front().entry.result, "? null");
  EXPECT_EQ(entries.front().entry.count, 0x7FFF'FFFF'FFFF'FFFFU);
}

TEST_F(AuthAudit, EntriesOfManyThreadsAreAllThere) {
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 8; ++t)
      threads.emplace_back([this, t] {
        for (int i = 0; i < 100; ++i) {
          audit.record({.action = "a", .subject = std::to_string(t * 100 + i)});
          if (i % 50 == 0) audit.write_queue(database);
        }
      });
  }
  std::set<std::string> subjects;
  for (const auto& entry : list()) subjects.insert(entry.entry.subject);
  EXPECT_EQ(subjects.size(), 800U);
}

TEST_F(AuthAudit, AFullQueueLosesAndCounts) {
  std::filesystem::create_directory(state.file());  // the database cannot be opened
  for (std::size_t i = 0; i < audit_queue_size + 7; ++i) audit.record({.action = "a"});
  EXPECT_EQ(audit.lost(), 7U);
  EXPECT_THROW(audit.write_queue(database), error);
  EXPECT_NE(metrics->text().find("holdfast_serve_audit_lost_total 7"), std::string::npos);
  EXPECT_NE(metrics->text().find("holdfast_serve_audit_failures_total 1"), std::string::npos);
  EXPECT_NE(state.log.text().find("an entry of the audit log was lost"), std::string::npos);
  // The others are written as soon as it works.
  std::filesystem::remove(state.file());
  std::this_thread::sleep_for(600ms);  // the pause after a failed attempt to open
  EXPECT_EQ(list({}, audit_queue_size * 2).size(), audit_queue_size);
  EXPECT_TRUE(audit.is_empty());
}

TEST_F(AuthAudit, AFailedBatchIsRepeated) {
  for (int i = 0; i < 3; ++i) audit.record({.action = "a", .subject = std::to_string(i)});
  {
    auto session = database.write("test");
    session.connection().run(
        "CREATE TRIGGER REFUSE BEFORE INSERT ON HOLDFAST_SERVE_AUDIT WHEN NEW.SUBJECT = '2' BEGIN "
        "SELECT RAISE(ABORT, 'no'); END");
  }
  EXPECT_THROW(audit.write_queue(database), error);
  EXPECT_FALSE(audit.is_empty());
  {
    auto session = database.write("test");
    session.connection().run("DROP TRIGGER REFUSE");
  }
  EXPECT_EQ(list().size(), 3U);
  EXPECT_TRUE(audit.is_empty());
}

TEST_F(AuthAudit, EntriesAreDeletedAfter400Days) {
  audit.record({.action = "old"});
  state.clock->advance(24h);
  audit.record({.action = "new"});
  ASSERT_EQ(list().size(), 2U);
  state.clock->advance(audit_life - 24h + 1us);
  auto session = database.write("test");
  forget_old_audit(session, state.clock->now());
  const auto entries = list();
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries.front().entry.action, "new");
}

}  // namespace
