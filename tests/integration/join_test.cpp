// The adaptors that run our statements in somebody else's transaction, on real servers.

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

/// A new database for each.
struct on_sqlite : temporary_directory, sqlite_handle {
  on_sqlite() : sqlite_handle("sqlite://" + (path() / "join.db").string()) {}
};
struct on_postgres : postgres_handle {
  on_postgres() : postgres_handle(shared_server<postgres_server>().url(shared_server<postgres_server>().create_database("join"))) {}
};
struct on_mariadb : mariadb_handle {
  on_mariadb() : mariadb_handle(shared_server<mariadb_server>().url(shared_server<mariadb_server>().create_database("join"))) {}
};

template <class Place>
class Join : public testing::Test {
 protected:
  Join() { place.run("CREATE TABLE things (" + Place::columns() + ")"); }

  sql::outcome insert(join::transaction& in, std::int64_t id, std::string_view words = "words") {
    const std::array<sql::parameter, 5> row{id, words, std::as_bytes(std::span(raw)), moment, sql::parameter()};
    return in.execute({.text = Place::with("INSERT INTO things VALUES (?, ?, ?, ?, ?)"),
                       .parameters = {type::integer, type::text, type::bytes, type::time, type::text}},
                      row);
  }
  sql::outcome all(join::transaction& in) {
    return in.execute({.text = "SELECT id, words, raw, moment, bare FROM things ORDER BY id",
                       .results = {type::integer, type::text, type::bytes, type::time, type::text}},
                      {});
  }
  std::size_t count() {
    place.run(Place::begin);
    auto joined = place.joined();
    const auto found = all(joined).rows.size();
    place.run("COMMIT");
    return found;
  }

  Place place{};
  const std::string raw{"\0\xff'\"\\", 5};
  const timestamp moment = timestamp(std::chrono::sys_days(std::chrono::year(1969) / 12 / 31)) + 23h + 59min + 59s + 999'999us;
};

using places = testing::Types<on_sqlite, on_postgres, on_mariadb>;
TYPED_TEST_SUITE(Join, places);

TYPED_TEST(Join, RollbackLeavesNothingAndCommitLeavesAll) {
  auto joined = this->place.joined();
  EXPECT_EQ(joined.dialect(), TypeParam::dialect);
  this->place.run(TypeParam::begin);
  EXPECT_EQ(this->insert(joined, 1).affected, 1U);
  this->place.run("ROLLBACK");
  EXPECT_EQ(this->count(), 0U);
  this->place.run(TypeParam::begin);
  this->insert(joined, 2);
  this->place.run("INSERT INTO things VALUES (3, NULL, NULL, NULL, NULL)");  // the caller's own
  this->place.run("COMMIT");
  EXPECT_EQ(this->count(), 2U);
}

TYPED_TEST(Join, EveryTypeComesBackAsItWent) {
  auto joined = this->place.joined();
  const std::string words = "gr\xc3\xbc\xc3\x9f' \"dich\" \xf0\x9f\x90\x98 $1 ? %s";
  const std::string large(300'000, 'x');
  this->place.run(TypeParam::begin);
  this->insert(joined, std::numeric_limits<std::int64_t>::min(), words);
  this->insert(joined, -1, "");
  this->insert(joined, std::numeric_limits<std::int64_t>::max(), large);
  const auto found = this->all(joined).rows;
  this->place.run("COMMIT");
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found.at(0, 0), sql::value(std::numeric_limits<std::int64_t>::min()));
  EXPECT_EQ(found.at(1, 0), sql::value(std::int64_t{-1}));
  EXPECT_EQ(found.at(2, 0), sql::value(std::numeric_limits<std::int64_t>::max()));
  EXPECT_EQ(found.at(0, 1), sql::value(words));
  EXPECT_EQ(found.at(1, 1), sql::value(std::string()));
  EXPECT_EQ(found.at(2, 1), sql::value(large));
  EXPECT_EQ(found.at(0, 2), sql::value(this->raw));
  EXPECT_EQ(found.at(0, 3), sql::value(this->moment));
  EXPECT_EQ(found.at(0, 4), sql::value());
}

