// Servers as people set them up: what a power failure would lose, who may not write, which clock is
// wrong.

#include "integration/store_probe_fixture.hpp"
#include "support/failure_of.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <mutex>

namespace holdfast::test {
namespace {

using sql::dialect_id;

/// Finds it, does what it says, finds it no more.
void expect_cured(const spoilable& place, std::string_view code, severity how = severity::warning) {
  const auto before = place.look();
  const auto* found = find(before, code);
  ASSERT_NE(found, nullptr) << code << "\n" << told(before);
  EXPECT_EQ(found->severity, how) << told(before);
  ASSERT_FALSE(found->sql.empty()) << told(before);
  place.run_all(found->sql);
  // A reload reaches the server's processes a moment later.
  probe_report after;
  for (int i = 0; i < 200; ++i) {
    after = place.look();
    if (find(after, code) == nullptr) break;
    usleep(10'000);
  }
  EXPECT_EQ(find(after, code), nullptr) << told(after);
}

TEST(StoreProbePostgres, SettingsThatLoseWritesAreFoundAndCured) {
  const postgres_server server;
  const spoilable place(server);
  place.create();
  EXPECT_TRUE(place.look().findings.empty()) << told(place.look());
  for (const std::string name : {"fsync", "full_page_writes", "synchronous_commit"}) {
    place.run_all({"ALTER SYSTEM SET " + name + " = off", "SELECT pg_reload_conf()"});
    for (int i = 0; i < 200 && find(place.look(), name) == nullptr; ++i) usleep(10'000);
    expect_cured(place, name);
  }
  // Whoever said it must take it back.
  place.run("ALTER DATABASE " + place.name() + " SET synchronous_commit = off");
  expect_cured(place, "synchronous_commit");
  place.run("ALTER ROLE holdfast SET synchronous_commit = off");
  expect_cured(place, "synchronous_commit");
  place.run("ALTER ROLE holdfast IN DATABASE " + place.name() + " SET synchronous_commit = off");
  expect_cured(place, "synchronous_commit");
  place.run("ALTER DATABASE " + place.name() + " SET default_transaction_read_only = on");
  // psql would be read-only, too: the cure is run in another database.
  const auto report = place.look();
  const auto* found = find(report, "read_only");
  ASSERT_NE(found, nullptr) << told(report);
  EXPECT_EQ(found->severity, severity::failing);
  EXPECT_EQ(std::count_if(report.findings.begin(), report.findings.end(),
                          [](const auto& f) { return f.code == "read_only"; }),
            1)
      << told(report);
  for (const auto& each : found->sql) server.run(each, "postgres");
  EXPECT_TRUE(place.look().findings.empty()) << told(place.look());
  const auto from_url = probe(open(place.url() + "?options=-c%20synchronous_commit%3Doff"));
  ASSERT_NE(find(from_url, "synchronous_commit"), nullptr);
  EXPECT_NE(find(from_url, "synchronous_commit")->advice.find("URL"), std::string::npos);
}

TEST(StoreProbePostgres, AServerStartedWithoutSyncSaysSo) {
  const postgres_server server({.durable = false});
  const spoilable place(server);
  place.create();
  const auto report = place.look();
  for (const std::string name : {"fsync", "full_page_writes", "synchronous_commit"}) {
    ASSERT_NE(find(report, name), nullptr) << told(report);
    EXPECT_NE(find(report, name)->advice.find("command line"), std::string::npos);
  }
  EXPECT_TRUE(report.usable()) << "its owner may want it so";
}

TEST(StoreProbePostgres, AStandbyTakesNoWrites) {
  postgres_server server;
  const spoilable place(server);
  place.create();
  server.stop();
  std::ofstream(server.data_directory() / "standby.signal").flush();
  server.start();
  const auto report = probe(open(server.url(place.name())));
  ASSERT_NE(find(report, "read_only"), nullptr) << told(report);
  EXPECT_NE(find(report, "read_only")->problem.find("standby"), std::string::npos);
  EXPECT_FALSE(report.usable());
  const auto store = open(server.url(place.name())).store();
  EXPECT_FALSE(store->find("n", "k")) << "reading is what a standby is for";
  server.stop();
  std::filesystem::remove(server.data_directory() / "standby.signal");
  server.start();
  EXPECT_TRUE(probe(open(server.url(place.name()))).findings.empty());
}

TEST(StoreProbePostgres, AnEncodingThatLacksCharacters) {
  const auto& server = shared_server<postgres_server>();
  const std::string name = "holdfast_latin_" + std::to_string(getpid());
  server.run(
      "CREATE DATABASE " + name + " OWNER holdfast ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0",
      "postgres");
  (void)open(server.url(name)).store({.create_schema = true, .start = start_mode::require});
  const auto report = probe(open(server.url(name)));
  server.drop_database(name);
  ASSERT_NE(find(report, "charset"), nullptr) << told(report);
  EXPECT_NE(find(report, "charset")->advice.find("UTF8"), std::string::npos);
}

TEST(StoreProbePostgres, ASchemaThatMayNotBeEntered) {
  const spoilable place(dialect_id::postgresql);
  place.run_all({"CREATE SCHEMA hidden", "CREATE TABLE hidden.FAILOVER_STORE (a INTEGER)"});
  const auto report = place.look({.prefix = "hidden."});
  ASSERT_NE(find(report, "privilege"), nullptr) << told(report);
  place.run_all(find(report, "privilege")->sql);
  EXPECT_EQ(find(place.look({.prefix = "hidden."}), "privilege"), nullptr);
}

TEST(StoreProbePostgres, AZoneThatIsStatedIsEnough) {
  const spoilable place(dialect_id::postgresql);
  place.create();
  place.run(
      "ALTER TABLE FAILOVER_STORE ALTER AS_OF TYPE TIMESTAMP, ALTER EXPIRE_ON TYPE TIMESTAMP");
  EXPECT_NE(find(place.look(), "time_zone"), nullptr);
  const auto report = place.look({.zone = "UTC"});
  EXPECT_TRUE(report.findings.empty()) << told(report);
}

TEST(StoreProbeMariadb, SettingsThatLoseWritesAreFoundAndCured) {
  mariadb_server server(
      {.settings = {"log-bin=binlog", "sync-binlog=1", "innodb-doublewrite=OFF"}});
  {
    const spoilable place(server);
    place.create();
    const auto report = place.look();
    ASSERT_NE(find(report, "innodb_doublewrite"), nullptr) << told(report);
    EXPECT_EQ(report.findings.size(), 1U) << told(report);
    EXPECT_NE(find(report, "innodb_doublewrite")->advice.find("innodb_doublewrite=ON"),
              std::string::npos);
    place.run("SET GLOBAL innodb_flush_log_at_trx_commit = 2");
    expect_cured(place, "innodb_flush_log_at_trx_commit");
    place.run("SET GLOBAL sync_binlog = 0");
    expect_cured(place, "sync_binlog");
    place.run("SET GLOBAL max_allowed_packet = 1048576");
    expect_cured(place, "max_allowed_packet");
    place.run("SET GLOBAL read_only = ON");
    expect_cured(place, "read_only", severity::failing);
  }
  server.configure("innodb-doublewrite=ON");  // as the advice says
  server.restart();
  const spoilable place(server);
  place.create();
  EXPECT_TRUE(place.look().findings.empty()) << told(place.look());
}

TEST(StoreProbeMariadb, AUserWithoutPrivilegesIsToldApartFromAMissingTable) {
  const spoilable place(dialect_id::mariadb);
  place.create();
  const auto& server = place.server();
  const std::string user = "guest" + std::to_string(getpid()) + "@'127.0.0.1'";
  server.run("CREATE USER " + user + " IDENTIFIED BY 'secret'", "mysql");
  server.run("CREATE TABLE OTHER (a INT)", place.name());
  server.run("GRANT SELECT ON " + place.name() + ".OTHER TO " + user, "mysql");
  const auto look = [&] {
    return probe(open(place.url(), {.user = "guest" + std::to_string(getpid())}));
  };
  auto report = look();
  ASSERT_NE(find(report, "privilege"), nullptr) << told(report);
  EXPECT_EQ(find(report, "table"), nullptr) << told(report);
  ASSERT_NE(find(report, "lease_privilege"), nullptr) << told(report);
  // The statements of all findings together are enough.
  for (const auto& finding : report.findings) place.run_all(finding.sql);
  report = look();
  EXPECT_TRUE(report.findings.empty()) << told(report);
  server.run("REVOKE INSERT ON " + place.name() + ".FAILOVER_STORE FROM " + user, "mysql");
  report = look();
  ASSERT_NE(find(report, "privilege"), nullptr)
      << "what may be read but not written: " << told(report);
  place.run_all(find(report, "privilege")->sql);
  EXPECT_TRUE(look().findings.empty());
  server.run("DROP USER " + user, "mysql");
}

/// A clock that is wrong by so much.
class wrong_clock final : public holdfast::clock {
 public:
  explicit wrong_clock(std::chrono::microseconds by) : by_(by) {}
  [[nodiscard]] timestamp now() const noexcept override { return system_clock()->now() + by_; }
  [[nodiscard]] std::chrono::steady_clock::time_point steady() const noexcept override {
    return system_clock()->steady();
  }

 private:
  std::chrono::microseconds by_;
};

TEST(StoreProbeClocks, AreCompared) {
  for (const auto dialect : {dialect_id::postgresql, dialect_id::mariadb}) {
    const spoilable place(dialect);
    place.create();
    const auto with = [&](std::chrono::microseconds by) {
      return place.look({}, {.clock = std::make_shared<wrong_clock>(by)});
    };
    for (const auto by : {-1h, 1h}) {
      const auto report = with(by);
      ASSERT_NE(find(report, "clock_skew"), nullptr) << told(report);
      EXPECT_EQ(find(report, "clock_skew")->severity, severity::failing);
      EXPECT_NE(find(report, "clock_skew")->problem.find(by < 0h ? "ahead" : "behind"),
                std::string::npos)
          << told(report);
      EXPECT_FALSE(report.usable());
    }
    const auto little = with(1min);
    ASSERT_NE(find(little, "clock_skew"), nullptr) << told(little);
    EXPECT_EQ(find(little, "clock_skew")->severity, severity::warning);
    EXPECT_EQ(find(place.look({.max_skew = 30s}, {.clock = std::make_shared<wrong_clock>(1min)}),
                   "clock_skew")
                  ->severity,
              severity::failing);
    EXPECT_EQ(find(with(0s), "clock_skew"), nullptr);
  }
}

TEST(StoreProbeSqlite, LooksAtHowTheFileIsKept) {
  const spoilable place(dialect_id::sqlite);
  place.create();
  const auto with = [&](const std::string& parameters) {
    return probe(open(place.url() + parameters));
  };
  EXPECT_TRUE(with("").findings.empty()) << told(with(""));
  EXPECT_NE(find(with("?synchronous=normal"), "synchronous"), nullptr);
  EXPECT_NE(find(with("?synchronous=off"), "synchronous"), nullptr);

  const spoilable other(dialect_id::sqlite);
  const auto without_locks = other.url() + "?vfs=unix-none";  // no shared memory, so no WAL
  (void)open(without_locks).store({.create_schema = true, .start = start_mode::require});
  const auto report = probe(open(without_locks));
  ASSERT_NE(find(report, "journal_mode"), nullptr) << told(report);
  EXPECT_NE(find(report, "journal_mode")->problem.find("delete"), std::string::npos);

  const temporary_directory memory("probe", {}, medium::memory);
  const auto in_memory = "sqlite://" + (memory.path() / "x.db").string();
  (void)open(in_memory).store({.create_schema = true, .start = start_mode::require});
  const auto told_of_it = probe(open(in_memory));
  const bool really = memory.path().string().starts_with("/dev/shm");
  EXPECT_EQ(find(told_of_it, "file_system") != nullptr, really) << told(told_of_it);
}

TEST(StoreProbeSqlite, AFileThatMayNotBeWritten) {
  const spoilable place(dialect_id::sqlite);
  place.create();
  // Keeps the log of the file there, as another process would
  const auto held = open(place.url()).store();
  held->put(make_entry("k"));
  const std::filesystem::path file(place.file());
  std::filesystem::permissions(file.parent_path(), std::filesystem::perms(0755));
  // Root may write everything, so look as somebody else.
  const uid_t us = geteuid();
  if (us != 0) std::filesystem::permissions(file, std::filesystem::perms(0444));
  else
    for (const char* part : {"", "-wal", "-shm"})
      std::filesystem::permissions(file.string() + part, std::filesystem::perms(0644));
  ASSERT_EQ(seteuid(us == 0 ? 65534 : us), 0);
  probe_report report;
  std::string failed;
  try {
    report = probe(open(place.url()));
  } catch (const error& e) {
    failed = e.what();
  }
  ASSERT_EQ(seteuid(us), 0);
  ASSERT_EQ(failed, "");
  ASSERT_NE(find(report, "read_only"), nullptr) << told(report);
  EXPECT_FALSE(report.usable());
}

// ---- when a store is opened

class StoreStart : public ::testing::TestWithParam<dialect_id> {
 protected:
  std::shared_ptr<store> start(start_probe how) {
    lines.clear();
    return open(place.url(), {.log =
                                  [this](const log_record& record) {
                                    const std::scoped_lock lock(mutex);
                                    lines.emplace_back(record.message);
                                  }})
        .store({.probe = how, .start = start_mode::require});
  }
  spoilable place{GetParam()};
  std::mutex mutex;
  std::vector<std::string> lines;
};

TEST_P(StoreStart, ASoundTableIsNotMentioned) {
  place.create();
  (void)start(start_probe::strict);
  EXPECT_EQ(lines, std::vector<std::string>{});
}

TEST_P(StoreStart, AWarningIsLoggedOrRefused) {
  place.create();
  place.run(GetParam() == dialect_id::mariadb
                ? "ALTER TABLE FAILOVER_STORE DROP INDEX IDX_FAILOVER_STORE_EXPIRE_ON"
                : "DROP INDEX IDX_FAILOVER_STORE_EXPIRE_ON");
  (void)start(start_probe::warn);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_NE(lines[0].find("CREATE INDEX"), std::string::npos) << lines[0];
  const auto e = failure_of([&] { (void)start(start_probe::strict); });
  EXPECT_EQ(e.code(), errc::missing_object);
  EXPECT_NE(e.message().find("CREATE INDEX"), std::string::npos) << e.what();
  (void)start(start_probe::off);
  EXPECT_TRUE(lines.empty());
}

TEST_P(StoreStart, ATableThatWouldLoseEntriesIsRefused) {
  place.create();
  if (GetParam() == dialect_id::sqlite) {
    place.run_all({"DROP TABLE FAILOVER_STORE",
                   "CREATE TABLE FAILOVER_STORE (FAILOVER_NAME TEXT, FAILOVER_KEY TEXT COLLATE "
                   "NOCASE, AS_OF INTEGER, EXPIRE_ON INTEGER, PAYLOAD "
                   "TEXT, PAYLOAD_CLASS TEXT, PRIMARY KEY (FAILOVER_NAME, FAILOVER_KEY))"});
  } else {
    place.run(GetParam() == dialect_id::mariadb
                  ? "ALTER TABLE FAILOVER_STORE MODIFY AS_OF DATETIME NOT NULL"
                  : "ALTER TABLE FAILOVER_STORE ALTER AS_OF TYPE TIMESTAMPTZ(0)");
  }
  const auto e = failure_of([&] { (void)start(start_probe::warn); });
  EXPECT_EQ(e.code(), errc::unsupported_type) << e.what();
  EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos) << "one line";
  EXPECT_NO_THROW((void)start(start_probe::off));
}

TEST_P(StoreStart, AMissingTableIsLoggedAndMayComeLater) {
  const auto store = start(start_probe::warn);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_NE(lines[0].find("does not exist"), std::string::npos);
  EXPECT_EQ(lines[0].find('\n'), std::string::npos) << lines[0];
  place.create();
  EXPECT_NO_THROW(store->put(make_entry("k")));
}

INSTANTIATE_TEST_SUITE_P(All, StoreStart,
                         ::testing::Values(dialect_id::postgresql, dialect_id::mariadb,
                                           dialect_id::sqlite),
                         [](const auto& each) { return std::string(sql::to_string(each.param)); });

}  // namespace
}  // namespace holdfast::test
