// H2 over its PostgreSQL port, on the real engine.

#include <holdfast/database.hpp>
#include <holdfast/store/probe.hpp>

#include "sql/h2/connection.hpp"
#include "sql/h2/values.hpp"
#include "sql/postgres/connection.hpp"
#include "support/failure_of.hpp"
#include "support/h2_server.hpp"
#include "support/postgres_server.hpp"
#include "support/shared_server.hpp"

#include <gtest/gtest.h>
#include <libpq-fe.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using sql::type;

class H2Connection : public ::testing::Test {
 protected:
  void SetUp() override { database_ = server_.create_database("wire"); }

  [[nodiscard]] detail::sql::h2_options options() const {
    return {
        .port = server_.port(), .database = database_, .user = "holdfast", .password = "secret"};
  }
  [[nodiscard]] std::unique_ptr<sql::connection> connect() const {
    return detail::sql::connect_h2(options());
  }

  static std::int64_t count(sql::connection& c) {
    const auto result =
        c.execute({.text = "SELECT COUNT(*) FROM T", .results = {type::integer}}, {});
    return std::get<std::int64_t>(result.rows.at(0, 0));
  }
  static void insert(sql::connection& c, std::int64_t number) {
    const sql::parameter values[]{number};
    c.execute({.text = "INSERT INTO T (N) VALUES (?)", .parameters = {type::integer}}, values);
  }

  const h2_endpoint& server_ = shared_server<h2_server>();
  std::string database_;
};

struct finish {
  void operator()(PGconn* c) const noexcept { PQfinish(c); }
};

TEST_F(H2Connection, ThePortRunsThePreviousStatementIfOneCannotBeParsed) {
  // The driver works around this defect. If this test fails, H2 has fixed it and the driver can be
  // simplified.
  const std::unique_ptr<PGconn, finish> raw(
      PQconnectdb(("host=127.0.0.1 port=" + std::to_string(server_.port()) +
                   " user=holdfast password=secret sslmode=disable dbname=" + database_)
                      .c_str()));
  ASSERT_EQ(PQstatus(raw.get()), CONNECTION_OK);
  PQclear(PQexec(raw.get(), "CREATE TABLE T (N INT)"));
  PQclear(PQexecParams(raw.get(), "INSERT INTO T VALUES (1)", 0, nullptr, nullptr, nullptr, nullptr,
                       0));
  PGresult* bogus =
      PQexecParams(raw.get(), "SELEC BOGUS", 0, nullptr, nullptr, nullptr, nullptr, 0);
  EXPECT_EQ(PQresultStatus(bogus), PGRES_COMMAND_OK) << "H2 reports success";
  PQclear(bogus);
  PGresult* counted = PQexec(raw.get(), "SELECT COUNT(*) FROM T");
  EXPECT_STREQ(PQgetvalue(counted, 0, 0), "2");
  PQclear(counted);
}

TEST_F(H2Connection, NothingRunsTwiceThroughTheDriver) {
  const auto c = connect();
  c->run("CREATE TABLE T (N BIGINT, V VARCHAR)");
  insert(*c, 1);
  EXPECT_EQ(failure_of([&] { c->execute({.text = "SELEC BOGUS"}, {}); }).code(), errc::grammar);
  EXPECT_EQ(count(*c), 1) << "after a statement that cannot be parsed";
  EXPECT_EQ(failure_of([&] { c->execute({.text = "INSERT INTO NOWHERE VALUES (1)"}, {}); }).code(),
            errc::missing_object);
  EXPECT_EQ(count(*c), 1);
  insert(*c, 2);
  EXPECT_EQ(failure_of([&] { c->execute({.text = "SELECT NOTHING FROM T"}, {}); }).code(),
            errc::missing_object);
  EXPECT_EQ(count(*c), 2);
  insert(*c, 3);
  const sql::parameter too_many[]{std::int64_t{4}, std::int64_t{5}};
  EXPECT_EQ(failure_of([&] {
              c->execute({.text = "INSERT INTO T (N) VALUES (?)",
                          .parameters = {type::integer, type::integer}},
                         too_many);
            }).code(),
            errc::invalid_argument);
  EXPECT_EQ(count(*c), 3);
  insert(*c, 4);
  const std::string long_text(detail::sql::h2_longest_value + 1, 'x');
  const sql::parameter too_long[]{std::string_view(long_text)};
  EXPECT_EQ(failure_of([&] {
              c->execute({.text = "INSERT INTO T (V) VALUES (?)", .parameters = {type::text}},
                         too_long);
            }).code(),
            errc::too_large)
      << "H2 would fail to bind it, and run the previous insert again";
  EXPECT_EQ(count(*c), 4);
}

