// H2 over its PostgreSQL port: every trap of that port, on the real engine.

#include "sql/h2_connection.hpp"

#include <holdfast/database.hpp>
#include <holdfast/store/probe.hpp>

#include "sql/h2_values.hpp"
#include "sql/postgres_connection.hpp"
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

  [[nodiscard]] sql::h2_options options() const {
    return {.port = server_.port(), .database = database_, .user = "holdfast", .password = "secret"};
  }
  [[nodiscard]] std::unique_ptr<sql::connection> connect() const { return sql::connect_h2(options()); }

  static std::int64_t count(sql::connection& on) {
    const auto found = on.execute({.text = "SELECT COUNT(*) FROM T", .results = {type::integer}}, {});
    return std::get<std::int64_t>(found.rows.at(0, 0));
  }
  static void insert(sql::connection& on, std::int64_t number) {
    const sql::parameter values[]{number};
    on.execute({.text = "INSERT INTO T (N) VALUES (?)", .parameters = {type::integer}}, values);
  }

  const h2_endpoint& server_ = shared_server<h2_server>();
  std::string database_;
};

struct finish {
  void operator()(PGconn* c) const noexcept { PQfinish(c); }
};

TEST_F(H2Connection, ThePortRunsTheStatementBeforeWhenOneCannotBeParsed) {
  // What this driver is built around. When this fails, H2 has mended its ways, and the driver may become simpler.
  const std::unique_ptr<PGconn, finish> raw(PQconnectdb(
      ("host=127.0.0.1 port=" + std::to_string(server_.port()) + " user=holdfast password=secret sslmode=disable dbname=" + database_)
          .c_str()));
  ASSERT_EQ(PQstatus(raw.get()), CONNECTION_OK);
  PQclear(PQexec(raw.get(), "CREATE TABLE T (N INT)"));
  PQclear(PQexecParams(raw.get(), "INSERT INTO T VALUES (1)", 0, nullptr, nullptr, nullptr, nullptr, 0));
  PGresult* bogus = PQexecParams(raw.get(), "SELEC BOGUS", 0, nullptr, nullptr, nullptr, nullptr, 0);
  EXPECT_EQ(PQresultStatus(bogus), PGRES_COMMAND_OK) << "it says that the nonsense was done";
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
  EXPECT_EQ(failure_of([&] { c->execute({.text = "INSERT INTO NOWHERE VALUES (1)"}, {}); }).code(), errc::missing_object);
  EXPECT_EQ(count(*c), 1);
  insert(*c, 2);
  EXPECT_EQ(failure_of([&] { c->execute({.text = "SELECT NOTHING FROM T"}, {}); }).code(), errc::missing_object);
  EXPECT_EQ(count(*c), 2);
  insert(*c, 3);
  const sql::parameter too_many[]{std::int64_t{4}, std::int64_t{5}};
  EXPECT_EQ(failure_of([&] {
              c->execute({.text = "INSERT INTO T (N) VALUES (?)", .parameters = {type::integer, type::integer}}, too_many);
            }).code(),
            errc::invalid_argument);
  EXPECT_EQ(count(*c), 3);
  insert(*c, 4);
  const std::string long_text(sql::h2_longest_value + 1, 'x');
  const sql::parameter too_long[]{std::string_view(long_text)};
  EXPECT_EQ(failure_of([&] { c->execute({.text = "INSERT INTO T (V) VALUES (?)", .parameters = {type::text}}, too_long); }).code(),
            errc::too_large)
      << "H2 would fail while it binds, and run the insert before";
  EXPECT_EQ(count(*c), 4);
}

TEST_F(H2Connection, ACharacterBeyondThePlaneCountsTwice) {
  const auto c = connect();
  c->run("CREATE TABLE T (N BIGINT, V VARCHAR)");
  insert(*c, 1);
  std::string faces;
  for (std::size_t i = 0; i < sql::h2_longest_value / 2; ++i) faces += "\U0001F600";
  const sql::statement put{.text = "INSERT INTO T (V) VALUES (?)", .parameters = {type::text}};
  const sql::parameter fits[]{std::string_view(faces)};
  EXPECT_EQ(c->execute(put, fits).affected, 1U);
  faces += "a";
  const sql::parameter does_not[]{std::string_view(faces)};
  EXPECT_EQ(failure_of([&] { c->execute(put, does_not); }).code(), errc::too_large);
  EXPECT_EQ(count(*c), 2);
}

TEST_F(H2Connection, NamesAreUsedAgainAndNeverMixedUp) {
  const auto c = connect();
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 230; ++i) {
      const auto found = c->execute({.text = "SELECT " + std::to_string(i), .results = {type::integer}}, {});
      ASSERT_EQ(std::get<std::int64_t>(found.rows.at(0, 0)), i);
    }
    // A name that was taken from a statement, and whose new statement cannot be parsed, belongs to nobody.
    EXPECT_EQ(failure_of([&] { c->execute({.text = "SELEC BOGUS"}, {}); }).code(), errc::grammar);
  }
}

