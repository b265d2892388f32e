#include "integration/postgres_testing.hpp"
#include "sql/postgres/connection.hpp"
#include "support/postgres_server.hpp"
#include "support/shared_server.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <limits>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace holdfast;
using namespace holdfast::detail::sql;
using namespace holdfast::test;
using namespace std::chrono_literals;
using namespace std::string_literals;
using std::chrono::microseconds;

const std::string& database() {
  static const std::string name =
      shared_server<postgres_server>().create_database("postgres_connection");
  return name;
}

std::unique_ptr<connection> connect(std::chrono::milliseconds limit = 20s) {
  return connect_postgres({.connection_string = shared_server<postgres_server>().url(database()),
                           .statement_timeout = limit});
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

timestamp utc(int year, unsigned month, unsigned day, microseconds time_of_day = {}) {
  return timestamp(std::chrono::sys_days(std::chrono::year(year) / static_cast<int>(month) /
                                         static_cast<int>(day))) +
         time_of_day;
}

// ---- values

TEST(PostgresValues, IntegersAreKeptUpToTheLimits) {
  const auto c = connect();
  const statement s{.text = "SELECT $1", .parameters = {type::integer}, .results = {type::integer}};
  for (const auto number :
       {std::int64_t{0}, std::int64_t{-1}, std::int64_t{1} << 40,
        std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()}) {
    EXPECT_EQ(std::get<std::int64_t>(execute(*c, s, {number}).rows.at(0, 0)), number);
  }
}

TEST(PostgresValues, SmallerIntegersAreRead) {
  const auto c = connect();
  const auto rows =
      execute(*c,
              {.text = "SELECT (-3)::smallint, 70000::integer, count(*) FROM generate_series(1, 5)",
               .results = {type::integer, type::integer, type::integer}})
          .rows;
  EXPECT_EQ(rows.at(0, 0), value{std::int64_t{-3}});
  EXPECT_EQ(rows.at(0, 1), value{std::int64_t{70000}});
  EXPECT_EQ(rows.at(0, 2), value{std::int64_t{5}});
}

TEST(PostgresValues, TextIsKeptToTheByteAndEmptyIsNotNull) {
  const auto c = connect();
  const statement s{.text = "SELECT $1, length($1)",
                    .parameters = {type::text},
                    .results = {type::text, type::integer}};
  for (const std::string text :
       {"", " ", "plain", "quote ' \\ \" $1 ?",
        "\xF0\x9F\x98\x80 \xE6\x97\xA5\xE6\x9C\xAC \xC3\xA9", "a\nb\r\n\x01"}) {
    const auto rows = execute(*c, s, {std::string_view(text)}).rows;
    EXPECT_EQ(rows.at(0, 0), value{text});
  }
  EXPECT_EQ(execute(*c, s, {std::monostate{}}).rows.at(0, 0), value{});
  // The data of a default string_view is null; it is an empty text nevertheless.
  EXPECT_EQ(execute(*c, s, {std::string_view{}}).rows.at(0, 0), value{std::string()});
}

TEST(PostgresValues, AllKindsOfTextColumnsAreRead) {
  const auto c = connect();
  const auto rows = execute(*c, {.text = "SELECT 'a'::varchar, 'b'::char(3), 'c'::name",
                                 .results = {type::text, type::text, type::bytes}})
                        .rows;
  EXPECT_EQ(rows.at(0, 0), value{std::string("a")});
  EXPECT_EQ(rows.at(0, 1), value{std::string("b  ")});
  EXPECT_EQ(rows.at(0, 2), value{std::string("c")});
}

TEST(PostgresValues, BytesMayBeAnything) {
  const auto c = connect();
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  const statement s{.text = "SELECT $1, octet_length($1)",
                    .parameters = {type::bytes},
                    .results = {type::bytes, type::integer}};
  for (const std::string& bytes : {all, std::string(3, '\0'), std::string()}) {
    const auto rows = execute(*c, s, {bytes_of(bytes)}).rows;
    EXPECT_EQ(rows.at(0, 0), value{bytes});
    EXPECT_EQ(rows.at(0, 1), value{static_cast<std::int64_t>(bytes.size())});
  }
  EXPECT_EQ(execute(*c, s, {std::span<const std::byte>{}}).rows.at(0, 0), value{std::string()});
}

TEST(PostgresValues, TimesKeepTheirMicroseconds) {
  const auto c = connect();
  const statement s{.text = "SELECT $1, ($1 AT TIME ZONE 'UTC')::text",
                    .parameters = {type::time},
                    .results = {type::time, type::text}};
  const std::vector<std::pair<timestamp, std::string>> cases{
      {utc(1, 1, 1, 1us), "0001-01-01 00:00:00.000001"},
      {utc(1969, 12, 31, 24h - 1us), "1969-12-31 23:59:59.999999"},
      {utc(1970, 1, 1), "1970-01-01 00:00:00"},
      {utc(2000, 1, 1), "2000-01-01 00:00:00"},
      {utc(2026, 11, 30, 12h + 123456us), "2026-11-30 12:00:00.123456"},
      {utc(9999, 12, 31, 24h - 1us), "9999-12-31 23:59:59.999999"},
      {timestamp::max(), "infinity"},
      {timestamp::min(), "-infinity"},
  };
  for (const auto& [time, text] : cases) {
    const auto rows = execute(*c, s, {time}).rows;
    EXPECT_EQ(rows.at(0, 0), value{time}) << text;
    EXPECT_EQ(rows.at(0, 1), value{text});
  }
  // A column without a zone is read as UTC, whatever the time zone of the server is.
  const auto rows =
      execute(*c, {.text = "SELECT timestamp '2026-11-30 12:00', current_setting('TimeZone')",
                   .results = {type::time, type::text}})
          .rows;
  EXPECT_EQ(rows.at(0, 0), value{utc(2026, 11, 30, 12h)});
  EXPECT_EQ(rows.at(0, 1), value{std::string("UTC")});
}

TEST(PostgresValues, TimesOutsideTheCalendarAreRefused) {
  const auto c = connect();
  const statement s{.text = "SELECT $1", .parameters = {type::time}, .results = {type::time}};
  expect_kind(failure_of([&] { execute(*c, s, {timestamp::min() + 1us}); }), errc::out_of_range,
              false, false);
  EXPECT_FALSE(c->broken());
  const auto latest = timestamp::max() - 1us;
  EXPECT_EQ(execute(*c, s, {latest}).rows.at(0, 0), value{latest});
  const auto late =
      execute(*c, {.text = "SELECT timestamptz '294270-01-01 00:00:00Z'", .results = {type::time}})
          .rows;
  EXPECT_EQ(late.at(0, 0), value{}) << "read as NULL: it must not make the other rows unreadable";
}

TEST(PostgresValues, FiveMegabytesOfText) {
  const auto c = connect();
  std::string text;
  for (std::size_t i = 0; text.size() < 5'000'000; ++i)
    text += "line " + std::to_string(i) + " \xF0\x9F\x98\x80\n";
  const statement s{.text = "SELECT $1, md5($1)",
                    .parameters = {type::text},
                    .results = {type::text, type::text}};
  const auto rows = execute(*c, s, {std::string_view(text)}).rows;
  EXPECT_TRUE(rows.at(0, 0) == value{text});
}

TEST(PostgresValues, UnknownTypesAreNamed) {
  const auto c = connect();
  const auto failure =
      failure_of([&] { execute(*c, {.text = "SELECT 1.5 AS price", .results = {type::integer}}); });
  EXPECT_EQ(failure.code(), errc::unsupported_type);
  EXPECT_STREQ(failure.what(),
               "the column price is of type numeric, which cannot be read as an integer");
  EXPECT_EQ(failure_of([&] {
              execute(*c, {.text = "SELECT 'x'::text", .results = {type::integer}});
            }).code(),
            errc::unsupported_type);
  EXPECT_EQ(
      failure_of([&] { execute(*c, {.text = "SELECT 1, 2", .results = {type::integer}}); }).code(),
      errc::invalid_argument);
  // The rows are ignored if no columns are declared.
  EXPECT_EQ(execute(*c, {.text = "SELECT 1.5"}).rows.size(), 0U);
  EXPECT_FALSE(c->broken());
}

TEST(PostgresValues, WrongParametersAreRefusedBeforeAnythingIsSent) {
  const auto c = connect();
  const statement s{.text = "SELECT $1", .parameters = {type::text}, .results = {type::text}};
  using namespace std::string_view_literals;
  const auto nul = failure_of([&] { execute(*c, s, {"a\0b"sv}); });
  expect_kind(nul, errc::invalid_argument, false, false);
  EXPECT_NE(nul.message().find("NUL"), std::string::npos);
  expect_kind(failure_of([&] { execute(*c, s, {}); }), errc::invalid_argument, false, false);
  expect_kind(failure_of([&] { execute(*c, s, {std::int64_t{1}}); }), errc::invalid_argument, false,
              false);
  expect_kind(failure_of([&] { execute(*c, {.text = "SELECT 1\0; DROP"s}); }),
              errc::invalid_argument, false, false);
  EXPECT_EQ(execute(*c, s, {bytes_of("text in bytes")}).rows.at(0, 0),
            value{std::string("text in bytes")});
}

// ---- batches

struct batch_table {
  explicit batch_table(connection& c, const std::string& name) : table(name) {
    c.run("CREATE TABLE " + name +
          " (id BIGINT PRIMARY KEY, name TEXT, payload BYTEA, at TIMESTAMPTZ, n BIGINT, common "
          "TEXT)");
    insert.text = "INSERT INTO " + name +
                  " SELECT a, b, c, d, e, $6 FROM unnest($1, $2, $3, $4, $5) AS u(a, b, c, d, e) " +
                  "ON CONFLICT (id) DO UPDATE SET name = excluded.name, n = excluded.n RETURNING "
                  "id, name, at";
  }

  /// Every third name, fourth payload, fifth time, seventh number is NULL.
  outcome fill(connection& c, std::size_t count) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < count; ++i)
      names.push_back(i % 2 == 0 ? "" : "name \xC3\xA9 " + std::to_string(i));
    const std::string payload("\0\x01\xFF", 3);
    std::vector<std::vector<parameter>> columns(5);
    for (std::size_t i = 0; i < count; ++i) {
      columns[0].emplace_back(static_cast<std::int64_t>(i));
      columns[1].push_back(i % 3 == 0 ? parameter{} : parameter{std::string_view(names[i])});
      columns[2].push_back(i % 4 == 0 ? parameter{} : parameter{bytes_of(payload)});
      columns[3].push_back(i % 5 == 0 ? parameter{} : parameter{utc(2026, 1, 1, microseconds(i))});
      columns[4].push_back(i % 7 == 0 ? parameter{} : parameter{-static_cast<std::int64_t>(i)});
    }
    const std::vector<parameter> common{std::string_view("same")};
    return c.batch(insert, columns, common);
  }

  std::string table;
  batch_statement insert{
      .text = {},
      .columns = {type::integer, type::text, type::bytes, type::time, type::integer},
      .common = {type::text},
      .results = {type::integer, type::text, type::time}};
};

