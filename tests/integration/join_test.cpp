// The adaptors that run Holdfast's statements in a transaction of the application, on real servers.

#include "support/failure_of.hpp"
#include "support/mariadb_server.hpp"
#include "support/own_handles.hpp"
#include "support/postgres_server.hpp"
#include "support/shared_server.hpp"
#include "support/temporary_directory.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using sql::type;

/// Handles of the application, each with a new database.
struct on_sqlite : temporary_directory, sqlite_handle {
  on_sqlite() : sqlite_handle("sqlite://" + (path() / "join.db").string()) {}
};
struct on_postgres : postgres_handle {
  on_postgres()
      : postgres_handle(shared_server<postgres_server>().url(
            shared_server<postgres_server>().create_database("join"))) {}
};
struct on_mariadb : mariadb_handle {
  on_mariadb()
      : mariadb_handle(shared_server<mariadb_server>().url(
            shared_server<mariadb_server>().create_database("join"))) {}
};

template <class Handle>
class Join : public testing::Test {
 protected:
  Join() { handle.run("CREATE TABLE things (" + Handle::columns() + ")"); }

  sql::outcome insert(join::transaction& transaction, std::int64_t id,
                      std::string_view label = "label") {
    const std::array<sql::parameter, 5> row{id, label, std::as_bytes(std::span(raw)), moment,
                                            sql::parameter()};
    return transaction.execute(
        {.text = Handle::with("INSERT INTO things VALUES (?, ?, ?, ?, ?)"),
         .parameters = {type::integer, type::text, type::bytes, type::time, type::text}},
        row);
  }
  sql::outcome all(join::transaction& transaction) {
    return transaction.execute(
        {.text = "SELECT id, words, raw, moment, bare FROM things ORDER BY id",
         .results = {type::integer, type::text, type::bytes, type::time, type::text}},
        {});
  }
  std::size_t count() {
    handle.run(Handle::begin);
    auto joined = handle.joined();
    const auto row_count = all(joined).rows.size();
    handle.run("COMMIT");
    return row_count;
  }

  Handle handle{};
  const std::string raw{"\0\xff'\"\\", 5};
  const timestamp moment = timestamp(std::chrono::sys_days(std::chrono::year(1969) / 12 / 31)) +
                           23h + 59min + 59s + 999'999us;
};

using handles = testing::Types<on_sqlite, on_postgres, on_mariadb>;
TYPED_TEST_SUITE(Join, handles);

TYPED_TEST(Join, StatementsFollowTheTransaction) {
  auto joined = this->handle.joined();
  EXPECT_EQ(joined.dialect(), TypeParam::dialect);
  this->handle.run(TypeParam::begin);
  EXPECT_EQ(this->insert(joined, 1).affected, 1U);
  this->handle.run("ROLLBACK");
  EXPECT_EQ(this->count(), 0U);
  this->handle.run(TypeParam::begin);
  this->insert(joined, 2);
  this->handle.run(
      "INSERT INTO things VALUES (3, NULL, NULL, NULL, NULL)");  // a statement of the application
  this->handle.run("COMMIT");
  EXPECT_EQ(this->count(), 2U);
}

TYPED_TEST(Join, EveryTypeIsStoredUnchanged) {
  auto joined = this->handle.joined();
  const std::string label = "gr\xc3\xbc\xc3\x9f' \"dich\" \xf0\x9f\x90\x98 $1 ? %s";
  const std::string large(300'000, 'x');
  this->handle.run(TypeParam::begin);
  this->insert(joined, std::numeric_limits<std::int64_t>::min(), label);
  this->insert(joined, -1, "");
  this->insert(joined, std::numeric_limits<std::int64_t>::max(), large);
  const auto rows = this->all(joined).rows;
  this->handle.run("COMMIT");
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows.at(0, 0), sql::value(std::numeric_limits<std::int64_t>::min()));
  EXPECT_EQ(rows.at(1, 0), sql::value(std::int64_t{-1}));
  EXPECT_EQ(rows.at(2, 0), sql::value(std::numeric_limits<std::int64_t>::max()));
  EXPECT_EQ(rows.at(0, 1), sql::value(label));
  EXPECT_EQ(rows.at(1, 1), sql::value(std::string()));
  EXPECT_EQ(rows.at(2, 1), sql::value(large));
  EXPECT_EQ(rows.at(0, 2), sql::value(this->raw));
  EXPECT_EQ(rows.at(0, 3), sql::value(this->moment));
  EXPECT_EQ(rows.at(0, 4), sql::value());
}

