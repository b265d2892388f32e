// The exact statements of each dialect, so that a change is visible here.

#include "store/sql/statements.hpp"

#include "support/failure_of.hpp"

#include <gtest/gtest.h>

namespace {

using namespace holdfast;
using detail::store::make_statements;
using detail::store::prefixes_of_realms;
using sql::dialect_id;

TEST(StoreStatements, NewerWinsInEveryDialect) {
  EXPECT_EQ(make_statements(dialect_id::postgresql, "P_", {}).upsert.text,
            "INSERT INTO P_FAILOVER_STORE AS held (FAILOVER_NAME, FAILOVER_KEY, AS_OF, EXPIRE_ON, "
            "PAYLOAD, PAYLOAD_CLASS) SELECT * FROM "
            "unnest($1::text[], $2::text[], $3::timestamptz[], $4::timestamptz[], $5::text[], "
            "$6::text[]) ON CONFLICT (FAILOVER_NAME, "
            "FAILOVER_KEY) DO "
            "UPDATE SET AS_OF = EXCLUDED.AS_OF, EXPIRE_ON = EXCLUDED.EXPIRE_ON, PAYLOAD = "
            "EXCLUDED.PAYLOAD, PAYLOAD_CLASS = "
            "EXCLUDED.PAYLOAD_CLASS WHERE "
            "EXCLUDED.AS_OF >= held.AS_OF OR held.AS_OF > $7");
  const auto sqlite = make_statements(dialect_id::sqlite, "", {}).upsert;
  EXPECT_EQ(sqlite.text + sqlite.row + sqlite.tail,
            "INSERT INTO FAILOVER_STORE AS held (FAILOVER_NAME, FAILOVER_KEY, AS_OF, EXPIRE_ON, "
            "PAYLOAD, PAYLOAD_CLASS) VALUES (?, ?, ?, "
            "?, ?, ?) ON "
            "CONFLICT (FAILOVER_NAME, FAILOVER_KEY) DO UPDATE SET AS_OF = excluded.AS_OF, "
            "EXPIRE_ON = excluded.EXPIRE_ON, PAYLOAD = "
            "excluded.PAYLOAD, "
            "PAYLOAD_CLASS = excluded.PAYLOAD_CLASS WHERE excluded.AS_OF >= held.AS_OF OR "
            "held.AS_OF > ?");
  const auto mysql = make_statements(dialect_id::mysql, "", {}).upsert;
  EXPECT_EQ(mysql.tail,
            " ON DUPLICATE KEY UPDATE EXPIRE_ON = IF(VALUES(AS_OF) >= AS_OF OR AS_OF > ?, "
            "VALUES(EXPIRE_ON), EXPIRE_ON), PAYLOAD = "
            "IF(VALUES(AS_OF) >= "
            "AS_OF OR AS_OF > ?, VALUES(PAYLOAD), PAYLOAD), PAYLOAD_CLASS = IF(VALUES(AS_OF) >= "
            "AS_OF OR AS_OF > ?, VALUES(PAYLOAD_CLASS), "
            "PAYLOAD_CLASS), AS_OF = IF(VALUES(AS_OF) >= AS_OF OR AS_OF > ?, VALUES(AS_OF), AS_OF)")
      << "AS_OF, which the guards read, is assigned last";
  EXPECT_EQ(mysql.common.size(), 4U);
}

TEST(StoreStatements, NoTwoTenantsShareATable) {
  const auto refused = [](std::string one, std::string other) {
    store_options options{.realms = {{"a", std::move(one)}, {"b", std::move(other)}}};
    return test::failure_of([&] { (void)prefixes_of_realms(options); }).code() ==
           errc::invalid_argument;
  };
  EXPECT_TRUE(refused("ACME_", "acme_"));
  const std::string most(63, 'x');
  EXPECT_TRUE(refused(most + "1_", most + "2_")) << "PostgreSQL truncates names";
  EXPECT_TRUE(refused(most + "1.", most + "2."));
  EXPECT_EQ(
      prefixes_of_realms({.realms = {{"a", most.substr(1) + "1_"}, {"b", most.substr(1) + "2_"}}})
          .size(),
      2U);
  EXPECT_EQ(prefixes_of_realms({.realms = {{"a", most + ".A_"}, {"b", most + ".B_"}}}).size(), 2U);
}

TEST(StoreStatements, AreNumberedForPostgresql) {
  EXPECT_EQ(make_statements(dialect_id::postgresql, "", {}).erase.text,
            "DELETE FROM FAILOVER_STORE WHERE FAILOVER_NAME = $1 AND FAILOVER_KEY = $2 AND AS_OF "
            ">= $3 AND AS_OF < $4");
}

TEST(StoreStatements, CanBeReplaced) {
  const store_options options{.replace_query = [](store_query query, const std::string& standard) {
    return query == store_query::find ? "/* hint */ " + standard : standard;
  }};
  EXPECT_TRUE(
      make_statements(dialect_id::sqlite, "", options).find.text.starts_with("/* hint */ SELECT"));
  EXPECT_TRUE(make_statements(dialect_id::sqlite, "", options).count.text.starts_with("SELECT"));
}

TEST(StoreStatements, APrefixIsANameAndNothingElse) {
  for (const char* good : {"", "MYAPP_", "schema.MYAPP_", "a.b.c_", "a."})
    EXPECT_NO_THROW((void)prefixes_of_realms({.prefix = good})) << good;
  for (const char* bad : {"x; DROP", "a b", "a-b", "a\"", "a'", ".a", "a..b", "é", "a\n"})
    EXPECT_THROW((void)prefixes_of_realms({.prefix = bad}), error) << bad;
  EXPECT_THROW((void)prefixes_of_realms({.prefix = std::string(101, 'a')}), error);
}

TEST(StoreStatements, TheIndexIsNamedWithoutQualifiers) {
  const auto schema = store_schema(dialect_id::postgresql, {.prefix = "app.X_"});
  EXPECT_EQ(schema.at(1),
            "CREATE INDEX IF NOT EXISTS IDX_X_FAILOVER_STORE_EXPIRE_ON ON app.X_FAILOVER_STORE "
            "(EXPIRE_ON)");
  EXPECT_THROW((void)store_schema(dialect_id::unknown), error);
}

TEST(store_statements, give_each_realm_a_table_of_its_own) {
  const auto prefixes = prefixes_of_realms(
      {.prefix = "APP_", .realms = {{"acme", "ACME_"}, {"zebra; DROP", "zebra."}}});
  EXPECT_EQ(prefixes, (std::map<std::string, std::string>{{"acme", "ACME_APP_"},
                                                          {"zebra; DROP", "zebra.APP_"}}))
      << "the tenant's id is not part of a table name";
  EXPECT_EQ(store_schema(dialect_id::postgresql, {.realms = {{"a", "A_"}, {"b", "B_"}}}).size(), 8U)
      << "two tables with an index each, one for leases, one for versions with two rows";
  EXPECT_THROW((void)prefixes_of_realms({.realms = {{"a", "x; DROP"}}}), error);
  EXPECT_THROW((void)prefixes_of_realms({.realms = {{"a", "A_"}, {"b", "a_"}}}), error)
      << "some databases ignore case";
}

}  // namespace
