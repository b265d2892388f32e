// Reports of instances on SQLite, PostgreSQL, MariaDB, H2 and Redis: rows, commands, the end of a
// process, and databases that fail.

#include <holdfast/error.hpp>
#include <holdfast/failover/engine.hpp>
#include <holdfast/outbox.hpp>
#include <holdfast/reporter.hpp>
#include <holdfast/schema.hpp>
#include <holdfast/store/cleanup.hpp>
#include <holdfast/store/memory.hpp>
#include <holdfast/worker.hpp>

#include "sql/connect.hpp"
#include "support/eventually.hpp"
#include "support/failure_of.hpp"
#include "support/h2_server.hpp"
#include "support/mariadb_server.hpp"
#include "support/postgres_server.hpp"
#include "support/redis_server.hpp"
#include "support/shared_server.hpp"
#include "support/temporary_directory.hpp"
#include "support/worker.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

HOLDFAST_WORKER(reporting) {
  const auto db = open(arguments.at(0));
  engine protected_calls{make_memory_store()};
  const reporter reports(protected_calls, db,
                         {.every = 100ms, .instance = "killed", .create_schema = true});
  for (;;) ::pause();
}

struct reports_on_sqlite {
  static constexpr bool is_sql = true;
  [[nodiscard]] std::string url() const {
    return "sqlite://" + (directory.path() / "reports.db").string();
  }
  temporary_directory directory{"reporter", "", medium::memory};
};

template <class Server>
struct reports_on_server {
  static constexpr bool is_sql = true;
  [[nodiscard]] std::string url() const { return server.url(name); }
  const typename Server::endpoint& server = shared_server<Server>();
  const std::string name = server.create_database("reports");
};

struct reports_on_redis {
  static constexpr bool is_sql = false;
  [[nodiscard]] std::string url() const { return server.url(); }
  redis_server server{};
};

template <class Backend>
class Reporter : public testing::Test {
 protected:
  Backend backend_{};
  const std::string url_ = backend_.url();
  const database db_ = open(url_);
  engine engine_{make_memory_store()};

  [[nodiscard]] reporter_options options(std::string instance) const {
    return {.every = 100ms, .instance = std::move(instance), .create_schema = true};
  }
  /// The report of an instance, if it has one.
  [[nodiscard]] std::optional<instance_report> report_of(const std::string& instance,
                                                         std::string_view prefix = {}) const {
    for (auto& report : read_instances(db_, prefix))
      if (report.instance == instance) return std::move(report);
    return std::nullopt;
  }
  /// Redis needs none; on SQL the first reporter creates it.
  [[nodiscard]] bool has_table() const {
    try {
      (void)read_instances(db_);
      return true;
    } catch (const error&) {
      return false;
    }
  }
  void wait_for_reports(const reporter& tested, std::uint64_t count) const {
    EXPECT_TRUE(eventually([&] { return tested.count().reports >= count; }))
        << tested.count().problem;
  }
};

using Backends = testing::Types<reports_on_sqlite, reports_on_server<postgres_server>,
                                reports_on_server<mariadb_server>, reports_on_server<h2_server>,
                                reports_on_redis>;
TYPED_TEST_SUITE(Reporter, Backends);