TYPED_TEST(Join, WithoutATransactionItIsRefused) {
  auto joined = this->place.joined();
  const auto refused = failure_of([&] { this->insert(joined, 1); });
  EXPECT_EQ(refused.code(), errc::invalid_argument);
  EXPECT_NE(refused.message().find("no transaction is open"), std::string::npos) << refused.what();
  EXPECT_EQ(this->count(), 0U);
}

TYPED_TEST(Join, FailuresAreOurs) {
  auto joined = this->place.joined();
  this->place.run(TypeParam::begin);
  this->insert(joined, 1);
  EXPECT_EQ(failure_of([&] { this->insert(joined, 1); }).code(), errc::duplicate);
  this->place.run("ROLLBACK");

  this->place.run(TypeParam::begin);
  EXPECT_EQ(failure_of([&] { joined.execute({.text = "SELECT 1 FROM no_such_table"}, {}); }).code(), errc::missing_object);
  this->place.run("ROLLBACK");

  this->place.run(TypeParam::begin);
  const auto bad = failure_of([&] { joined.execute({.text = "SELEC 1"}, {}); });
  EXPECT_EQ(bad.code(), errc::grammar);
  EXPECT_FALSE(bad.in_doubt());
  this->place.run("ROLLBACK");

  this->place.run(TypeParam::begin);
  const sql::parameter text[]{std::string_view("1")};
  const sql::statement number{.text = TypeParam::with("DELETE FROM things WHERE id = ?"), .parameters = {type::integer}};
  EXPECT_EQ(failure_of([&] { joined.execute(number, text); }).code(), errc::invalid_argument);
  EXPECT_EQ(failure_of([&] { joined.execute(number, {}); }).code(), errc::invalid_argument);
  this->place.run("ROLLBACK");
  EXPECT_EQ(this->count(), 0U);
}

template <class Place>
void expect_only_unicode() {
  Place place;
  auto joined = place.joined();
  place.speak(Place::wrong_encoding);
  place.run(Place::begin);
  const auto refused = failure_of([&] { joined.execute({.text = "SELECT 1"}, {}); });
  EXPECT_EQ(refused.code(), errc::invalid_argument);
  EXPECT_NE(refused.message().find(Place::wrong_encoding), std::string::npos) << refused.what();
  EXPECT_NE(refused.message().find(Place::right_encoding), std::string::npos) << refused.what();
  place.run("ROLLBACK");
  place.speak(Place::right_encoding);
  place.run(Place::begin);
  EXPECT_EQ(joined.execute({.text = "SELECT 'x'", .results = {type::text}}, {}).rows.at(0, 0), sql::value(std::string("x")));
  place.run("COMMIT");
}

TEST(JoinPostgres, AnotherEncodingIsRefused) { expect_only_unicode<on_postgres>(); }
TEST(JoinMariadb, AnotherEncodingIsRefused) { expect_only_unicode<on_mariadb>(); }

TEST(JoinMariadb, ATransactionWithoutAutocommitCounts) {
  on_mariadb place;
  place.run("CREATE TABLE things (" + on_mariadb::columns() + ")");
  place.run("SET autocommit = 0");
  auto joined = place.joined();
  joined.execute({.text = "INSERT INTO things (id) VALUES (1)"}, {});
  place.run("ROLLBACK");
  EXPECT_TRUE(joined.execute({.text = "SELECT id FROM things", .results = {type::integer}}, {}).rows.empty());
}

TEST(JoinPostgres, NothingPreparedStaysBehind) {
  on_postgres place;
  place.run("BEGIN");
  auto joined = place.joined();
  joined.execute({.text = "SELECT 1"}, {});
  const auto left = joined.execute({.text = "SELECT COUNT(*) FROM pg_prepared_statements", .results = {type::integer}}, {});
  EXPECT_EQ(left.rows.at(0, 0), sql::value(std::int64_t{0}));
  place.run("COMMIT");
}

}  // namespace
}  // namespace holdfast::test