TEST(PostgresBatch, RowsOfEveryTypeWithNullsAreOneStatement) {
  const auto c = connect();
  batch_table t(*c, "batch_rows");
  for (const std::size_t count : {std::size_t{1}, std::size_t{100}, std::size_t{10'000}}) {
    c->run("TRUNCATE batch_rows");
    const auto result = t.fill(*c, count);
    ASSERT_EQ(result.rows.size(), count);
    EXPECT_EQ(result.affected, count);
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(result.rows.at(i, 0), value{static_cast<std::int64_t>(i)});
      const auto name = i % 2 == 0 ? std::string() : "name \xC3\xA9 " + std::to_string(i);
      ASSERT_EQ(result.rows.at(i, 1), i % 3 == 0 ? value{} : value{name});
      ASSERT_EQ(result.rows.at(i, 2),
                i % 5 == 0 ? value{} : value{utc(2026, 1, 1, microseconds(i))});
    }
    const auto expected = static_cast<std::int64_t>(count);
    EXPECT_EQ(number(*c, "SELECT count(*) FROM batch_rows WHERE common = 'same'"), expected);
    EXPECT_EQ(number(*c,
                     "SELECT count(*) FROM batch_rows WHERE (payload IS NULL) = (id % 4 = 0) AND "
                     "(n IS NULL) = (id % 7 = 0)"),
              expected);
    EXPECT_EQ(number(*c,
                     "SELECT count(*) FROM batch_rows WHERE coalesce(payload = '\\x0001ff', true) "
                     "AND coalesce(n = -id, true)"),
              expected);
    EXPECT_EQ(t.fill(*c, count).affected, count) << "the same keys again: updated";
  }
}

TEST(PostgresBatch, WithoutRowsNothingIsSent) {
  const auto c = connect();
  const batch_statement invalid{
      .text = "no statement at all", .columns = {type::integer}, .results = {type::integer}};
  const auto result = c->batch(invalid, std::vector<std::vector<parameter>>(1), {});
  EXPECT_EQ(result.affected, 0U);
  EXPECT_TRUE(result.rows.empty());
}

TEST(PostgresBatch, IsAtomicAndChecked) {
  const auto c = connect();
  c->run("CREATE TABLE batch_atomic (id BIGINT PRIMARY KEY)");
  const batch_statement s{.text = "INSERT INTO batch_atomic SELECT * FROM unnest($1)",
                          .columns = {type::integer}};
  const auto insert = [&](std::vector<parameter> ids) {
    const std::vector<std::vector<parameter>> columns{std::move(ids)};
    return c->batch(s, columns, {});
  };
  EXPECT_EQ(insert({std::int64_t{1}, std::int64_t{2}}).affected, 2U);
  expect_kind(failure_of([&] { insert({std::int64_t{3}, std::int64_t{1}}); }), errc::duplicate,
              false, false);
  EXPECT_EQ(number(*c, "SELECT count(*) FROM batch_atomic"), 2);
  const std::vector<std::vector<parameter>> uneven{{std::int64_t{1}}, {}};
  expect_kind(failure_of([&] {
                c->batch({.text = "x", .columns = {type::integer, type::integer}}, uneven, {});
              }),
              errc::invalid_argument, false, false);
  expect_kind(failure_of([&] { insert({std::string_view("text")}); }), errc::invalid_argument,
              false, false);
  // Two rows with one key in one upsert.
  const batch_statement upsert{.text =
                                   "INSERT INTO batch_atomic SELECT * FROM unnest($1) ON CONFLICT "
                                   "(id) DO UPDATE SET id = excluded.id",
                               .columns = {type::integer}};
  const std::vector<std::vector<parameter>> twice{{std::int64_t{7}, std::int64_t{7}}};
  expect_kind(failure_of([&] { c->batch(upsert, twice, {}); }), errc::duplicate, false, false);
}

// ---- prepared statements

TEST(PostgresStatements, ArePreparedOnceAndTheOldestIsClosed) {
  const auto c = connect();
  const std::string count = "SELECT count(*) FROM pg_prepared_statements";
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(number(*c, "SELECT " + std::to_string(i)), i);
    EXPECT_LE(number(*c, count), 256);
  }
  EXPECT_EQ(number(*c, count), 256);
  EXPECT_EQ(number(*c, "SELECT 0"), 0) << "was closed and is prepared again";
  EXPECT_EQ(
      number(*c, "SELECT count(*) FROM pg_prepared_statements WHERE statement = 'SELECT 299'"), 1);
}

