// The exact statements for H2, SQL Server and Oracle. The last two cannot be run here, so a change
// must not happen by accident.

#include "store/sql/upsert.hpp"

#include <holdfast/database.hpp>

#include "store/sql/statements.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <span>
#include <string>

namespace holdfast {
namespace {

using detail::store::make_statements;
using sql::dialect_id;

std::string whole(const sql::batch_statement& s) { return s.text + s.row + s.tail; }

TEST(Upsert, H2) {
  const auto s = make_statements(dialect_id::h2, "P_", {});
  EXPECT_EQ(whole(s.upsert),
            "MERGE INTO P_FAILOVER_STORE AS held USING (VALUES (CAST(? AS VARCHAR), CAST(? AS "
            "VARCHAR), CAST(? AS TIMESTAMP(9) WITH TIME "
            "ZONE), CAST(? AS "
            "TIMESTAMP(9) WITH TIME ZONE), CAST(? AS VARCHAR), CAST(? AS VARCHAR))) AS src "
            "(FAILOVER_NAME, FAILOVER_KEY, AS_OF, EXPIRE_ON, "
            "PAYLOAD, "
            "PAYLOAD_CLASS) ON (held.FAILOVER_NAME = src.FAILOVER_NAME AND held.FAILOVER_KEY = "
            "src.FAILOVER_KEY) WHEN MATCHED AND "
            "(src.AS_OF >= held.AS_OF "
            "OR held.AS_OF > ?) THEN UPDATE SET AS_OF = src.AS_OF, EXPIRE_ON = src.EXPIRE_ON, "
            "PAYLOAD = src.PAYLOAD, PAYLOAD_CLASS = "
            "src.PAYLOAD_CLASS WHEN "
            "NOT MATCHED THEN INSERT (FAILOVER_NAME, FAILOVER_KEY, AS_OF, EXPIRE_ON, PAYLOAD, "
            "PAYLOAD_CLASS) VALUES (src.FAILOVER_NAME, "
            "src.FAILOVER_KEY, "
            "src.AS_OF, src.EXPIRE_ON, src.PAYLOAD, src.PAYLOAD_CLASS)");
  EXPECT_EQ(s.expire.text,
            "DELETE FROM P_FAILOVER_STORE WHERE EXPIRE_ON < ? FETCH FIRST ? ROWS ONLY");
}

TEST(Upsert, SqlServer) {
  const auto s = make_statements(dialect_id::sqlserver, "dbo.P_", {});
  EXPECT_EQ(whole(s.upsert),
            "MERGE INTO dbo.P_FAILOVER_STORE WITH (HOLDLOCK) AS held USING (VALUES (?, ?, CAST(? "
            "AS DATETIMEOFFSET(7)), CAST(? AS "
            "DATETIMEOFFSET(7)), "
            "CAST(? AS NVARCHAR(MAX)), ?)) AS src (FAILOVER_NAME, FAILOVER_KEY, AS_OF, EXPIRE_ON, "
            "PAYLOAD, PAYLOAD_CLASS) ON "
            "(held.FAILOVER_NAME = "
            "src.FAILOVER_NAME AND held.FAILOVER_KEY = src.FAILOVER_KEY) WHEN MATCHED AND "
            "(src.AS_OF >= held.AS_OF OR held.AS_OF > ?) THEN "
            "UPDATE SET AS_OF "
            "= src.AS_OF, EXPIRE_ON = src.EXPIRE_ON, PAYLOAD = src.PAYLOAD, PAYLOAD_CLASS = "
            "src.PAYLOAD_CLASS WHEN NOT MATCHED THEN INSERT "
            "(FAILOVER_NAME, "
            "FAILOVER_KEY, AS_OF, EXPIRE_ON, PAYLOAD, PAYLOAD_CLASS) VALUES (src.FAILOVER_NAME, "
            "src.FAILOVER_KEY, src.AS_OF, "
            "src.EXPIRE_ON, src.PAYLOAD, "
            "src.PAYLOAD_CLASS);");
  EXPECT_EQ(s.find.text,
            "SELECT CAST(SWITCHOFFSET(AS_OF, '+00:00') AS DATETIME2(7)), "
            "CAST(SWITCHOFFSET(EXPIRE_ON, '+00:00') AS DATETIME2(7)), PAYLOAD, "
            "PAYLOAD_CLASS "
            "FROM dbo.P_FAILOVER_STORE WHERE FAILOVER_NAME = ? AND FAILOVER_KEY = ?");
  EXPECT_TRUE(
      s.find_first.text.ends_with("ORDER BY FAILOVER_KEY OFFSET 0 ROWS FETCH NEXT ? ROWS ONLY"))
      << s.find_first.text;
  EXPECT_EQ(s.expire.text,
            "WITH bound AS (SELECT CAST(? AS DATETIMEOFFSET(7)) AS MOMENT) DELETE TOP (?) FROM "
            "dbo.P_FAILOVER_STORE WITH (ROWLOCK, "
            "READPAST) WHERE "
            "EXPIRE_ON < (SELECT MOMENT FROM bound)");
  EXPECT_TRUE(s.name_after.text.ends_with("OFFSET 0 ROWS FETCH NEXT 1 ROWS ONLY"));
  EXPECT_TRUE(s.rewrite.text.ends_with("AND PAYLOAD = CAST(? AS NVARCHAR(MAX))"));
}

TEST(Upsert, Oracle) {
  const auto s = make_statements(dialect_id::oracle, "P_", {});
  EXPECT_EQ(whole(s.upsert),
            "MERGE INTO P_FAILOVER_STORE held USING DUAL ON (held.FAILOVER_NAME = ? AND "
            "held.FAILOVER_KEY = ?) WHEN MATCHED THEN UPDATE SET "
            "AS_OF = ?, "
            "EXPIRE_ON = ?, PAYLOAD = ?, PAYLOAD_CLASS = ? WHERE held.AS_OF <= ? OR held.AS_OF > ? "
            "WHEN NOT MATCHED THEN INSERT (FAILOVER_NAME, "
            "FAILOVER_KEY, AS_OF, EXPIRE_ON, PAYLOAD, PAYLOAD_CLASS) VALUES (?, ?, ?, ?, ?, ?)");
  EXPECT_EQ(s.upsert.order, (std::vector<std::uint16_t>{0, 1, 2, 3, 4, 5, 2, 6, 0, 1, 2, 3, 4, 5}));
  const auto marks = whole(s.upsert);
  EXPECT_EQ(std::count(marks.begin(), marks.end(), '?'),
            static_cast<std::ptrdiff_t>(s.upsert.order.size()));
  EXPECT_EQ(s.find.text,
            "SELECT SYS_EXTRACT_UTC(AS_OF), SYS_EXTRACT_UTC(EXPIRE_ON), PAYLOAD, PAYLOAD_CLASS "
            "FROM P_FAILOVER_STORE WHERE FAILOVER_NAME = ? AND "
            "FAILOVER_KEY = ?");
  EXPECT_TRUE(s.find_first.text.ends_with("ORDER BY FAILOVER_KEY FETCH FIRST ? ROWS ONLY"));
  EXPECT_EQ(s.expire.text, "DELETE FROM P_FAILOVER_STORE WHERE EXPIRE_ON < ? AND ROWNUM <= ?");
  EXPECT_TRUE(s.rewrite.text.ends_with("DBMS_LOB.COMPARE(PAYLOAD, ?) = 0"));
}

TEST(Upsert, Unknown) {
  const auto s = make_statements(dialect_id::unknown, "P_", {});
  EXPECT_FALSE(s.native);
  EXPECT_EQ(s.insert.text,
            "INSERT INTO P_FAILOVER_STORE (FAILOVER_NAME, FAILOVER_KEY, AS_OF, EXPIRE_ON, PAYLOAD, "
            "PAYLOAD_CLASS) VALUES (?, ?, ?, ?, ?, ?)");
  EXPECT_EQ(s.update.text,
            "UPDATE P_FAILOVER_STORE SET AS_OF = ?, EXPIRE_ON = ?, PAYLOAD = ?, PAYLOAD_CLASS = ? "
            "WHERE FAILOVER_NAME = ? AND FAILOVER_KEY "
            "= ? AND (AS_OF < "
            "? OR AS_OF > ?)");
  EXPECT_EQ(s.expired.text,
            "SELECT FAILOVER_NAME, FAILOVER_KEY FROM P_FAILOVER_STORE WHERE EXPIRE_ON < ?");
  EXPECT_EQ(s.expire.text,
            "DELETE FROM P_FAILOVER_STORE WHERE FAILOVER_NAME = ? AND FAILOVER_KEY = ? AND "
            "EXPIRE_ON < ?");
  for (const auto* each : {&s.find_first, &s.find_after, &s.name_after})
    EXPECT_EQ(each->text.find("LIMIT"), std::string::npos) << each->text;
}

TEST(Upsert, Schemas) {
  const auto server = store_schema(dialect_id::sqlserver, {.prefix = "P_"});
  ASSERT_EQ(server.size(), 4U);
  EXPECT_EQ(server[0],
            "IF OBJECT_ID('P_FAILOVER_STORE') IS NULL CREATE TABLE P_FAILOVER_STORE (\n  "
            "FAILOVER_NAME NVARCHAR(50) COLLATE "
            "Latin1_General_100_BIN2 NOT "
            "NULL,\n  FAILOVER_KEY NVARCHAR(256) COLLATE Latin1_General_100_BIN2 NOT NULL,\n  "
            "AS_OF DATETIMEOFFSET(7) NOT NULL,\n  EXPIRE_ON "
            "DATETIMEOFFSET(7) NOT NULL,\n  PAYLOAD NVARCHAR(MAX),\n  PAYLOAD_CLASS "
            "NVARCHAR(256),\n  PRIMARY KEY (FAILOVER_NAME, "
            "FAILOVER_KEY),\n  INDEX "
            "IDX_P_FAILOVER_STORE_EXPIRE_ON (EXPIRE_ON)\n)");
  const auto oracle = store_schema(dialect_id::oracle, {.prefix = "P_"});
  ASSERT_EQ(oracle.size(), 5U);
  for (const auto& each : std::span(oracle).first(4)) {
    EXPECT_TRUE(each.starts_with("BEGIN EXECUTE IMMEDIATE q'[CREATE ")) << each;
    EXPECT_EQ(std::count(each.begin(), each.end(), ']'), 1)
        << "a bracket inside would end the text: " << each;
  }
  EXPECT_NE(oracle[0].find("PAYLOAD CLOB"), std::string::npos);
  EXPECT_NE(oracle[0].find("VARCHAR2(256 CHAR)"), std::string::npos) << "characters, not bytes";
}

/// A fake database of any dialect. It has one row and accepts all statements.
class fake_connection final : public sql::connection {
 public:
  fake_connection(dialect_id dialect, sql::value payload, sql::value payload_class)
      : dialect_(dialect), payload_(std::move(payload)), class_(std::move(payload_class)) {}
  [[nodiscard]] dialect_id dialect() const noexcept override { return dialect_; }
  sql::outcome execute(const sql::statement& s, std::span<const sql::parameter>) override {
    sql::outcome outcome{.rows = sql::rows(s.results.size())};
    if (s.results.size() != 4) return outcome;
    outcome.rows.add(timestamp(std::chrono::seconds(1)));
    outcome.rows.add(timestamp(std::chrono::seconds(2)));
    outcome.rows.add(payload_);
    outcome.rows.add(class_);
    return outcome;
  }
  sql::outcome batch(const sql::batch_statement&, std::span<const std::vector<sql::parameter>>,
                     std::span<const sql::parameter>) override {
    return {};
  }
  void run(const std::string&) override {}
  void begin() override {}
  void commit() override {}
  void rollback() noexcept override {}
  void limit(std::chrono::milliseconds) override {}
  [[nodiscard]] bool broken() const noexcept override { return false; }

