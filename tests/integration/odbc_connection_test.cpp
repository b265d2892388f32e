// The ODBC driver with the ODBC drivers of PostgreSQL, MariaDB and SQLite on real databases, and
// with FreeTDS on a server of the tests.

#include <holdfast/database.hpp>

#include "sql/odbc/connection.hpp"
#include "support/failure_of.hpp"
#include "support/mariadb_server.hpp"
#include "support/odbc_drivers.hpp"
#include "support/postgres_server.hpp"
#include "support/shared_server.hpp"
#include "support/tds_server.hpp"
#include "support/temporary_directory.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using sql::type;

struct psqlodbc {
  static constexpr auto dialect = sql::dialect_id::postgresql;
  static constexpr auto bytes = "BYTEA";
  static constexpr auto text = "TEXT";
  const postgres_endpoint& server = shared_server<postgres_server>();
  std::string url = odbc_postgres(server.port(), server.create_database("odbc"));
};
struct maodbc {
  static constexpr auto dialect = sql::dialect_id::mariadb;
  static constexpr auto bytes = "LONGBLOB";
  static constexpr auto text = "LONGTEXT";
  const mariadb_endpoint& server = shared_server<mariadb_server>();
  std::string url = odbc_mariadb(server.port(), server.create_database("odbc"));
};
struct sqliteodbc {
  static constexpr auto dialect = sql::dialect_id::sqlite;
  static constexpr auto bytes = "BLOB";
  static constexpr auto text = "TEXT";
  temporary_directory directory{};
  std::string url = odbc_sqlite((directory.path() / "test.db").string());
};
struct tdsodbc {
  static constexpr auto dialect = sql::dialect_id::sqlserver;
  static constexpr auto bytes = "VARBINARY(MAX)";
  static constexpr auto text = "NVARCHAR(MAX)";
  const tds_endpoint& server = shared_server<tds_server>();
  std::string url = odbc_tds(server.port(), server.create_database("odbc"));
};

template <class Driver>
class OdbcConnection : public ::testing::Test {
 protected:
  void SetUp() override {
    connection_ = detail::sql::connect_odbc({.connection_string = driver_.url.substr(5)});
    connection_->run(std::string("CREATE TABLE T (N BIGINT NOT NULL PRIMARY KEY, V ") +
                     Driver::text + ", B " + Driver::bytes + ", S VARCHAR(10))");
  }
  void insert(std::int64_t number, sql::parameter text = {}, sql::parameter bytes = {}) {
    const sql::parameter values[]{number, text, bytes};
    connection_->execute({.text = "INSERT INTO T (N, V, B) VALUES (?, ?, ?)",
                          .parameters = {type::integer, type::text, type::bytes}},
                         values);
  }
  [[nodiscard]] std::int64_t count() {
    return std::get<std::int64_t>(
        connection_->execute({.text = "SELECT COUNT(*) FROM T", .results = {type::integer}}, {})
            .rows.at(0, 0));
  }

  Driver driver_{};
  std::unique_ptr<sql::connection> connection_{};
};
using drivers = ::testing::Types<psqlodbc, maodbc, sqliteodbc, tdsodbc>;
TYPED_TEST_SUITE(OdbcConnection, drivers);

TYPED_TEST(OdbcConnection, KnowsTheDialect) {
  EXPECT_EQ(this->connection_->dialect(), TypeParam::dialect);
  EXPECT_EQ(open(this->driver_.url).dialect(), TypeParam::dialect);
}