TEST(PostgresStatements, TheSameTextMayHaveOtherTypes) {
  const auto c = connect();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(
        execute(*c,
                {.text = "SELECT $1", .parameters = {type::integer}, .results = {type::integer}},
                {std::int64_t{5}})
            .rows.at(0, 0),
        value{std::int64_t{5}});
    EXPECT_EQ(
        execute(*c, {.text = "SELECT $1", .parameters = {type::text}, .results = {type::text}},
                {std::string_view("x")})
            .rows.at(0, 0),
        value{std::string("x")});
  }
}

TEST(PostgresStatements, ArePreparedAgainAfterAChangeOfTheTableOrALostSession) {
  const auto c = connect();
  const auto other = connect();
  c->run("CREATE TABLE changing (a BIGINT); INSERT INTO changing VALUES (1)");
  const statement one_column{.text = "SELECT * FROM changing", .results = {type::integer}};
  const statement two_columns{.text = "SELECT * FROM changing",
                              .results = {type::integer, type::text}};
  execute(*c, one_column);
  other->run("ALTER TABLE changing ADD b TEXT DEFAULT 'new'");
  EXPECT_EQ(execute(*c, two_columns).rows.at(0, 1), value{std::string("new")});
  c->run("DEALLOCATE ALL");
  EXPECT_EQ(execute(*c, two_columns).rows.at(0, 1), value{std::string("new")});

  // Inside a transaction the statement has failed; the caller has to try again.
  other->run("ALTER TABLE changing DROP b");
  c->begin();
  expect_kind(failure_of([&] { execute(*c, one_column); }), errc::unavailable, true, false);
  c->rollback();
  c->begin();
  EXPECT_EQ(execute(*c, one_column).rows.size(), 1U);
  c->run("DEALLOCATE ALL");
  expect_kind(failure_of([&] { execute(*c, one_column); }), errc::unavailable, true, false);
  c->rollback();
  c->begin();
  EXPECT_EQ(execute(*c, one_column).rows.size(), 1U);
  c->commit();

  // The list is full, and the oldest statement is unknown to the server. Outside a transaction the
  // caller does not notice.
  for (int i = 0; i < 256; ++i) number(*c, "SELECT " + std::to_string(i));
  c->run("DEALLOCATE ALL");
  EXPECT_EQ(number(*c, "SELECT 1000"), 1000);
  c->begin();
  expect_kind(failure_of([&] { number(*c, "SELECT 1001"); }), errc::unavailable, true, false);
  c->rollback();
  c->begin();
  EXPECT_EQ(number(*c, "SELECT 1001"), 1001);
  c->commit();
}