TEST_F(H2Connection, ReadsTimesOfAnyOffsetAndNineDigits) {
  const auto c = connect();
  const auto found = c->execute({.text = "SELECT TIMESTAMP WITH TIME ZONE '2026-11-15 12:34:56.999999999-05:30', CAST(NULL AS TIMESTAMP)",
                                 .results = {type::time, type::time}},
                                {});
  const timestamp expected(std::chrono::sys_days{std::chrono::year(2026) / 11 / 15} + 18h + 4min + 56s + 999'999us);
  EXPECT_EQ(std::get<timestamp>(found.rows.at(0, 0)), expected) << "cut off, never rounded into the future";
  EXPECT_TRUE(std::holds_alternative<std::monostate>(found.rows.at(0, 1)));
  for (const timestamp when : {timestamp(0us), timestamp(-1us), timestamp::max(), timestamp::min(), expected}) {
    const sql::parameter given[]{when};
    const auto back =
        c->execute({.text = "SELECT CAST(? AS TIMESTAMP(9) WITH TIME ZONE)", .parameters = {type::time}, .results = {type::time}}, given);
    EXPECT_EQ(back.rows.at(0, 0), sql::value(when)) << sql::h2::time_text(when);
  }
}

TEST_F(H2Connection, KeepsBytesAndEmojiAndTellsEmptyFromNull) {
  const auto c = connect();
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  const sql::parameter given[]{std::as_bytes(std::span(all)), std::string_view("\\ \U0001F600 '"), std::string_view(""), std::monostate()};
  const auto back = c->execute({.text = "SELECT CAST(? AS VARBINARY), CAST(? AS VARCHAR), CAST(? AS VARCHAR), CAST(? AS VARCHAR)",
                                .parameters = {type::bytes, type::text, type::text, type::text},
                                .results = {type::bytes, type::text, type::text, type::text}},
                               given);
  EXPECT_EQ(std::get<std::string>(back.rows.at(0, 0)), all);
  EXPECT_EQ(std::get<std::string>(back.rows.at(0, 1)), "\\ \U0001F600 '");
  EXPECT_EQ(std::get<std::string>(back.rows.at(0, 2)), "");
  EXPECT_TRUE(std::holds_alternative<std::monostate>(back.rows.at(0, 3)));
}

TEST_F(H2Connection, AFailureInATransactionUndoesNothingByItself) {
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
    const auto told =
        server_.run("SELECT SETTING_VALUE FROM INFORMATION_SCHEMA.SETTINGS WHERE UPPER(SETTING_NAME) = 'WRITE_DELAY'", database_);
    return told.substr(0, told.find('\n'));
  };
  auto risky = options();
  risky.write_delay = 250ms;
  (void)sql::connect_h2(risky);
  EXPECT_EQ(setting(), "250");
  (void)connect();
  EXPECT_EQ(setting(), "0");
  server_.run("CREATE USER GUEST PASSWORD 'guest'", database_);
  auto guest = options();
  guest.user = "guest";
  guest.password = "guest";
  guest.write_delay = 250ms;
  EXPECT_NE(sql::connect_h2(guest), nullptr) << "who may not change it goes on";
  EXPECT_EQ(setting(), "0");
}

TEST_F(H2Connection, TheDoctorSaysWhenACrashWouldLoseWrites) {
  const auto url = server_.url(database_);
  (void)open(url).store({.create_schema = true});
  const auto well = probe(open(url));
  EXPECT_EQ(well.server.substr(0, 4), "H2 2");
  EXPECT_TRUE(well.findings.empty()) << well.findings.front().problem;
  EXPECT_TRUE(well.skew.has_value());
  const auto risky = probe(open(url + "?write_delay=500"));
  ASSERT_EQ(risky.findings.size(), 1U);
  EXPECT_EQ(risky.findings.front().sql, std::vector<std::string>{"SET WRITE_DELAY 0"});
  const auto missing = probe(open(url), {.prefix = "NOT_THERE_"});
  ASSERT_EQ(missing.findings.size(), 1U);
  EXPECT_EQ(missing.findings.front().code, "statement");
}

TEST_F(H2Connection, SaysWhatMayBeWrongWhenItHangsUp) {
  auto wrong = options();
  (void)connect();
  wrong.password = "no";
  const auto refused = failure_of([&] { (void)sql::connect_h2(wrong); });
  EXPECT_NE(std::string(refused.what()).find("password"), std::string::npos) << refused.what();
  EXPECT_EQ(std::string(refused.what()).find("no;"), std::string::npos);
}

TEST_F(H2Connection, EachURLKnowsWhenItMeetsTheOther) {
  const auto& postgres = shared_server<postgres_server>();
  const auto not_h2 = failure_of(
      [&] { (void)sql::connect_h2({.port = postgres.port(), .database = "holdfast", .user = "holdfast", .password = "secret"}); });
  EXPECT_NE(std::string(not_h2.what()).find("postgresql://"), std::string::npos) << not_h2.what();
  const auto not_postgres = failure_of([&] {
    (void)sql::connect_postgres({.connection_string = "host=127.0.0.1 port=" + std::to_string(server_.port()) +
                                                      " user=holdfast password=secret sslmode=disable dbname=" + database_});
  });
  EXPECT_NE(std::string(not_postgres.what()).find("h2://"), std::string::npos) << not_postgres.what();
  EXPECT_EQ(open(server_.url(database_)).dialect(), sql::dialect_id::h2);
}

TEST_F(H2Connection, TheStoreKeepsBytesRewritesAndLeases) {
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