 private:
  dialect_id dialect_;
  sql::value payload_;
  sql::value class_;
};

std::shared_ptr<store> store_on(dialect_id dialect, const sql::value& payload = {},
                                const sql::value& payload_class = {}) {
  return database(
             [=] { return std::make_unique<fake_connection>(dialect, payload, payload_class); }, {})
      .store();
}

entry an_entry(const std::string& key, const std::string& payload,
               const std::string& payload_class) {
  entry e{.name = "n", .key = key, .as_of = system_clock()->now()};
  e.expire_on = e.as_of + std::chrono::hours(1);
  e.payload = payload;
  e.payload_class = payload_class;
  return e;
}

TEST(Upsert, OracleTellsAnEmptyPayloadFromATombstoneByItsClass) {
  const auto with_class = store_on(dialect_id::oracle, {}, std::string("c"))->find("n", "k");
  EXPECT_EQ(with_class.value().payload, "");
  EXPECT_TRUE(store_on(dialect_id::oracle)->find("n", "k").value().tombstone());
  EXPECT_TRUE(store_on(dialect_id::h2, {}, std::string("c"))->find("n", "k").value().tombstone())
      << "only Oracle";
  EXPECT_NO_THROW(store_on(dialect_id::oracle)->put(an_entry("k", "", "c")));
  EXPECT_THROW(store_on(dialect_id::oracle)->put(an_entry("k", "", "")), error)
      << "it would look like a tombstone";
  EXPECT_NO_THROW(store_on(dialect_id::h2)->put(an_entry("k", "", "")));
}

TEST(Upsert, SqlServerRefusesAKeyThatEndsWithASpace) {
  const auto store = store_on(dialect_id::sqlserver, std::string("p"), std::string("c"));
  EXPECT_THROW(store->put(an_entry("k ", "p", "c")), error);
  EXPECT_EQ(store->find("n", "k "), std::nullopt) << "it would find the key without the space";
  EXPECT_FALSE(store->erase("n", "k ", timestamp(std::chrono::seconds(1))));
  EXPECT_TRUE(store->find("n", "k").has_value());
}

}  // namespace
}  // namespace holdfast