TEST(PostgresStatements, ANameThatIsTakenMeansTheSameStatement) {
  const auto c = connect();
  const auto other = connect();
  EXPECT_EQ(number(*c, "SELECT 4711"), 4711);
  const auto name = std::get<std::string>(
      execute(*c,
              {.text = "SELECT name FROM pg_prepared_statements WHERE statement = 'SELECT 4711'",
               .results = {type::text}})
          .rows.at(0, 0));
  other->run("PREPARE " + name +
             " AS SELECT 4711");  // as a client of the same pooler may have done
  EXPECT_EQ(number(*other, "SELECT 4711"), 4711);
}

// ---- transactions

TEST(PostgresTransactions, CommitKeepsAndRollbackDiscards) {
  const auto c = connect();
  const auto other = connect();
  c->run("CREATE TABLE ledger (id BIGINT PRIMARY KEY)");
  const statement insert{.text = "INSERT INTO ledger VALUES ($1)", .parameters = {type::integer}};
  const std::string count = "SELECT count(*) FROM ledger";
  c->begin();
  EXPECT_EQ(execute(*c, insert, {std::int64_t{1}}).affected, 1U);
  EXPECT_EQ(number(*other, count), 0);
  c->commit();
  EXPECT_EQ(number(*other, count), 1);
  c->begin();
  execute(*c, insert, {std::int64_t{2}});
  c->rollback();
  c->rollback();  // nothing to do
  EXPECT_EQ(number(*other, count), 1);
  expect_kind(failure_of([&] { c->commit(); }), errc::invalid_argument, false, false);
  c->begin();
  expect_kind(failure_of([&] { c->begin(); }), errc::invalid_argument, false, false);
  c->rollback();
}

