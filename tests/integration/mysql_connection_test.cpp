#include "integration/mysql_fixture.hpp"
#include "sql/mysql/batch.hpp"
#include "sql/mysql/connection.hpp"
#include "support/eventually.hpp"

#include <limits>
#include <optional>
#include <type_traits>
#include <variant>

namespace holdfast::test {
namespace {

using sql::batch_statement;

TEST_F(MysqlConnection, KnowsItsDialect) {
  EXPECT_EQ(connect()->dialect(), sql::dialect_id::mariadb);
}

TEST_F(MysqlConnection, TheSessionIsStrictInUtcAndReadCommitted) {
  const auto c = connect();
  const auto r = c->execute({.text = "SELECT @@time_zone, @@tx_isolation, @@character_set_client, "
                                     "@@autocommit, @@innodb_lock_wait_timeout, "
                                     "FIND_IN_SET('STRICT_ALL_TABLES', @@sql_mode)",
                             .results = {type::text, type::text, type::text, type::integer,
                                         type::integer, type::integer}},
                            {});
  EXPECT_EQ(r.rows.at(0, 0), value("+00:00"s));
  EXPECT_EQ(r.rows.at(0, 1), value("READ-COMMITTED"s));
  EXPECT_EQ(r.rows.at(0, 2), value("utf8mb4"s));
  EXPECT_EQ(r.rows.at(0, 3), value(std::int64_t{1}));
  EXPECT_EQ(r.rows.at(0, 4), value(std::int64_t{9}));  // one second less than the limit
  EXPECT_GT(std::get<std::int64_t>(r.rows.at(0, 5)), 0);
}

TEST_F(MysqlConnection, EveryTypeIsStoredUnchanged) {
  const auto c = connect();
  c->run("CREATE TABLE v (i BIGINT, t LONGTEXT CHARACTER SET utf8mb4, b LONGBLOB, m DATETIME(6))");
  using namespace std::chrono;
  const std::string large(5'000'000, 'x');
  const std::string zeros(3, '\0');
  std::string noise(100'000, '\0');
  for (std::size_t i = 0; i < noise.size(); ++i) noise[i] = static_cast<char>(i * 31 % 256);
  const timestamp first = sys_days(year(1) / 1 / 1) + microseconds(1);
  const timestamp last = sys_days(year(9999) / 12 / 31) + hours(23) + minutes(59) + seconds(59) +
                         microseconds(999'999);
  const std::vector<std::vector<parameter>> rows{
      values({std::monostate{}, std::monostate{}, std::monostate{}, std::monostate{}}),
      values({std::int64_t{0}, std::string_view(""), std::span<const std::byte>(), timestamp{}}),
      values({std::numeric_limits<std::int64_t>::max(), std::string_view("caf\u00e9 \U0001F9CA"),
              bytes_of(noise), last}),
      values({std::numeric_limits<std::int64_t>::min(), std::string_view(large), bytes_of(large),
              first}),
      values({std::int64_t{-1}, std::string_view("a\0b", 3), bytes_of(zeros),
              timestamp{microseconds(-1)}}),
  };
  const statement insert{.text = "INSERT INTO v VALUES (?,?,?,?)",
                         .parameters = {type::integer, type::text, type::bytes, type::time}};
  const statement select{.text = "SELECT i, t, b, m FROM v",
                         .results = {type::integer, type::text, type::bytes, type::time}};
  for (const auto& row : rows) {
    EXPECT_EQ(c->execute(insert, row).affected, 1U);
    const auto r = c->execute(select, {});
    ASSERT_EQ(r.rows.size(), 1U);
    for (std::size_t i = 0; i < row.size(); ++i) {
      const auto expected = std::visit(
          [](const auto& v) -> value {
            using alternative = std::decay_t<decltype(v)>;
            if constexpr (std::is_same_v<alternative, std::string_view>) return std::string(v);
            else if constexpr (std::is_same_v<alternative, std::span<const std::byte>>) {
              return v.empty() ? std::string()
                               : std::string(reinterpret_cast<const char*>(v.data()), v.size());
            } else return v;
          },
          row[i]);
      EXPECT_TRUE(r.rows.at(0, i) == expected) << "column " << i;
    }
    c->run("DELETE FROM v");
  }
}

TEST_F(MysqlConnection, RefusesValuesThatDoNotFit) {
  const auto c = connect();
  const statement select{.text = "SELECT ?", .parameters = {type::time}, .results = {type::text}};
  const timestamp year_0 = std::chrono::sys_days(std::chrono::year(0) / 12 / 31);
  EXPECT_EQ(failure([&] { c->execute(select, values({year_0})); }).code(), errc::out_of_range);
  EXPECT_EQ(failure([&] { c->execute(select, values({std::int64_t{1}})); }).code(),
            errc::invalid_argument);
  EXPECT_EQ(failure([&] { c->execute(select, {}); }).code(), errc::invalid_argument);
  const statement two_columns{.text = "SELECT 1, 2", .results = {type::integer}};
  EXPECT_EQ(failure([&] { c->execute(two_columns, {}); }).code(), errc::invalid_argument);
  const statement unsigned_max{.text = "SELECT 18446744073709551615", .results = {type::integer}};
  EXPECT_EQ(failure([&] { c->execute(unsigned_max, {}); }).code(), errc::out_of_range);
  c->run("SET sql_mode=''");
  c->run("CREATE TABLE z (d DATETIME)");
  c->run("INSERT INTO z VALUES ('0000-00-00')");
  const auto invalid = c->execute({.text = "SELECT d FROM z", .results = {type::time}}, {});
  EXPECT_EQ(invalid.rows.at(0, 0), value{})
      << "an invalid date is NULL: it must not make the other rows unreadable";
  EXPECT_EQ(number(*c, "SELECT 7"), 7);  // the connection is still usable
}

TEST_F(MysqlConnection, ClosesTheLeastRecentlyUsedStatements) {
  const auto c = connect();
  const auto prepared = [&] {
    return number(*c,
                  "SELECT CAST(VARIABLE_VALUE AS SIGNED) FROM information_schema.SESSION_STATUS "
                  "WHERE VARIABLE_NAME='Com_stmt_prepare'");
  };
  const auto select = [&](int i) { EXPECT_EQ(number(*c, "SELECT " + std::to_string(i)), i); };
  const auto before = prepared();
  for (int i = 0; i < 300; ++i) select(i);
  for (int i = 299; i > 100; --i) select(i);  // still prepared
  EXPECT_EQ(prepared() - before, 300 + 1);  // the query of prepared() was closed and prepared again
  select(0);                                // was closed
  EXPECT_EQ(prepared() - before, 300 + 2);
  EXPECT_LE(number(*c,
                   "SELECT CAST(VARIABLE_VALUE AS SIGNED) FROM information_schema.SESSION_STATUS "
                   "WHERE VARIABLE_NAME='Com_stmt_close'"),
            300);
}

TEST_F(MysqlConnection, TransactionsAndTheirMisuse) {
  const auto c = connect();
  c->run("CREATE TABLE t (i BIGINT PRIMARY KEY) ENGINE=InnoDB");
  c->begin();
  EXPECT_EQ(failure([&] { c->begin(); }).code(), errc::invalid_argument);
  c->execute({.text = "INSERT INTO t VALUES (1)"}, {});
  c->rollback();
  EXPECT_EQ(number(*c, "SELECT COUNT(*) FROM t"), 0);
  c->begin();
  c->execute({.text = "INSERT INTO t VALUES (2)"}, {});
  c->commit();
  EXPECT_EQ(number(*connect(), "SELECT COUNT(*) FROM t"), 1);
  EXPECT_EQ(failure([&] { c->commit(); }).code(), errc::invalid_argument);
  c->rollback();  // nothing to do
  // A failed statement does not end the transaction.
  c->begin();
  c->execute({.text = "INSERT INTO t VALUES (3)"}, {});
  EXPECT_EQ(failure([&] { c->execute({.text = "INSERT INTO t VALUES (2)"}, {}); }).code(),
            errc::duplicate);
  c->commit();
  EXPECT_EQ(number(*c, "SELECT COUNT(*) FROM t"), 2);
}

// ---- batches

const batch_statement upsert{
    .text =
        "INSERT INTO FAILOVER_STORE (FAILOVER_NAME, FAILOVER_KEY, AS_OF, EXPIRE_ON, PAYLOAD, "
        "PAYLOAD_CLASS) VALUES",
    .row = "(?,?,?,?,?,?)",
    .tail =
        "ON DUPLICATE KEY UPDATE EXPIRE_ON=IF(VALUES(AS_OF) >= AS_OF OR AS_OF > ?, "
        "VALUES(EXPIRE_ON), EXPIRE_ON), "
        "PAYLOAD=IF(VALUES(AS_OF) >= AS_OF OR AS_OF > ?, VALUES(PAYLOAD), PAYLOAD), "
        "PAYLOAD_CLASS=IF(VALUES(AS_OF) >= AS_OF OR AS_OF > ?, VALUES(PAYLOAD_CLASS), "
        "PAYLOAD_CLASS), "
        "AS_OF=IF(VALUES(AS_OF) >= AS_OF OR AS_OF > ?, VALUES(AS_OF), AS_OF)",
    .columns = {type::text, type::text, type::time, type::time, type::text, type::text},
    .common = {type::time, type::time, type::time, type::time},
};

const timestamp noon = std::chrono::sys_days(std::chrono::year(2026) / 3 / 1) + 12h;

/// Rows of the store. Owns the text that the columns refer to.
struct entries {
  explicit entries(std::size_t count, timestamp as_of, const std::string& payload)
      : payload_(payload) {
    for (std::size_t i = 0; i < count; ++i) keys_.push_back("key-" + std::to_string(i));
    columns.resize(6);
    for (std::size_t i = 0; i < count; ++i) {
      const bool tombstone = i % 5 == 4;
      columns[0].emplace_back(std::string_view("country"));
      columns[1].emplace_back(std::string_view(keys_[i]));
      columns[2].emplace_back(as_of);
      columns[3].emplace_back(as_of + 24h);
      columns[4].push_back(tombstone ? parameter() : parameter(std::string_view(payload_)));
      columns[5].push_back(tombstone ? parameter() : parameter(std::string_view("Country")));
    }
  }

  std::vector<std::vector<parameter>> columns{};

 private:
  std::string payload_;
  std::vector<std::string> keys_{};
};

class MysqlBatch : public MysqlConnection {
 protected:
  MysqlBatch() : c_(connect()) {
    c_->run(
        "CREATE TABLE FAILOVER_STORE (FAILOVER_NAME VARCHAR(50) CHARACTER SET utf8mb4 COLLATE "
        "utf8mb4_nopad_bin NOT NULL, "
        "FAILOVER_KEY VARCHAR(256) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL, AS_OF "
        "DATETIME(6) NOT NULL, "
        "EXPIRE_ON DATETIME(6) NOT NULL, PAYLOAD LONGTEXT, PAYLOAD_CLASS VARCHAR(256), PRIMARY KEY "
        "(FAILOVER_NAME, FAILOVER_KEY)) "
        "ENGINE=InnoDB");
  }

  std::uint64_t put(const entries& rows, timestamp horizon = noon + 1h) {
    const std::vector<parameter> common(4, horizon);
    return c_->batch(upsert, rows.columns, common).affected;
  }
  std::int64_t count(const std::string& where = "TRUE") {
    return number(*c_, "SELECT COUNT(*) FROM FAILOVER_STORE WHERE " + where);
  }

  std::unique_ptr<connection> c_;
};

TEST_F(MysqlBatch, OfAnySizeIsWrittenCompletely) {
  for (const std::size_t rows : {1U, 7U, 100U, 10'000U}) {
    c_->run("DELETE FROM FAILOVER_STORE");
    EXPECT_EQ(put(entries(rows, noon, "{}")), rows);
    EXPECT_EQ(count(), static_cast<std::int64_t>(rows));
    EXPECT_EQ(count("PAYLOAD IS NULL AND PAYLOAD_CLASS IS NULL"),
              static_cast<std::int64_t>(rows / 5));
  }
}

TEST_F(MysqlBatch, NewerWins) {
  put(entries(7, noon, "first"));
  EXPECT_EQ(put(entries(7, noon - 1us, "older")), 0U);
  EXPECT_EQ(count("PAYLOAD='first'"), 6);
  put(entries(7, noon, "same time"));  // the last write wins
  EXPECT_EQ(count("PAYLOAD='same time'"), 6);
  EXPECT_EQ(put(entries(7, noon + 1us, "newer")), 14U);  // MySQL counts 2 for an update
  EXPECT_EQ(count("PAYLOAD='newer' AND AS_OF='2026-03-01 12:00:00.000001' AND "
                  "EXPIRE_ON='2026-03-02 12:00:00.000001'"),
            6);
  // A row from the future does not freeze its key.
  put(entries(7, noon + 48h, "future"));
  put(entries(7, noon + 2us, "present"));
  EXPECT_EQ(count("PAYLOAD='present' AND AS_OF='2026-03-01 12:00:00.000002'"), 6);
}

TEST_F(MysqlBatch, WithoutRowsSendsNothing) {
  const auto questions = [&] {
    return number(*c_,
                  "SELECT CAST(VARIABLE_VALUE AS SIGNED) FROM information_schema.SESSION_STATUS "
                  "WHERE VARIABLE_NAME='Questions'");
  };
  const auto before = questions();
  EXPECT_EQ(put(entries(0, noon, "")), 0U);
  EXPECT_EQ(questions(), before + 1);
}

TEST_F(MysqlBatch, ReturnsRows) {
  c_->run("CREATE TABLE n (i BIGINT AUTO_INCREMENT PRIMARY KEY, t VARCHAR(20))");
  const batch_statement insert{.text = "INSERT INTO n (t) VALUES",
                               .row = "(?)",
                               .tail = "RETURNING i, t",
                               .columns = {type::text},
                               .results = {type::integer, type::text}};
  const std::vector<std::vector<parameter>> columns{
      std::vector<parameter>(600, std::string_view("x"))};
  const auto r = c_->batch(insert, columns, {});
  ASSERT_EQ(r.rows.size(), 600U);
  EXPECT_EQ(r.rows.at(599, 0), value(std::int64_t{600}));
}

TEST_F(MysqlBatch, IsAllOrNothing) {
  entries rows(1'000, noon, "{}");
  const std::string long_name(51, 'n');
  rows.columns[0][999] = std::string_view(long_name);
  EXPECT_EQ(failure([&] { put(rows); }).code(), errc::too_large);
  EXPECT_EQ(count(), 0);
  // In a transaction of the caller, earlier statements stay.
  c_->begin();
  put(entries(1, noon, "first"));
  EXPECT_EQ(failure([&] { put(rows); }).code(), errc::too_large);
  c_->commit();
  EXPECT_EQ(count(), 1);
  EXPECT_EQ(failure([&] { c_->batch(upsert, std::vector<std::vector<parameter>>(6), {}); }).code(),
            errc::invalid_argument);
  rows.columns[2].pop_back();
  EXPECT_EQ(failure([&] { put(rows); }).code(), errc::invalid_argument);
}

TEST_F(MysqlBatch, IsDividedToFitThePacketsOfTheServer) {
  const std::string large(3'000'000, 'p');
  put(entries(20, noon, large));  // 48 MB in packets of 16 MB
  EXPECT_EQ(count("LENGTH(PAYLOAD)=3000000"), 16);
  const auto e = failure([&] { put(entries(1, noon + 1s, std::string(17'000'000, 'p'))); });
  EXPECT_EQ(e.code(), errc::too_large);
  EXPECT_THAT(e.what(), HasSubstr("max_allowed_packet"));
  const std::string huge(17'000'000, 'p');
  EXPECT_EQ(failure([&] {
              c_->execute({.text = "SELECT ?", .parameters = {type::text}},
                          values({std::string_view(huge)}));
            }).code(),
            errc::too_large);
  EXPECT_FALSE(c_->broken());
}

TEST(MysqlBatchDivision, KeepsTheLimits) {
  const std::vector<std::vector<parameter>> columns(
      2, std::vector<parameter>(10, std::string_view("0123456789")));
  using detail::sql::mysql::divide_rows;
  EXPECT_EQ(divide_rows(columns, {}, {.rows = 4, .packet = 1'000'000}).size(), 3U);
  EXPECT_EQ(divide_rows(columns, {}, {.rows = 10, .packet = 1'000'000}).size(), 1U);
  EXPECT_EQ(divide_rows(columns, {}, {.parameters = 8, .packet = 1'000'000}).size(), 3U);
  EXPECT_EQ(divide_rows(columns, {}, {.packet = 1024 + 100}).size(), 5U);
  const auto parts = divide_rows(columns, {}, {.rows = 7, .packet = 1'000'000});
  EXPECT_EQ(parts.front().first, 0U);
  EXPECT_EQ(parts.front().last, parts.back().first);
  EXPECT_EQ(parts.back().last, 10U);
  EXPECT_THROW((void)divide_rows(columns, {}, {.packet = 1024 + 10}), error);
  EXPECT_THROW((void)divide_rows(columns, {}, {.parameters = 1, .packet = 1'000'000}), error);
}

// ---- errors

TEST_F(MysqlConnection, ExplainsFailedStatements) {
  const auto c = connect();
  c->run(
      "CREATE TABLE t (k VARCHAR(20) CHARACTER SET utf8mb4 PRIMARY KEY, n TINYINT NOT NULL) "
      "ENGINE=InnoDB");
  const auto insert = [&](std::string_view k, std::int64_t n) {
    c->execute({.text = "INSERT INTO t VALUES (?,?)", .parameters = {type::text, type::integer}},
               values({k, n}));
  };
  insert("private", 1);
  const auto duplicate = failure([&] { insert("private", 2); });
  expect_kind(duplicate, errc::duplicate, false, "1062");
  EXPECT_THAT(duplicate.what(), Not(HasSubstr("private")));
  EXPECT_THAT(duplicate.what(), HasSubstr("PRIMARY"));
  expect_kind(failure([&] { insert("a value longer than twenty", 2); }), errc::too_large, false,
              "1406");
  expect_kind(failure([&] { insert("n", 1'000); }), errc::out_of_range, false, "1264");
  const auto bad = failure([&] { insert("\xff\xfe private", 1); });
  expect_kind(bad, errc::ill_formed_text, false, "1366");
  EXPECT_THAT(bad.what(), Not(HasSubstr("private")));
  expect_kind(failure([&] { c->execute({.text = "SELEC 1"}, {}); }), errc::grammar, false, "1064");
  expect_kind(failure([&] {
                c->run("INSERT INTO t VALUES ('v', 1) AS new ON DUPLICATE KEY UPDATE n=new.n");
              }),
              errc::grammar, false, "1064");
  const auto missing = failure([&] { c->execute({.text = "SELECT * FROM T"}, {}); });
  expect_kind(missing, errc::missing_object, false, "1146");
  EXPECT_THAT(missing.what(), HasSubstr("holdfast store schema --dialect mariadb"));
  expect_kind(failure([&] { c->execute({.text = "SELECT nothing FROM t"}, {}); }),
              errc::missing_object, false, "1054");
  expect_kind(failure([&] { c->execute({.text = "INSERT INTO t VALUES ('x', NULL)"}, {}); }),
              errc::missing_object, false, "1048");
  expect_kind(failure([&] { c->run("SET GLOBAL read_only=1"); }), errc::permission, false, "1227");
  expect_kind(failure([&] { c->run("SELECT * FROM mysql.global_priv"); }), errc::permission, false,
              "1142");
  expect_kind(failure([&] { c->run("SET STATEMENT max_statement_time=0.1 FOR SELECT SLEEP(5)"); }),
              errc::timeout, true, "1969");
  {
    const auto killer = kill_in_sleep(*c, "QUERY");
    expect_kind(failure([&] { c->run("INSERT INTO t SELECT SLEEP(60), 3"); }), errc::timeout, true,
                "1317");
  }
  EXPECT_FALSE(c->broken());
  EXPECT_EQ(number(*c, "SELECT COUNT(*) FROM t"), 1);
}

TEST_F(MysqlConnection, ExplainsWhyItCannotConnect) {
  auto wrong = options();
  wrong.password = "not the secret";
  expect_kind(failure([&] {
                try {
                  (void)connect_mysql(wrong);
                } catch (const error& e) {
                  EXPECT_THAT(e.what(), Not(HasSubstr(wrong.password)));
                  throw;
                }
              }),
              errc::permission, false, "1045");
  auto no_database = options();
  no_database.user = "admin";
  no_database.database = "nowhere";
  expect_kind(failure([&] { (void)connect_mysql(no_database); }), errc::missing_object, false,
              "1049");
  no_database.user = "holdfast";
  expect_kind(failure([&] { (void)connect_mysql(no_database); }), errc::permission, false, "1044");
  auto closed_port = options();
  closed_port.port = 1;
  expect_kind(failure([&] { (void)connect_mysql(closed_port); }), errc::unavailable, true, "2002");
  auto unknown_host = options();
  unknown_host.host = "no.such.host.invalid";
  EXPECT_EQ(failure([&] { (void)connect_mysql(unknown_host); }).code(), errc::unavailable);
  auto no_socket = options();
  no_socket.socket = "/nowhere/mysql.sock";
  EXPECT_EQ(failure([&] { (void)connect_mysql(no_socket); }).code(), errc::unavailable);
  auto no_timeout = options();
  no_timeout.connect_timeout = 0ms;
  EXPECT_EQ(failure([&] { (void)connect_mysql(no_timeout); }).code(), errc::invalid_argument);
  // A user name that is also the password is not shown.
  auto same = options();
  same.user = same.password = "twins";
  EXPECT_THAT(failure([&] { (void)connect_mysql(same); }).what(), Not(HasSubstr("twins")));
}

TEST_F(MysqlConnection, AfterADeadlockNothingRunsOutsideTheTransaction) {
  const auto a = connect();
  const auto b = connect();
  a->run("CREATE TABLE t (i BIGINT PRIMARY KEY, n BIGINT) ENGINE=InnoDB");
  a->run("INSERT INTO t VALUES (1,0),(2,0)");
  const auto update = [](connection& c, int i) {
    c.execute({.text = "UPDATE t SET n=n+1 WHERE i=" + std::to_string(i)}, {});
  };
  a->begin();
  b->begin();
  update(*a, 1);
  update(*b, 2);
  std::optional<error> failure_of_b;
  std::jthread other([&] {
    try {
      update(*b, 1);
    } catch (const error& e) {
      failure_of_b = e;
    }
  });
  std::this_thread::sleep_for(200ms);
  std::optional<error> failure_of_a;
  try {
    update(*a, 2);
  } catch (const error& e) {
    failure_of_a = e;
  }
  other.join();
  ASSERT_NE(failure_of_a.has_value(), failure_of_b.has_value());
  expect_kind(failure_of_a ? *failure_of_a : *failure_of_b, errc::unavailable, true, "1213");
  auto& loser = failure_of_a ? *a : *b;
  auto& winner = failure_of_a ? *b : *a;
  EXPECT_TRUE(failure([&] { update(loser, 1); }).transient());
  EXPECT_TRUE(failure([&] { loser.commit(); }).transient());
  loser.rollback();
  winner.commit();
  EXPECT_EQ(number(loser, "SELECT SUM(n) FROM t"), 2);
}

TEST_F(MysqlConnection, ALockWaitEndsBeforeTheLimit) {
  auto short_limit = options();
  short_limit.statement_timeout = 2'500ms;
  const auto a = connect();
  const auto b = connect_mysql(short_limit);
  a->run("CREATE TABLE t (i BIGINT PRIMARY KEY) ENGINE=InnoDB");
  a->begin();
  a->execute({.text = "INSERT INTO t VALUES (1)"}, {});
  expect_kind(failure([&] { b->execute({.text = "INSERT INTO t VALUES (1)"}, {}); }),
              errc::unavailable, true, "1205");
  EXPECT_FALSE(b->broken());
}

TEST(MysqlServer, IsReachedThroughItsSocket) {
  const mariadb_server server({.durable = false});
  auto options = options_for(server.port(), "holdfast");
  options.socket = server.data_directory() / "m.sock";
  options.user = "root";
  const auto c = connect_mysql(options);
  const statement user{.text = "SELECT USER()", .results = {type::text}};
  EXPECT_EQ(c->execute(user, {}).rows.at(0, 0), value("root@localhost"s));
}

TEST(MysqlServer, RefusesTooManyClientsAndWritesWhileReadOnly) {
  mariadb_server server({.settings = {"max-connections=10", "extra-port=0"}, .durable = false});
  const auto options = options_for(server.port(), "holdfast");
  {
    std::vector<std::unique_ptr<connection>> many;
    const auto e = failure([&] {
      for (int i = 0; i < 20; ++i) many.push_back(connect_mysql(options));
    });
    expect_kind(e, errc::unavailable, true, "1040");
  }
  std::unique_ptr<connection> c;
  const auto connects = [&] {
    try {
      c = connect_mysql(options);
      return true;
    } catch (const error&) {
      return false;  // the server has not noticed yet that the others have gone
    }
  };
  ASSERT_TRUE(eventually(connects));
  c->run("CREATE TABLE t (i BIGINT)");
  server.run("SET GLOBAL read_only=1");
  expect_kind(failure([&] { c->execute({.text = "INSERT INTO t VALUES (1)"}, {}); }),
              errc::unavailable, true, "1290");
}

}  // namespace
}  // namespace holdfast::test
