// Whose fault is it: of one entry, or of the table and the configuration? Write-behind drops the first and waits until the others are mended.

#include "sql/h2_errors.hpp"
#include "sql/mysql_errors.hpp"
#include "sql/odbc_errors.hpp"
#include "sql/postgres_errors.hpp"
#include "sql/sqlite_errors.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <system_error>

namespace holdfast::test {
namespace {

TEST(SqlErrors, AColumnThatNobodyFillsIsTheTablesFault) {
  const error said[]{
      sql::postgres::from_server({.sqlstate = "23502", .text = R"(null value in column "extra" violates not-null constraint)"}),
      sql::h2::from_server({.sqlstate = "23502", .text = "NULL not allowed for column"}),
      sql::mysql::from_server({.number = 1048, .sqlstate = "23000", .text = "Column 'EXTRA' cannot be null"}, true, ""),
      sql::mysql::from_server({.number = 1364, .sqlstate = "HY000", .text = "Field 'EXTRA' doesn't have a default value"}, true, ""),
      sql::sqlite_error(1299, "NOT NULL constraint failed: FAILOVER_STORE.EXTRA"),
      sql::odbc::to_error({{.state = "23000", .native = 1048}}, {.dialect = sql::dialect_id::mariadb}),
      sql::odbc::to_error({{.state = "HY000", .native = 1364}}, {.dialect = sql::dialect_id::mysql}),
      sql::odbc::to_error({{.state = "23000", .native = 515}}, {.dialect = sql::dialect_id::sqlserver}),
      sql::odbc::to_error({{.state = "HY000", .native = 1400}}, {.dialect = sql::dialect_id::oracle}),
      sql::odbc::to_error({{.state = "23000", .native = 1407}}, {.dialect = sql::dialect_id::oracle}),
      sql::odbc::to_error({{.state = "23502"}}, {.dialect = sql::dialect_id::postgresql}),
      sql::odbc::to_error({{.state = "HY000", .native = 19, .text = "NOT NULL constraint failed: T.EXTRA (19)"}},
                          {.dialect = sql::dialect_id::sqlite}),
  };
  for (const error& each : said) {
    EXPECT_EQ(each.code(), errc::missing_object) << each.what();
    EXPECT_FALSE(each.transient()) << each.what();
    EXPECT_NE(each.message().find("give the column a default"), std::string::npos) << each.what();
  }
}

TEST(SqlErrors, ARuleThatOneEntryBreaksIsItsOwnFault) {
  const error said[]{
      sql::postgres::from_server({.sqlstate = "23514", .text = "violates check constraint"}),
      sql::h2::from_server({.sqlstate = "23513", .text = "Check constraint violation"}),
      sql::mysql::from_server({.number = 4025, .sqlstate = "23000", .text = "CONSTRAINT `c` failed"}, true, ""),
      sql::sqlite_error(275, "CHECK constraint failed: c"),
      sql::odbc::to_error({{.state = "23514"}}, {.dialect = sql::dialect_id::postgresql}),
      sql::odbc::to_error({{.state = "HY000", .native = 19, .text = "CHECK constraint failed: c (19)"}},
                          {.dialect = sql::dialect_id::sqlite}),
  };
  for (const error& each : said) EXPECT_EQ(each.code(), errc::invalid_argument) << each.what();
}

TEST(SqlErrors, WhatStandsBeforeTheServerIsAtFaultWhenItTakesNobodyIn) {
  const auto pooler = sql::postgres::could_not_connect(
      "host:6432", "connection to server failed: FATAL:  08P01: unsupported startup parameter: options\n", "secret", "PostgreSQL");
  EXPECT_EQ(pooler.code(), errc::permission) << pooler.what();
  EXPECT_FALSE(pooler.transient());
  EXPECT_NE(pooler.message().find("ignore_startup_parameters"), std::string::npos) << pooler.what();
  EXPECT_EQ(sql::odbc::could_not_connect({{.state = "01000", .text = "Can't open lib 'x.so' : file not found"}}, "").code(),
            errc::missing_object);
}

TEST(SqlErrors, OfSeveralAddressesTheOneThatAnsweredIsTold) {
  const std::string nobody = std::system_category().message(ECONNREFUSED);
  const std::string on_v6 = R"(connection to server at "localhost" (::1), port 5432 failed: )" + nobody + "\n\tIs the server running?\n";
  const std::string on_v4 =
      "connection to server at \"localhost\" (127.0.0.1), port 5432 failed: server certificate does not match host name\n";
  for (const auto& account : {on_v6 + on_v4, on_v4 + on_v6}) {
    const std::string said = sql::postgres::could_not_connect("localhost:5432", account, "", "PostgreSQL").what();
    EXPECT_NE(said.find("certificate does not match"), std::string::npos) << said;
  }
  const std::string said = sql::postgres::could_not_connect("localhost:5432", on_v6 + on_v6, "", "PostgreSQL").what();
  EXPECT_TRUE(said.ends_with(nobody)) << said;
}

}  // namespace
}  // namespace holdfast::test