TEST(PostgresTransactions, AFailedOneIsNotCommittedAndTheConnectionStaysUsable) {
  const auto c = connect();
  c->run("CREATE TABLE failing (id BIGINT PRIMARY KEY)");
  const statement insert{.text = "INSERT INTO failing VALUES ($1)", .parameters = {type::integer}};
  c->begin();
  execute(*c, insert, {std::int64_t{1}});
  expect_kind(failure_of([&] { execute(*c, insert, {std::int64_t{1}}); }), errc::duplicate, false,
              false);
  const auto after = failure_of([&] { execute(*c, insert, {std::int64_t{2}}); });
  EXPECT_EQ(after.backend_code(), "25P02");
  expect_kind(failure_of([&] { c->commit(); }), errc::invalid_argument, false, false);
  EXPECT_FALSE(c->broken());
  EXPECT_EQ(number(*c, "SELECT count(*) FROM failing"), 0);
}

TEST(PostgresTransactions, ACommitThatTheServerRefusesIsNotInDoubt) {
  const auto c = connect();
  c->run("CREATE TABLE deferred (id BIGINT UNIQUE DEFERRABLE INITIALLY DEFERRED)");
  const statement insert{.text = "INSERT INTO deferred VALUES (1)"};
  execute(*c, insert);
  // The error comes after the result, from the commit.
  expect_kind(failure_of([&] { execute(*c, insert); }), errc::duplicate, false, false);
  c->begin();
  execute(*c, insert);
  expect_kind(failure_of([&] { c->commit(); }), errc::duplicate, false, false);
  EXPECT_EQ(number(*c, "SELECT count(*) FROM deferred"), 1);
}