TYPED_TEST(Reporter, WritesTheStatusAndRemovesItsRow) {
  const auto country =
      this->engine_.protect("country \"1\"", [](int) { return std::string("{}"); });
  EXPECT_EQ(*country(1), "{}");
  std::optional<reporter> tested;
  tested.emplace(this->engine_, this->db_, this->options("web-2:771"));
  EXPECT_EQ(tested->instance(), "web-2:771");
  this->wait_for_reports(*tested, 2);
  const auto report = this->report_of("web-2:771");
  ASSERT_TRUE(report);
  EXPECT_EQ(report->kind, "engine");
  EXPECT_EQ(report->every, 100ms);
  EXPECT_LE(report->started, report->seen);
  EXPECT_GE(report->age, 0us);
  EXPECT_GT(report->seen, timestamp(std::chrono::sys_days(std::chrono::year(2020) / 1 / 1)));
  EXPECT_NE(report->state.find(R"("points":[{"name":"country \"1\"")"), std::string::npos)
      << report->state;
  EXPECT_NE(report->state.find(R"("numbers":{"started":1,"live":1,"stored":1})"), std::string::npos)
      << report->state;
  EXPECT_NE(report->state.find(R"("healthy":true)"), std::string::npos) << report->state;
  tested.reset();
  EXPECT_FALSE(this->report_of("web-2:771")) << "the end of a reporter removes its row";
}

TYPED_TEST(Reporter, WorkersAndCleanupsReportToo) {
  if constexpr (TypeParam::is_sql) {
    const auto entries = make_memory_store();
    cleanup cleaner(open("memory:"), entries, {.lease = 0ms});
    (void)cleaner.run_now();
    const reporter tested(cleaner, this->db_, this->options("cleaner"));
    this->wait_for_reports(tested, 1);
    const auto report = this->report_of("cleaner");
    ASSERT_TRUE(report);
    EXPECT_EQ(report->kind, "cleanup");
    EXPECT_NE(report->state.find(R"("numbers":{"runs":1})"), std::string::npos) << report->state;
  }
  worker events(open("memory:").outbox(), [](const delivery&) { return outcome::done(); });
  const reporter tested(events, this->db_, this->options("worker"));
  this->wait_for_reports(tested, 1);
  const auto report = this->report_of("worker");
  ASSERT_TRUE(report);
  EXPECT_EQ(report->kind, "worker");
  EXPECT_NE(report->state.find(R"("numbers":{})"), std::string::npos) << report->state;
}

TYPED_TEST(Reporter, ExecutesEachCommandOnce) {
  std::atomic<int> for_both = 0;
  std::atomic<int> for_one = 0;
  std::string body;
  auto options = this->options("a");
  options.on_command = [&](const instance_command& command) {
    if (command.id == "c-fails") throw std::runtime_error("refused");
    if (command.id == "c-one") ++for_one;
    else if (++for_both == 1) body = command.body;
  };
  const reporter first(this->engine_, this->db_, options);
  options.instance = "b";
  const reporter second(this->engine_, this->db_, options);
  this->wait_for_reports(first, 1);
  const std::string drill = "{\"point\":\"caf\u00e9\n\"}";
  send_instance_command(this->db_, {"c-both", "*", "drill", drill}, 1h);
  send_instance_command(this->db_, {"c-one", "b", "drill", "{}"}, 1h);
  send_instance_command(this->db_, {"c-one", "b", "drill", "{\"again\":1}"}, 1h);
  send_instance_command(this->db_, {"c-fails", "a", "drill", "{}"}, 1h);
  EXPECT_TRUE(eventually([&] { return for_both == 2 && for_one == 1; }));
  EXPECT_TRUE(eventually([&] { return first.count().failures == 1; }));
  EXPECT_EQ(body, drill);
  const auto before = first.count().reports;
  this->wait_for_reports(first, before + 3);
  EXPECT_EQ(for_both, 2) << "a command is executed once";
  EXPECT_EQ(for_one, 1);
  EXPECT_EQ(first.count().commands, 1U);
}

TYPED_TEST(Reporter, CommandsExpire) {
  {
    const reporter creates_tables(this->engine_, this->db_, this->options("first"));
    this->wait_for_reports(creates_tables, 1);
  }
  send_instance_command(this->db_, {"short", "*", "drill", "{}"}, 1s);
  std::this_thread::sleep_for(1'100ms);  // the clock of the server cannot be set
  std::atomic<int> executed = 0;
  auto options = this->options("late");
  options.on_command = [&](const instance_command&) { ++executed; };
  const reporter tested(this->engine_, this->db_, options);
  this->wait_for_reports(tested, 2);
  EXPECT_EQ(executed, 0);
}

TYPED_TEST(Reporter, KilledProcessTurnsSilent) {
  {
    const child_process process(worker_options("reporting", {this->url_}));
    ASSERT_TRUE(eventually([&] { return this->has_table() && this->report_of("killed"); }, 60s));
  }  // SIGKILL
  EXPECT_TRUE(eventually([&] {
    const auto report = this->report_of("killed");
    return report && report->silent();
  }));
  const reporter other(this->engine_, this->db_, this->options("other"));
  this->wait_for_reports(other, 1);
  EXPECT_FALSE(this->report_of("other")->silent());
  EXPECT_GE(this->report_of("killed")->age, 300ms);
}

TYPED_TEST(Reporter, PrefixesAreSeparate) {
  auto options = this->options("x");
  options.prefix = "SHOP_";
  const reporter tested(this->engine_, this->db_, options);
  this->wait_for_reports(tested, 1);
  EXPECT_TRUE(this->report_of("x", "SHOP_"));
  if constexpr (!TypeParam::is_sql) EXPECT_FALSE(this->report_of("x"));
  else EXPECT_EQ(failure_of([&] { (void)read_instances(this->db_); }).code(), errc::missing_object);
}

TYPED_TEST(Reporter, ManyPointsFit) {
  for (int i = 0; i < 1'000; ++i)
    (void)this->engine_.protect("point-" + std::to_string(i) + std::string(30, 'x'),
                                [](int) { return std::string("{}"); });
  const reporter tested(this->engine_, this->db_, this->options("large"));
  this->wait_for_reports(tested, 1);
  const auto report = this->report_of("large");
  ASSERT_TRUE(report);
  EXPECT_LE(report->state.size(), std::size_t{64} << 10U);
  EXPECT_NE(report->state.find("\"pointsLeftOut\":"), std::string::npos);
  EXPECT_EQ(report->state.back(), '}');
}

TEST(ReporterOptions, AreChecked) {
  engine source{make_memory_store()};
  EXPECT_EQ(failure_of([&] { const reporter tested(source, open("memory:")); }).code(),
            errc::invalid_argument);
  const auto db = open("sqlite:/nonexistent/x.db");
  const auto refused = [&](reporter_options options) {
    return failure_of([&] { const reporter tested(source, db, std::move(options)); }).code();
  };
  EXPECT_EQ(refused({.every = 99ms}), errc::invalid_argument);
  EXPECT_EQ(refused({.prefix = "a;b"}), errc::invalid_argument);
  EXPECT_EQ(refused({.instance = "with space"}), errc::invalid_argument);
  EXPECT_EQ(refused({.instance = std::string(129, 'x')}), errc::invalid_argument);
  const auto send = [&](instance_command command, std::chrono::milliseconds valid) {
    return failure_of([&] { send_instance_command(db, command, valid); }).code();
  };
  EXPECT_EQ(send({"a b", "*", "drill", "{}"}, 1h), errc::invalid_argument);
  EXPECT_EQ(send({"a", "*", "", "{}"}, 1h), errc::invalid_argument);
  EXPECT_EQ(send({"a", "", "drill", "{}"}, 1h), errc::invalid_argument);
  EXPECT_EQ(send({"a", "*", "drill", std::string(4'097, 'x')}, 1h), errc::invalid_argument);
  EXPECT_EQ(send({"a", "*", "drill", "{}"}, 0ms), errc::invalid_argument);
}

TEST(ReporterFailures, StayInTheReporter) {
  std::atomic<int> records = 0;
  const auto db = open("sqlite:/nonexistent/x.db", {.log = [&](const log_record& record) {
                         if (record.message.find("could not report") != std::string_view::npos)
                           ++records;
                       }});
  engine source{make_memory_store()};
  const reporter tested(source, db, {.every = 100ms});
  EXPECT_TRUE(eventually([&] { return tested.count().failures >= 3; }));
  EXPECT_EQ(tested.count().reports, 0U);
  EXPECT_FALSE(tested.count().problem.empty());
  EXPECT_EQ(records, 1) << "once a minute";
}

TEST(ReporterFailures, MissingTablesAreAnInfo) {
  const temporary_directory directory("reporter", "", medium::memory);
  const auto url = "sqlite://" + (directory.path() / "empty.db").string();
  std::atomic<int> infos = 0;
  std::atomic<int> others = 0;
  const auto db = open(url, {.log = [&](const log_record& record) {
                         const bool notice = record.level == log_level::info &&
                                             record.fields.size() == 1 &&
                                             record.fields[0].name == "instance";
                         ++(notice ? infos : others);
                       }});
  engine source{make_memory_store()};
  const reporter tested(source, db, {.every = 100ms, .instance = "x"});
  EXPECT_TRUE(eventually([&] { return tested.count().failures >= 3; }));
  EXPECT_EQ(infos, 1) << "once";
  EXPECT_EQ(others, 0);
  const auto connection = detail::sql::connector(url, {})();
  for (const auto& statement : instance_schema(sql::dialect_id::sqlite)) connection->run(statement);
  EXPECT_TRUE(eventually([&] { return tested.count().reports > 0; }));
}

TEST(ReporterSchema, IsASetOfItsOwn) {
  const temporary_directory directory("reporter", "", medium::memory);
  const auto url = "sqlite://" + (directory.path() / "set.db").string();
  const auto verdict = [&] { return read_schema_status(open(url)).back(); };
  EXPECT_EQ(verdict().set, "instances");
  EXPECT_EQ(verdict().verdict, schema_verdict::absent);
  const auto connection = detail::sql::connector(url, {})();
  for (const auto& statement : instance_schema(sql::dialect_id::sqlite)) connection->run(statement);
  EXPECT_EQ(verdict().verdict, schema_verdict::current);
  EXPECT_EQ(verdict().tables, (std::vector<std::string>{"HOLDFAST_INSTANCE", "HOLDFAST_COMMAND"}));
  connection->run("UPDATE HOLDFAST_SCHEMA SET VERSION = 2 WHERE SET_NAME = 'HOLDFAST_INSTANCE'");
  engine source{make_memory_store()};
  const reporter tested(source, open(url), {.every = 100ms});
  EXPECT_TRUE(eventually([&] { return tested.count().failures > 0; }));
  EXPECT_NE(tested.count().problem.find("update the program"), std::string::npos);
}

}  // namespace
}  // namespace holdfast::test