TYPED_TEST(OdbcConnection, KeepsTextBytesAndNull) {
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  const std::string faces = "\U0001F600 \u65E5\u672C \u00E9 '\\";
  const std::string large(5'000'000, 'x');
  std::string large_bytes;
  while (large_bytes.size() < 300'000) large_bytes += all;
  const auto as_bytes = [](const std::string& s) {
    return sql::parameter(std::as_bytes(std::span(s)));
  };
  this->insert(1, std::string_view(faces), as_bytes(all));
  this->insert(2, std::string_view(""), {});
  this->insert(3);
  this->insert(4, std::string_view(large), as_bytes(large_bytes));
  const auto rows =
      this->connection_
          ->execute({.text = "SELECT V, B FROM T ORDER BY N", .results = {type::text, type::bytes}},
                    {})
          .rows;
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_EQ(rows.at(0, 0), sql::value(faces));
  EXPECT_EQ(rows.at(0, 1), sql::value(all));
  EXPECT_EQ(rows.at(1, 0), sql::value(std::string()));
  EXPECT_TRUE(std::holds_alternative<std::monostate>(rows.at(1, 1)));
  EXPECT_TRUE(std::holds_alternative<std::monostate>(rows.at(2, 0)));
  EXPECT_EQ(rows.at(3, 0), sql::value(large));
  EXPECT_EQ(rows.at(3, 1), sql::value(large_bytes));
}

TYPED_TEST(OdbcConnection, DistinguishesFailures) {
  auto& c = *this->connection_;
  this->insert(1);
  EXPECT_EQ(failure_of([&] { this->insert(1); }).code(), errc::duplicate)
      << "the diagnostics are read before the row count replaces them";
  EXPECT_EQ(failure_of([&] {
              c.execute({.text = "SELECT N FROM NOWHERE", .results = {type::integer}}, {});
            }).code(),
            errc::missing_object);
  EXPECT_EQ(failure_of([&] {
              c.execute({.text = "SELECT M FROM T", .results = {type::integer}}, {});
            }).code(),
            errc::missing_object);
  EXPECT_EQ(failure_of([&] { c.run("SELEC 1"); }).code(), errc::grammar);
  if (TypeParam::dialect != sql::dialect_id::sqlite) {
    EXPECT_EQ(failure_of([&] {
                c.run("INSERT INTO T (N, S) VALUES (7, 'more than ten characters')");
              }).code(),
              errc::too_large);
  }
  EXPECT_EQ(this->count(), 1) << "the connection is still usable";
  EXPECT_FALSE(c.broken());
}

TYPED_TEST(OdbcConnection, ADeleteWithoutAMatchIsNotAFailure) {
  const sql::parameter key[]{std::int64_t{42}};
  EXPECT_EQ(this->connection_
                ->execute({.text = "DELETE FROM T WHERE N = ?", .parameters = {type::integer}}, key)
                .affected,
            0U);
  this->insert(42);
  EXPECT_EQ(this->connection_
                ->execute({.text = "DELETE FROM T WHERE N = ?", .parameters = {type::integer}}, key)
                .affected,
            1U);
}

TYPED_TEST(OdbcConnection, ABatchIsAtomic) {
  sql::batch_statement insert;
  insert.text = "INSERT INTO T (N, V) VALUES ";
  insert.row = "(?, ?)";
  insert.columns = {type::integer, type::text};
  std::vector<std::vector<sql::parameter>> columns(2);
  for (int i = 0; i < 300; ++i) {
    columns[0].emplace_back(std::int64_t{i});
    columns[1].emplace_back(std::string_view(i % 2 == 0 ? "even" : "an odd number"));
  }
  (void)this->connection_->batch(insert, columns, {});
  EXPECT_EQ(this->count(), 300);
  for (auto& key : columns[0]) key = std::get<std::int64_t>(key) + 1'000;
  columns[0][270] = std::int64_t{5};  // exists
  EXPECT_EQ(failure_of([&] { (void)this->connection_->batch(insert, columns, {}); }).code(),
            errc::duplicate);
  EXPECT_EQ(this->count(), 300);
  const auto odd = this->connection_->execute(
      {.text = "SELECT V FROM T WHERE N = 7", .results = {type::text}}, {});
  EXPECT_EQ(odd.rows.at(0, 0), sql::value(std::string("an odd number")));
}

TYPED_TEST(OdbcConnection, ATransactionIsRolledBackOrCommitted) {
  this->connection_->begin();
  this->insert(1);
  this->connection_->rollback();
  EXPECT_EQ(this->count(), 0);
  this->connection_->begin();
  this->insert(1);
  this->connection_->commit();
  EXPECT_EQ(this->count(), 1);
}

TYPED_TEST(OdbcConnection, TheStoreKeepsBytes) {
  const auto store =
      open(this->driver_.url)
          .store({.prefix = "B_", .create_schema = true, .payload = payload_column::bytes});
  entry e{.name = "n",
          .key = "k",
          .as_of = system_clock()->now(),
          .expire_on = system_clock()->now() + 1h};
  e.payload = std::string("\0\xff\\x", 4);
  e.payload_class = "c";
  store->put(e);
  EXPECT_EQ(store->find("n", "k"), e);
  entry other = e;
  other.key = "l";
  const std::vector<entry> both{e, other};
  store->put(both);
  EXPECT_EQ(store->find("n", "l"), other);
}

TEST(OdbcErrors, ExplainFailuresWithoutThePassword) {
  const auto missing = failure_of([] {
    (void)detail::sql::connect_odbc({.connection_string = "Driver=Missing driver;PWD=topsecret"});
  });
  EXPECT_EQ(missing.code(), errc::missing_object);
  EXPECT_NE(std::string(missing.what()).find("odbcinst"), std::string::npos) << missing.what();
  const auto& server = shared_server<postgres_server>();
  auto url = odbc_postgres(server.port(), "holdfast").substr(5);
  url.replace(url.find("PWD=secret"), 10, "PWD=topsecret");
  const auto refused =
      failure_of([&] { (void)detail::sql::connect_odbc({.connection_string = url}); });
  EXPECT_EQ(refused.code(), errc::permission) << refused.what();
  EXPECT_EQ(std::string(refused.what()).find("topsecret"), std::string::npos);
  EXPECT_THROW((void)open("odbc:answers"), error);
}

TEST(OdbcPostgres, TimesAreUtcWhateverTheTimeZoneOfTheDatabase) {
  const auto& server = shared_server<postgres_server>();
  const auto database = server.create_database("zone");
  server.run("ALTER DATABASE \"" + database + "\" SET timezone = 'America/New_York'");
  const auto through_odbc =
      open(odbc_postgres(server.port(), database)).store({.create_schema = true});
  entry e{.name = "n",
          .key = "k",
          .as_of = system_clock()->now(),
          .expire_on = system_clock()->now() + 1h};
  e.payload = "{}";
  e.payload_class = "c";
  through_odbc->put(e);
  EXPECT_EQ(open(server.url(database)).store()->find("n", "k"), e) << "as libpq reads it";
}

// MERGE of PostgreSQL, unlike ON CONFLICT, fails with a duplicate key if two sessions insert at the
// same time. MERGE of SQL Server and Oracle does the same.
TEST(StoreRetries, AMergeThatFailsWithADuplicateIsRetried) {
  const auto& server = shared_server<postgres_server>();
  const auto url = server.url(server.create_database("merge"));
  store_options merging;
  merging.replace_query = [](store_query query, const std::string& standard) {
    if (query != store_query::upsert) return standard;
    return std::string(
        "MERGE INTO FAILOVER_STORE AS held USING (SELECT * FROM unnest($1::text[], $2::text[], "
        "$3::timestamptz[], $4::timestamptz[], "
        "$5::text[], "
        "$6::text[])) AS src (N, K, A, E, P, C) ON held.FAILOVER_NAME = src.N AND "
        "held.FAILOVER_KEY = src.K WHEN MATCHED AND (src.A >= "
        "held.AS_OF OR "
        "held.AS_OF > $7) THEN UPDATE SET AS_OF = src.A, EXPIRE_ON = src.E, PAYLOAD = src.P, "
        "PAYLOAD_CLASS = src.C WHEN NOT MATCHED THEN "
        "INSERT "
        "(FAILOVER_NAME, FAILOVER_KEY, AS_OF, EXPIRE_ON, PAYLOAD, PAYLOAD_CLASS) VALUES (src.N, "
        "src.K, src.A, src.E, src.P, src.C)");
  };
  (void)open(url).store({.create_schema = true, .start = start_mode::require});
  constexpr int writers = 8;
  constexpr int rounds = 40;
  constexpr int keys = 20;
  const timestamp start = system_clock()->now();
  std::atomic<std::uint64_t> retried{0};
  std::barrier together(writers);
  {
    std::vector<std::jthread> threads;
    for (int w = 0; w < writers; ++w) {
      threads.emplace_back([&, w] {
        const auto store = open(url).store(merging);
        for (int round = 0; round < rounds; ++round) {
          together.arrive_and_wait();
          try {
            std::vector<entry> batch;
            for (int k = 0; k < keys; ++k) {
              // New keys in every round, because only inserts collide.
              entry e{.name = "n",
                      .key = "k" + std::to_string(round) + "/" + std::to_string(k),
                      .as_of = start + 1us * w,
                      .expire_on = start + 1h};
              e.payload = std::to_string(w);
              e.payload_class = "c";
              batch.push_back(e);
            }
            store->put(batch);
          } catch (const std::exception& e) {
            ADD_FAILURE() << e.what();
          }
        }
        retried += store->health().retried;
      });
    }
  }
  const auto store = open(url).store();
  EXPECT_EQ(store->count("n"), std::size_t{keys} * rounds);
  for (int round = 0; round < rounds; ++round)
    EXPECT_EQ(store->find("n", "k" + std::to_string(round) + "/0").value().payload,
              std::to_string(writers - 1))
        << "the newest wins";
  RecordProperty("retried", std::to_string(retried.load()));
  EXPECT_GT(retried.load(), 0U) << "there was no collision, so the test proves nothing";
}

}  // namespace
}  // namespace holdfast::test