// ---- errors

TEST(PostgresErrors, EveryClassIsDistinguished) {
  struct expected {
    std::string state;
    errc code;
    bool transient;
    bool in_doubt = false;
  };
  const std::vector<expected> cases{
      {"40001", errc::unavailable, true},       {"40P01", errc::unavailable, true},
      {"55P03", errc::unavailable, true},       {"57014", errc::timeout, true},
      {"57P01", errc::unavailable, true},       {"57P02", errc::unavailable, true},
      {"57P03", errc::unavailable, true},       {"53000", errc::unavailable, true},
      {"53100", errc::unavailable, true},       {"53200", errc::unavailable, true},
      {"53300", errc::unavailable, true},       {"08000", errc::unavailable, true},
      {"08006", errc::unavailable, true},       {"25006", errc::unavailable, true},
      {"23505", errc::duplicate, false},        {"23502", errc::missing_object, false},
      {"22001", errc::too_large, false},        {"54000", errc::too_large, false},
      {"42601", errc::grammar, false},          {"42883", errc::grammar, false},
      {"42704", errc::grammar, false},          {"0A000", errc::grammar, false},
      {"42P01", errc::missing_object, false},   {"42703", errc::missing_object, false},
      {"3F000", errc::missing_object, false},   {"3D000", errc::missing_object, false},
      {"42501", errc::permission, false},       {"28P01", errc::permission, false},
      {"28000", errc::permission, false},       {"22021", errc::invalid_argument, false},
      {"22P02", errc::invalid_argument, false}, {"22003", errc::out_of_range, false},
      {"XX000", errc::unavailable, false},      {"08007", errc::unavailable, true, true},
      {"40003", errc::unavailable, true, true},
  };
  const auto c = connect();
  for (const auto& test : cases) {
    SCOPED_TRACE(test.state);
    const auto failure = failure_of([&] {
      c->run("DO $$ BEGIN RAISE EXCEPTION 'words' USING ERRCODE = '" + test.state +
             "', DETAIL = 'secret value'; END $$");
    });
    expect_kind(failure, test.code, test.transient, test.in_doubt);
    EXPECT_EQ(failure.backend_code(), test.state);
    EXPECT_FALSE(c->broken());
  }
}