TEST_F(H2Connection, ACharacterAboveUFFFFCountsTwice) {
  const auto c = connect();
  c->run("CREATE TABLE T (N BIGINT, V VARCHAR)");
  insert(*c, 1);
  std::string faces;
  for (std::size_t i = 0; i < detail::sql::h2_longest_value / 2; ++i) faces += "\U0001F600";
  const sql::statement put{.text = "INSERT INTO T (V) VALUES (?)", .parameters = {type::text}};
  const sql::parameter fits[]{std::string_view(faces)};
  EXPECT_EQ(c->execute(put, fits).affected, 1U);
  faces += "a";
  const sql::parameter too_long[]{std::string_view(faces)};
  EXPECT_EQ(failure_of([&] { c->execute(put, too_long); }).code(), errc::too_large);
  EXPECT_EQ(count(*c), 2);
}

TEST_F(H2Connection, NamesAreReusedAndNeverMixedUp) {
  const auto c = connect();
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 230; ++i) {
      const auto result =
          c->execute({.text = "SELECT " + std::to_string(i), .results = {type::integer}}, {});
      ASSERT_EQ(std::get<std::int64_t>(result.rows.at(0, 0)), i);
    }
    // The name of a statement that cannot be parsed belongs to no statement.
    EXPECT_EQ(failure_of([&] { c->execute({.text = "SELEC BOGUS"}, {}); }).code(), errc::grammar);
  }
}