TYPED_TEST(Join, WithoutATransactionStatementsAreRefused) {
  auto joined = this->handle.joined();
  const auto refused = failure_of([&] { this->insert(joined, 1); });
  EXPECT_EQ(refused.code(), errc::invalid_argument);
  EXPECT_NE(refused.message().find("no transaction is open"), std::string::npos) << refused.what();
  EXPECT_EQ(this->count(), 0U);
}

TYPED_TEST(Join, FailuresAreConverted) {
  auto joined = this->handle.joined();
  this->handle.run(TypeParam::begin);
  this->insert(joined, 1);
  EXPECT_EQ(failure_of([&] { this->insert(joined, 1); }).code(), errc::duplicate);
  this->handle.run("ROLLBACK");

  this->handle.run(TypeParam::begin);
  EXPECT_EQ(failure_of([&] { joined.execute({.text = "SELECT 1 FROM no_such_table"}, {}); }).code(),
            errc::missing_object);
  this->handle.run("ROLLBACK");

  this->handle.run(TypeParam::begin);
  const auto bad = failure_of([&] { joined.execute({.text = "SELEC 1"}, {}); });
  EXPECT_EQ(bad.code(), errc::grammar);
  EXPECT_FALSE(bad.in_doubt());
  this->handle.run("ROLLBACK");

  this->handle.run(TypeParam::begin);
  const sql::parameter text[]{std::string_view("1")};
  const sql::statement number{.text = TypeParam::with("DELETE FROM things WHERE id = ?"),
                              .parameters = {type::integer}};
  EXPECT_EQ(failure_of([&] { joined.execute(number, text); }).code(), errc::invalid_argument);
  EXPECT_EQ(failure_of([&] { joined.execute(number, {}); }).code(), errc::invalid_argument);
  this->handle.run("ROLLBACK");
  EXPECT_EQ(this->count(), 0U);
}

template <class Handle>
void expect_only_utf8() {
  Handle handle;
  auto joined = handle.joined();
  handle.speak(Handle::wrong_encoding);
  handle.run(Handle::begin);
  const auto refused = failure_of([&] { joined.execute({.text = "SELECT 1"}, {}); });
  EXPECT_EQ(refused.code(), errc::invalid_argument);
  EXPECT_NE(refused.message().find(Handle::wrong_encoding), std::string::npos) << refused.what();
  EXPECT_NE(refused.message().find(Handle::right_encoding), std::string::npos) << refused.what();
  handle.run("ROLLBACK");
  handle.speak(Handle::right_encoding);
  handle.run(Handle::begin);
  EXPECT_EQ(joined.execute({.text = "SELECT 'x'", .results = {type::text}}, {}).rows.at(0, 0),
            sql::value(std::string("x")));
  handle.run("COMMIT");
}

TEST(JoinPostgres, AnotherEncodingIsRefused) { expect_only_utf8<on_postgres>(); }
TEST(JoinMariadb, AnotherEncodingIsRefused) { expect_only_utf8<on_mariadb>(); }

TEST(JoinMariadb, ATransactionWithoutAutocommitCounts) {
  on_mariadb handle;
  handle.run("CREATE TABLE things (" + on_mariadb::columns() + ")");
  handle.run("SET autocommit = 0");
  auto joined = handle.joined();
  joined.execute({.text = "INSERT INTO things (id) VALUES (1)"}, {});
  handle.run("ROLLBACK");
  EXPECT_TRUE(joined.execute({.text = "SELECT id FROM things", .results = {type::integer}}, {})
                  .rows.empty());
}

TEST(JoinPostgres, NoPreparedStatementRemains) {
  on_postgres handle;
  handle.run("BEGIN");
  auto joined = handle.joined();
  joined.execute({.text = "SELECT 1"}, {});
  const auto remaining = joined.execute(
      {.text = "SELECT COUNT(*) FROM pg_prepared_statements", .results = {type::integer}}, {});
  EXPECT_EQ(remaining.rows.at(0, 0), sql::value(std::int64_t{0}));
  handle.run("COMMIT");
}

}  // namespace
}  // namespace holdfast::test