TEST(PostgresErrors, OfTheServerAreClassified) {
  const auto c = connect();
  c->run("CREATE TABLE strict (id BIGINT PRIMARY KEY, short VARCHAR(5), small INTEGER)");
  const auto failure_with = [&](const std::string& text) {
    return failure_of([&] { execute(*c, {.text = text}); });
  };
  execute(*c, {.text = "INSERT INTO strict VALUES (1)"});
  expect_kind(failure_with("INSERT INTO strict VALUES (1)"), errc::duplicate, false, false);
  expect_kind(failure_with("INSERT INTO strict VALUES (2, 'too long')"), errc::too_large, false,
              false);
  expect_kind(failure_with("INSERT INTO strict VALUES (2, '', 3000000000)"), errc::out_of_range,
              false, false);
  expect_kind(failure_with("SELEC 1"), errc::grammar, false, false);
  expect_kind(failure_with("SELECT no_such_function()"), errc::grammar, false, false);
  expect_kind(failure_with("SELECT wrong FROM strict"), errc::missing_object, false, false);
  expect_kind(failure_with("SELECT * FROM no_such_schema.t"), errc::missing_object, false, false);
  expect_kind(failure_with("SELECT * FROM pg_authid"), errc::permission, false, false);
  const auto missing = failure_with("SELECT * FROM failover_store");
  expect_kind(missing, errc::missing_object, false, false);
  EXPECT_EQ(missing.backend_code(), "42P01");
  EXPECT_NE(missing.message().find("the table is missing; create it with --create-schema"),
            std::string::npos);
  expect_kind(failure_of([&] {
                execute(*c,
                        {.text = "SELECT $1", .parameters = {type::text}, .results = {type::text}},
                        {std::string_view("\xFF\xFE")});
              }),
              errc::invalid_argument, false, false);
  expect_kind(failure_of([&] { c->run("COPY strict FROM STDIN"); }), errc::grammar, false, false);
  EXPECT_TRUE(c->broken());
}

TEST(PostgresErrors, NoMessageRepeatsAValue) {
  const auto c = connect();
  c->run("CREATE TABLE quiet (id TEXT PRIMARY KEY)");
  const auto failure_with = [&](const std::string& text) {
    return failure_of([&] {
      execute(*c, {.text = text, .parameters = {type::text}}, {std::string_view("secret")});
    });
  };
  execute(*c, {.text = "INSERT INTO quiet VALUES ($1)", .parameters = {type::text}},
          {std::string_view("secret")});
  expect_kind(failure_with("INSERT INTO quiet VALUES ($1)"), errc::duplicate, false, false);
  expect_kind(failure_with("SELECT $1::bigint"), errc::invalid_argument, false, false);
  expect_kind(failure_with("SELECT $1::timestamptz"), errc::invalid_argument, false, false);
}

TEST(PostgresErrors, AReadOnlyServerIsUnavailable) {
  const auto c = connect();
  c->run("SET default_transaction_read_only = on");
  expect_kind(failure_of([&] { c->run("CREATE TABLE never (id BIGINT)"); }), errc::unavailable,
              true, false);
}

TEST(PostgresErrors, DeadlocksAndLockTimeoutsAreTransient) {
  const auto a = connect();
  const auto b = connect();
  a->run("CREATE TABLE locks (id BIGINT PRIMARY KEY); INSERT INTO locks VALUES (1), (2)");
  const auto lock = [](connection& c, int id) {
    execute(c, {.text = "SELECT FROM locks WHERE id = " + std::to_string(id) + " FOR UPDATE"});
  };
  a->begin();
  b->begin();
  lock(*a, 1);
  lock(*b, 2);
  std::atomic<int> failures = 0;
  const auto cross = [&](connection& c, int id) {
    try {
      lock(c, id);
    } catch (const error& failure) {
      expect_kind(failure, errc::unavailable, true, false);
      EXPECT_EQ(failure.backend_code(), "40P01");
      ++failures;
    }
    c.rollback();
  };
  std::jthread other([&] { cross(*b, 1); });
  cross(*a, 2);
  other.join();
  EXPECT_EQ(failures, 1);

  a->begin();
  lock(*a, 1);
  b->run("SET lock_timeout = 50");
  expect_kind(failure_of([&] { lock(*b, 1); }), errc::unavailable, true, false);
  a->rollback();
}