TEST_F(H2Connection, ReadsTimesOfAnyOffsetAndNineDigits) {
  const auto c = connect();
  const auto result = c->execute({.text = "SELECT TIMESTAMP WITH TIME ZONE '2026-11-15 "
                                          "12:34:56.999999999-05:30', CAST(NULL AS TIMESTAMP)",
                                  .results = {type::time, type::time}},
                                 {});
  const timestamp expected(std::chrono::sys_days{std::chrono::year(2026) / 11 / 15} + 18h + 4min +
                           56s + 999'999us);
  EXPECT_EQ(std::get<timestamp>(result.rows.at(0, 0)), expected)
      << "truncated, not rounded into the future";
  EXPECT_TRUE(std::holds_alternative<std::monostate>(result.rows.at(0, 1)));
  for (const timestamp time :
       {timestamp(0us), timestamp(-1us), timestamp::max(), timestamp::min(), expected}) {
    const sql::parameter parameters[]{time};
    const auto back = c->execute({.text = "SELECT CAST(? AS TIMESTAMP(9) WITH TIME ZONE)",
                                  .parameters = {type::time},
                                  .results = {type::time}},
                                 parameters);
    EXPECT_EQ(back.rows.at(0, 0), sql::value(time)) << detail::sql::h2::time_text(time);
  }
}

TEST_F(H2Connection, KeepsBytesAndEmojiAndDistinguishesEmptyFromNull) {
  const auto c = connect();
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  const sql::parameter parameters[]{std::as_bytes(std::span(all)),
                                    std::string_view("\\ \U0001F600 '"), std::string_view(""),
                                    std::monostate()};
  const auto back = c->execute({.text = "SELECT CAST(? AS VARBINARY), CAST(? AS VARCHAR), CAST(? "
                                        "AS VARCHAR), CAST(? AS VARCHAR)",
                                .parameters = {type::bytes, type::text, type::text, type::text},
                                .results = {type::bytes, type::text, type::text, type::text}},
                               parameters);
  EXPECT_EQ(std::get<std::string>(back.rows.at(0, 0)), all);
  EXPECT_EQ(std::get<std::string>(back.rows.at(0, 1)), "\\ \U0001F600 '");
  EXPECT_EQ(std::get<std::string>(back.rows.at(0, 2)), "");
  EXPECT_TRUE(std::holds_alternative<std::monostate>(back.rows.at(0, 3)));
}

TEST_F(H2Connection, AFailedStatementDoesNotEndTheTransaction) {
  const auto c = connect();
  c->run("CREATE TABLE T (N BIGINT PRIMARY KEY)");
  c->begin();
  insert(*c, 1);
  EXPECT_EQ(failure_of([&] { insert(*c, 1); }).code(), errc::duplicate);
  insert(*c, 2);
  c->commit();
  EXPECT_EQ(count(*c), 2);
  c->begin();
  insert(*c, 3);
  c->rollback();
  EXPECT_EQ(count(*c), 2);
  EXPECT_THROW(c->commit(), error);
}

TEST_F(H2Connection, MakesTheDatabaseDurableOrLeavesItToItsAdministrator) {
  const auto setting = [&] {
    const auto output = server_.run(
        "SELECT SETTING_VALUE FROM INFORMATION_SCHEMA.SETTINGS WHERE UPPER(SETTING_NAME) = "
        "'WRITE_DELAY'",
        database_);
    return output.substr(0, output.find('\n'));
  };
  auto risky = options();
  risky.write_delay = 250ms;
  (void)detail::sql::connect_h2(risky);
  EXPECT_EQ(setting(), "250");
  (void)connect();
  EXPECT_EQ(setting(), "0");
  server_.run("CREATE USER GUEST PASSWORD 'guest'", database_);
  auto guest = options();
  guest.user = "guest";
  guest.password = "guest";
  guest.write_delay = 250ms;
  EXPECT_NE(detail::sql::connect_h2(guest), nullptr) << "without the privilege the setting stays";
  EXPECT_EQ(setting(), "0");
}

TEST_F(H2Connection, TheDoctorReportsThatACrashWouldLoseWrites) {
  const auto url = server_.url(database_);
  (void)open(url).store({.create_schema = true, .start = start_mode::require});
  const auto healthy = probe(open(url));
  EXPECT_EQ(healthy.server.substr(0, 4), "H2 2");
  EXPECT_TRUE(healthy.findings.empty()) << healthy.findings.front().problem;
  EXPECT_TRUE(healthy.skew.has_value());
  const auto risky = probe(open(url + "?write_delay=500"));
  ASSERT_EQ(risky.findings.size(), 1U);
  EXPECT_EQ(risky.findings.front().sql, std::vector<std::string>{"SET WRITE_DELAY 0"});
  const auto missing = probe(open(url), {.prefix = "NOT_THERE_"});
  ASSERT_EQ(missing.findings.size(), 2U);
  EXPECT_EQ(missing.findings.front().code, "statement");
  EXPECT_EQ(missing.findings.back().code, "lease_table");
}

TEST_F(H2Connection, ExplainsAConnectionThatTheServerClosesAtLogin) {
  auto wrong = options();
  (void)connect();
  wrong.password = "no";
  const auto refused = failure_of([&] { (void)detail::sql::connect_h2(wrong); });
  EXPECT_NE(std::string(refused.what()).find("password"), std::string::npos) << refused.what();
  EXPECT_EQ(std::string(refused.what()).find("no;"), std::string::npos);
}

TEST_F(H2Connection, H2AndPostgresqlRecogniseTheWrongUrl) {
  const auto& postgres = shared_server<postgres_server>();
  const auto not_h2 = failure_of([&] {
    (void)detail::sql::connect_h2({.port = postgres.port(),
                                   .database = "holdfast",
                                   .user = "holdfast",
                                   .password = "secret"});
  });
  EXPECT_NE(std::string(not_h2.what()).find("postgresql://"), std::string::npos) << not_h2.what();
  const auto not_postgres = failure_of([&] {
    (void)detail::sql::connect_postgres(
        {.connection_string =
             "host=127.0.0.1 port=" + std::to_string(server_.port()) +
             " user=holdfast password=secret sslmode=disable dbname=" + database_});
  });
  EXPECT_NE(std::string(not_postgres.what()).find("h2://"), std::string::npos)
      << not_postgres.what();
  EXPECT_EQ(open(server_.url(database_)).dialect(), sql::dialect_id::h2);
}

TEST_F(H2Connection, TheStoreKeepsBytes) {
  const auto db = open(server_.url(database_));
  const auto store = db.store({.create_schema = true, .payload = payload_column::bytes});
  entry e{.name = "n",
          .key = "k",
          .as_of = system_clock()->now(),
          .expire_on = system_clock()->now() + 1h,
          .payload = std::string("\0\xff\\x", 4),
          .payload_class = "c"};
  store->put(e);
  EXPECT_EQ(store->find("n", "k"), e);
}

}  // namespace
}  // namespace holdfast::test
