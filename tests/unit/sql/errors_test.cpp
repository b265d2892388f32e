// Who has to act on a failure: one entry is wrong, or the table and the configuration are. The
// write-behind queue drops an entry in the first case and retries in the second.

#include "sql/h2/errors.hpp"

#include "sql/error_class.hpp"
#include "sql/mysql/errors.hpp"
#include "sql/odbc/errors.hpp"
#include "sql/postgres/errors.hpp"
#include "sql/sqlite/errors.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

namespace holdfast::test {
namespace {

using namespace detail::sql;

TEST(SqlErrors, AColumnThatMustNotBeNullIsAFaultOfTheTable) {
  // The error and the column that it names. Drivers that hide the server's text name none.
  const std::pair<error, std::string> failures[]{
      {postgres::to_error({.sqlstate = "23502",
                           .text = R"(null value in column "extra" violates not-null constraint)",
                           .column = "extra"}),
       "extra"},
      {h2::to_error({.sqlstate = "23502", .text = "NULL not allowed for column"}), ""},
      {mysql::to_error(
           {.number = 1048, .sqlstate = "23000", .text = "Column 'EXTRA' cannot be null"},
           loss::in_doubt, ""),
       "EXTRA"},
      {mysql::to_error({.number = 1364,
                        .sqlstate = "HY000",
                        .text = "Field 'EXTRA' doesn't have a default value"},
                       loss::in_doubt, ""),
       "EXTRA"},
      {sqlite::to_error(1299, "NOT NULL constraint failed: FAILOVER_STORE.EXTRA"), "EXTRA"},
      {odbc::to_error({{.state = "23000", .native = 1048}}, {.dialect = dialect_id::mariadb}), ""},
      {odbc::to_error({{.state = "HY000", .native = 1364}}, {.dialect = dialect_id::mysql}), ""},
      {odbc::to_error({{.state = "23000", .native = 515}}, {.dialect = dialect_id::sqlserver}), ""},
      {odbc::to_error({{.state = "HY000", .native = 1400}}, {.dialect = dialect_id::oracle}), ""},
      {odbc::to_error({{.state = "23000", .native = 1407}}, {.dialect = dialect_id::oracle}), ""},
      {odbc::to_error({{.state = "23502"}}, {.dialect = dialect_id::postgresql}), ""},
      {odbc::to_error(
           {{.state = "HY000", .native = 19, .text = "NOT NULL constraint failed: T.EXTRA (19)"}},
           {.dialect = dialect_id::sqlite}),
       ""},
  };
  for (const auto& [failure, column] : failures) {
    EXPECT_EQ(failure.code(), errc::missing_object) << failure.what();
    EXPECT_FALSE(failure.transient()) << failure.what();
    EXPECT_EQ(failure.not_null_column(), column) << failure.what();
    EXPECT_NE(failure.message().find("give the column a default"), std::string::npos)
        << failure.what();
  }
}

TEST(SqlErrors, AConstraintThatOneEntryViolatesIsAFaultOfTheEntry) {
  const error failures[]{
      postgres::to_error({.sqlstate = "23514", .text = "violates check constraint"}),
      h2::to_error({.sqlstate = "23513", .text = "Check constraint violation"}),
      mysql::to_error({.number = 4025, .sqlstate = "23000", .text = "CONSTRAINT `c` failed"},
                      loss::in_doubt, ""),
      sqlite::to_error(275, "CHECK constraint failed: c"),
      odbc::to_error({{.state = "23514"}}, {.dialect = dialect_id::postgresql}),
      odbc::to_error({{.state = "HY000", .native = 19, .text = "CHECK constraint failed: c (19)"}},
                     {.dialect = dialect_id::sqlite}),
  };
  for (const error& failure : failures) {
    EXPECT_EQ(failure.code(), errc::invalid_argument) << failure.what();
    EXPECT_FALSE(failure.not_null_column()) << failure.what();
  }
}

TEST(SqlErrors, APoolerOrDriverThatIsSetUpWronglyIsNotTransient) {
  const auto pooler = postgres::could_not_connect(
      "host:6432",
      "connection to server failed: FATAL:  08P01: unsupported startup parameter: options\n",
      "secret", "PostgreSQL");
  EXPECT_EQ(pooler.code(), errc::permission) << pooler.what();
  EXPECT_FALSE(pooler.transient());
  EXPECT_NE(pooler.message().find("ignore_startup_parameters"), std::string::npos) << pooler.what();
  EXPECT_EQ(odbc::could_not_connect(
                {{.state = "01000", .text = "Can't open lib 'x.so' : file not found"}}, "")
                .code(),
            errc::missing_object);
}

TEST(SqlErrors, OfSeveralAddressesTheOneWithAReasonIsReported) {
  const std::string refused = std::system_category().message(ECONNREFUSED);
  const std::string v6_line = R"(connection to server at "localhost" (::1), port 5432 failed: )" +
                              refused + "\n\tIs the server running?\n";
  const std::string v4_line =
      "connection to server at \"localhost\" (127.0.0.1), port 5432 failed: server certificate "
      "does not match host name\n";
  const auto message_of = [](const std::string& report) {
    return std::string(
        postgres::could_not_connect("localhost:5432", report, "", "PostgreSQL").what());
  };
  for (const auto& report : {v6_line + v4_line, v4_line + v6_line}) {
    EXPECT_NE(message_of(report).find("certificate does not match"), std::string::npos)
        << message_of(report);
  }
  EXPECT_TRUE(message_of(v6_line + v6_line).ends_with(refused)) << message_of(v6_line + v6_line);
}

TEST(SqlErrors, AnExcerptIsNotLongerThanItsLimitAndCutsNoCharacter) {
  EXPECT_EQ(one_line_excerpt("12345678", 8), "12345678");
  EXPECT_EQ(one_line_excerpt("123456789", 8), "12345...");
  EXPECT_EQ(one_line_excerpt("a\nb\x7f", 8), "a b ");
  // Two, three and four bytes, and each of their bytes at the limit.
  for (const std::string character : {"\u00e4", "\u20ac", "\U0001F600"}) {
    for (std::size_t limit = 3; limit < 20; ++limit) {
      std::string text;
      while (text.size() <= limit) text += character;
      const auto excerpt = one_line_excerpt(text, limit);
      EXPECT_LE(excerpt.size(), limit);
      ASSERT_TRUE(excerpt.ends_with("..."));
      EXPECT_EQ(excerpt.size() - 3, (limit - 3) / character.size() * character.size())
          << "a complete character was dropped, or one was cut: " << excerpt;
    }
  }
}

}  // namespace
}  // namespace holdfast::test