// ---- connecting

error connect_failure(const std::string& text) {
  const auto failure = failure_of([&] { return connect_postgres({.connection_string = text}); });
  EXPECT_EQ(std::string(failure.what()).find("postgresql://u:"), std::string::npos)
      << failure.what();
  return failure;
}

TEST(PostgresConnecting, ExplainsFailuresWithoutThePassword) {
  const auto& server = shared_server<postgres_server>();
  const auto port = std::to_string(server.port());
  const auto address = "@127.0.0.1:" + port + "/holdfast";
  const auto wrong = connect_failure("postgresql://holdfast:secretive" + address);
  expect_kind(wrong, errc::permission, false, false);
  EXPECT_EQ(wrong.backend_code(), "28P01");
  EXPECT_NE(wrong.message().find("127.0.0.1:" + port), std::string::npos) << wrong.what();
  expect_kind(connect_failure("postgresql://holdfast" + address), errc::permission, false, false);
  expect_kind(connect_failure("postgresql://secret:secret" + address), errc::permission, false,
              false);
  const auto missing = connect_failure("postgresql://holdfast:secret@127.0.0.1:" + port + "/none");
  expect_kind(missing, errc::missing_object, false, false);
  EXPECT_EQ(missing.backend_code(), "3D000");
  expect_kind(connect_failure("postgresql://holdfast:secret@127.0.0.1:1/holdfast"),
              errc::unavailable, true, false);
  // A password that is not percent-encoded must not appear as a host, a port or a parameter.
  for (const std::string text :
       {"postgresql://u:a@secret@127.0.0.1/db", "postgresql://u:secret/b@127.0.0.1/db",
        "postgresql://u:12/secret@127.0.0.1/db", "postgresql://u:secret%zz@127.0.0.1/db",
        "host=127.0.0.1 password=a secret", "secret", "host=127.0.0.1 port=secret",
        "host=127.0.0.1 secret=1"}) {
    SCOPED_TRACE(text);
    expect_kind(connect_failure(text), errc::invalid_argument, false, false);
  }
}

TEST(PostgresConnecting, TheSettingsOfTheSessionAreInTheStartupPacket) {
  const auto c = connect();
  EXPECT_EQ(c->dialect(), dialect_id::postgresql);
  const auto setting = [](connection& session, const std::string& name) {
    return std::get<std::string>(execute(session, {.text = "SELECT current_setting('" + name + "')",
                                                   .results = {type::text}})
                                     .rows.at(0, 0));
  };
  EXPECT_EQ(setting(*c, "client_encoding"), "UTF8");
  EXPECT_EQ(setting(*c, "TimeZone"), "UTC");
  EXPECT_EQ(setting(*c, "application_name"), "holdfast");
  EXPECT_EQ(setting(*c, "statement_timeout"), "21s");
  const auto configured = connect_postgres(
      {.connection_string =
           shared_server<postgres_server>().url(database()) +
           "?application_name=mine&options=-c%20work_mem%3D1234kB%20-c%20TimeZone%3DAsia/Tokyo"});
  EXPECT_EQ(setting(*configured, "application_name"), "mine");
  EXPECT_EQ(setting(*configured, "work_mem"), "1234kB");
  EXPECT_EQ(setting(*configured, "TimeZone"), "UTC");
}

TEST(PostgresConnecting, TheLimitOfTheServerFollowsOurs) {
  const auto c = connect(1s);
  c->limit(10s);
  EXPECT_EQ(number(*c, "SELECT 1 FROM pg_sleep(2.2)"), 1);
  c->begin();
  c->limit(12s);
  execute(*c, {.text = "SELECT 1"});
  c->rollback();  // also rolls back the SET of the server's limit
  EXPECT_EQ(number(*c, "SELECT setting::bigint FROM pg_settings WHERE name = 'statement_timeout'"),
            13000);
  expect_kind(failure_of([&] { c->limit(0ms); }), errc::invalid_argument, false, false);
}

}  // namespace
