// Tables as people make them: each fault is found, and what the probe says to type cures it, on the
// real database.

#include "integration/store_probe_fixture.hpp"

#include <ostream>

namespace holdfast::test {
namespace {

using sql::dialect_id;

struct fault {
  std::string name;
  dialect_id on;
  std::vector<std::string> spoil;  ///< run on a table as it should be, with one row
  std::string code;
  holdfast::severity severity = holdfast::severity::wrong;
  bool row_stays = true;  ///< the row is there after the cure
};
void PrintTo(const fault& f, std::ostream* out) {
  *out << f.name;
}  // NOLINT(readability-identifier-naming): GoogleTest's name

constexpr auto pg = dialect_id::postgresql;
constexpr auto maria = dialect_id::mariadb;
constexpr auto lite = dialect_id::sqlite;
using enum severity;

const std::string t = "ALTER TABLE FAILOVER_STORE ";

/// The table made by hand, in SQLite's way of changing one.
std::vector<std::string> made_by_hand(const std::string& columns) {
  return {"DROP TABLE FAILOVER_STORE", "CREATE TABLE FAILOVER_STORE (" + columns + ")",
          "CREATE INDEX mine ON FAILOVER_STORE (EXPIRE_ON)",
          "INSERT INTO FAILOVER_STORE (FAILOVER_NAME, FAILOVER_KEY, AS_OF, EXPIRE_ON, PAYLOAD, "
          "PAYLOAD_CLASS) VALUES ('n', 'k', "
          "1700000000000000, 4000000000000000, '{}', 'c')"};
}
const std::string key = ", PRIMARY KEY (FAILOVER_NAME, FAILOVER_KEY)";

const std::vector<fault> faults{
    // PostgreSQL
    {"PgNoTable", pg, {"DROP TABLE FAILOVER_STORE"}, "table", failing, false},
    {"PgNoClass", pg, {t + "DROP COLUMN PAYLOAD_CLASS"}, "column"},
    {"PgNoPayload", pg, {t + "DROP COLUMN PAYLOAD"}, "column"},
    {"PgNoAsOf", pg, {t + "DROP COLUMN AS_OF"}, "column"},
    {"PgNoExpireOn", pg, {t + "DROP COLUMN EXPIRE_ON"}, "column"},
    {"PgJson", pg, {t + "ALTER PAYLOAD TYPE JSONB USING PAYLOAD::jsonb"}, "column_type"},
    {"PgBytes",
     pg,
     {t + "ALTER PAYLOAD TYPE BYTEA USING convert_to(PAYLOAD, 'UTF8')"},
     "payload_type"},
    {"PgNoZone",
     pg,
     {t + "ALTER AS_OF TYPE TIMESTAMP, ALTER EXPIRE_ON TYPE TIMESTAMP"},
     "time_zone"},
    {"PgMilliseconds", pg, {t + "ALTER AS_OF TYPE TIMESTAMPTZ(3)"}, "time_digits"},
    {"PgCaseBlind",
     pg,
     {"CREATE COLLATION blind (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
      t + "ALTER FAILOVER_KEY TYPE VARCHAR(256) COLLATE blind"},
     "collation"},
    {"PgPadded", pg, {t + "ALTER FAILOVER_NAME TYPE CHAR(50)"}, "collation"},
    {"PgNotNull", pg, {t + "ALTER PAYLOAD SET NOT NULL"}, "not_null"},
    {"PgShortKey", pg, {t + "ALTER FAILOVER_KEY TYPE VARCHAR(36)"}, "length", warning},
    {"PgPublishedPayload", pg, {t + "ALTER PAYLOAD TYPE VARCHAR(4000)"}, "payload_size", note},
    {"PgTinyPayload", pg, {t + "ALTER PAYLOAD TYPE VARCHAR(100)"}, "payload_size", warning},
    {"PgExtraColumn",
     pg,
     {t + "ADD owner_name TEXT NOT NULL DEFAULT 'x'", t + "ALTER owner_name DROP DEFAULT"},
     "extra_column"},
    {"PgNoKey", pg, {t + "DROP CONSTRAINT failover_store_pkey"}, "primary_key"},
    {"PgTwins",
     pg,
     {t + "DROP CONSTRAINT failover_store_pkey",
      "INSERT INTO FAILOVER_STORE SELECT * FROM FAILOVER_STORE",
      "INSERT INTO FAILOVER_STORE SELECT FAILOVER_NAME, FAILOVER_KEY, AS_OF - INTERVAL '1 hour', "
      "EXPIRE_ON, 'old', 'c' FROM "
      "FAILOVER_STORE"},
     "primary_key"},
    {"PgKeyAlone",
     pg,
     {t + "DROP CONSTRAINT failover_store_pkey, ADD PRIMARY KEY (FAILOVER_KEY)"},
     "key_in_the_way"},
    {"PgUniqueClass",
     pg,
     {"CREATE UNIQUE INDEX \"my Index\" ON FAILOVER_STORE (PAYLOAD_CLASS)"},
     "key_in_the_way"},
    {"PgNoIndex", pg, {"DROP INDEX IDX_FAILOVER_STORE_EXPIRE_ON"}, "expire_index", warning},
    {"PgPartialIndex",
     pg,
     {"DROP INDEX IDX_FAILOVER_STORE_EXPIRE_ON",
      "CREATE INDEX part ON FAILOVER_STORE (EXPIRE_ON) WHERE FAILOVER_NAME = 'n'"},
     "expire_index",
     warning},
    {"PgIndexOfAnotherOrder",
     pg,
     {"DROP INDEX IDX_FAILOVER_STORE_EXPIRE_ON",
      "CREATE INDEX other ON FAILOVER_STORE (AS_OF, EXPIRE_ON)"},
     "expire_index",
     warning},
    {"PgUnlogged", pg, {t + "SET UNLOGGED"}, "unlogged", warning},
    {"PgPrivilege", pg, {t + "OWNER TO postgres"}, "privilege", failing},
    {"PgReadingOnly",
     pg,
     {t + "OWNER TO postgres", "GRANT SELECT ON FAILOVER_STORE TO holdfast"},
     "privilege",
     failing},
    {"PgNoLease", pg, {"DROP TABLE HOLDFAST_LEASE"}, "lease_table", failing},
    {"PgLeasePrivilege",
     pg,
     {"ALTER TABLE HOLDFAST_LEASE OWNER TO postgres"},
     "lease_privilege",
     failing},
    {"PgLeaseReadingOnly",
     pg,
     {"ALTER TABLE HOLDFAST_LEASE OWNER TO postgres", "GRANT SELECT ON HOLDFAST_LEASE TO holdfast"},
     "lease_privilege",
     failing},
    // MariaDB
    {"MariaNoLease", maria, {"DROP TABLE HOLDFAST_LEASE"}, "lease_table", failing},
    {"MariaNoTable", maria, {"DROP TABLE FAILOVER_STORE"}, "table", failing, false},
    {"MariaNoClass", maria, {t + "DROP COLUMN PAYLOAD_CLASS"}, "column"},
    {"MariaNoAsOf", maria, {t + "DROP COLUMN AS_OF"}, "column"},
    {"MariaNoExpireOn", maria, {t + "DROP COLUMN EXPIRE_ON"}, "column"},
    {"MariaNumberedKey",
     maria,
     {"UPDATE FAILOVER_STORE SET FAILOVER_KEY = '7'", t + "MODIFY FAILOVER_KEY BIGINT NOT NULL"},
     "column_type",
     wrong,
     false},
    {"MariaCaseBlind",
     maria,
     {t +
      "MODIFY FAILOVER_KEY VARCHAR(256) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci NOT NULL"},
     "collation"},
    {"MariaPadded",
     maria,
     {t + "MODIFY FAILOVER_KEY VARCHAR(256) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL"},
     "collation"},
    {"MariaLatin",
     maria,
     {t +
      "MODIFY FAILOVER_NAME VARCHAR(50) CHARACTER SET latin1 COLLATE latin1_nopad_bin NOT NULL"},
     "charset",
     warning},
    {"MariaSeconds", maria, {t + "MODIFY AS_OF DATETIME NOT NULL"}, "time_digits"},
    {"MariaTimestamp",
     maria,
     {t + "MODIFY EXPIRE_ON TIMESTAMP(6) NOT NULL"},
     "time_range",
     warning},
    {"MariaNotNull",
     maria,
     {t + "MODIFY PAYLOAD LONGTEXT CHARACTER SET utf8mb4 NOT NULL"},
     "not_null"},
    {"MariaShortName",
     maria,
     {t +
      "MODIFY FAILOVER_NAME VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL"},
     "length",
     warning},
    {"MariaPublishedPayload",
     maria,
     {t + "MODIFY PAYLOAD VARCHAR(4000) CHARACTER SET utf8mb4"},
     "payload_size",
     note},
    {"MariaText", maria, {t + "MODIFY PAYLOAD TEXT CHARACTER SET utf8mb4"}, "payload_size", note},
    {"MariaExtraColumn", maria, {t + "ADD owner_name VARCHAR(10) NOT NULL"}, "extra_column"},
    {"MariaNoKey", maria, {t + "DROP PRIMARY KEY"}, "primary_key"},
    {"MariaTwins",
     maria,
     {t + "DROP PRIMARY KEY", "INSERT INTO FAILOVER_STORE SELECT * FROM FAILOVER_STORE",
      "INSERT INTO FAILOVER_STORE SELECT FAILOVER_NAME, FAILOVER_KEY, AS_OF - INTERVAL 1 HOUR, "
      "EXPIRE_ON, 'old', 'c' FROM FAILOVER_STORE"},
     "primary_key"},
    {"MariaKeyAlone",
     maria,
     {t + "DROP PRIMARY KEY, ADD PRIMARY KEY (FAILOVER_KEY)"},
     "key_in_the_way"},
    {"MariaKeyInPart",
     maria,
     {t + "DROP PRIMARY KEY, ADD PRIMARY KEY (FAILOVER_NAME, FAILOVER_KEY(8))"},
     "key_in_the_way"},
    {"MariaUniqueClass", maria, {t + "ADD UNIQUE INDEX mine (PAYLOAD_CLASS)"}, "key_in_the_way"},
    {"MariaNoIndex",
     maria,
     {t + "DROP INDEX IDX_FAILOVER_STORE_EXPIRE_ON"},
     "expire_index",
     warning},
    {"MariaEngine", maria, {t + "ENGINE = Aria"}, "engine"},
    // SQLite
    {"LiteNoTable", lite, {"DROP TABLE FAILOVER_STORE"}, "table", failing, false},
    {"LiteNoClass", lite, {t + "DROP COLUMN PAYLOAD_CLASS"}, "column"},
    {"LiteNoAsOf", lite, {t + "DROP COLUMN AS_OF"}, "column"},
    {"LiteCaseBlind", lite,
     made_by_hand("FAILOVER_NAME TEXT NOT NULL, FAILOVER_KEY TEXT COLLATE NOCASE NOT NULL, AS_OF "
                  "INTEGER NOT NULL, EXPIRE_ON INTEGER NOT NULL, "
                  "PAYLOAD TEXT, PAYLOAD_CLASS TEXT" +
                  key),
     "collation"},
    {"LiteTimesAsText", lite,
     made_by_hand("FAILOVER_NAME TEXT NOT NULL, FAILOVER_KEY TEXT NOT NULL, AS_OF TEXT NOT NULL, "
                  "EXPIRE_ON INTEGER NOT NULL, "
                  "PAYLOAD TEXT, PAYLOAD_CLASS TEXT" +
                  key),
     "column_type"},
    {"LiteNumberedKey", lite,
     made_by_hand("FAILOVER_NAME TEXT NOT NULL, FAILOVER_KEY NUMERIC NOT NULL, AS_OF INTEGER NOT "
                  "NULL, EXPIRE_ON INTEGER NOT NULL, "
                  "PAYLOAD TEXT, PAYLOAD_CLASS TEXT" +
                  key),
     "column_type"},
    {"LiteNotNull", lite,
     made_by_hand("FAILOVER_NAME TEXT NOT NULL, FAILOVER_KEY TEXT NOT NULL, AS_OF INTEGER NOT "
                  "NULL, EXPIRE_ON INTEGER NOT NULL, "
                  "PAYLOAD TEXT NOT NULL, PAYLOAD_CLASS TEXT" +
                  key),
     "not_null"},
    {"LiteNoKey", lite,
     made_by_hand("FAILOVER_NAME TEXT NOT NULL, FAILOVER_KEY TEXT NOT NULL, AS_OF INTEGER NOT "
                  "NULL, EXPIRE_ON INTEGER NOT NULL, "
                  "PAYLOAD TEXT, PAYLOAD_CLASS TEXT"),
     "primary_key"},
    {"LiteKeyAlone", lite,
     made_by_hand("FAILOVER_NAME TEXT NOT NULL, FAILOVER_KEY TEXT PRIMARY KEY NOT NULL, AS_OF "
                  "INTEGER NOT NULL, EXPIRE_ON INTEGER NOT "
                  "NULL, PAYLOAD TEXT, PAYLOAD_CLASS TEXT"),
     "key_in_the_way"},
    {"LiteExtraColumn",
     lite,
     {"DROP TABLE FAILOVER_STORE",
      "CREATE TABLE FAILOVER_STORE (FAILOVER_NAME TEXT NOT NULL, FAILOVER_KEY TEXT NOT NULL, AS_OF "
      "INTEGER NOT NULL, EXPIRE_ON INTEGER NOT "
      "NULL, PAYLOAD TEXT, PAYLOAD_CLASS TEXT, owner_name TEXT NOT NULL" +
          key + ")",
      "CREATE INDEX mine ON FAILOVER_STORE (EXPIRE_ON)"},
     "extra_column",
     wrong,
     false},
    {"LiteNoLease", lite, {"DROP TABLE HOLDFAST_LEASE"}, "lease_table", failing},
    {"LiteNoIndex", lite, {"DROP INDEX IDX_FAILOVER_STORE_EXPIRE_ON"}, "expire_index", warning},
};

class StoreProbeFaults : public ::testing::TestWithParam<fault> {};

TEST_P(StoreProbeFaults, IsFoundAndCured) {
  const auto& given = GetParam();
  const spoilable place(given.on);
  place.create();
  open(place.url()).store()->put(make_entry("k"));
  place.run_all(given.spoil);

  const auto before = place.look();
  const auto* found = find(before, given.code);
  ASSERT_NE(found, nullptr) << told(before);
  EXPECT_EQ(found->severity, given.severity) << told(before);
  EXPECT_EQ(before.usable(), given.severity < severity::failing) << told(before);
  EXPECT_EQ(found->problem.find('\n'), std::string::npos);
  ASSERT_FALSE(found->sql.empty()) << told(before);

  // What it says to type, as often as it says something: a table may have several faults, and one
  // may hide another.
  auto report = before;
  for (int round = 0; round < 4 && !report.findings.empty(); ++round) {
    place.run_all(report.findings.front().sql);
    report = place.look();
  }
  EXPECT_TRUE(report.findings.empty()) << told(before) << "after the cure\n" << told(report);

  const auto store = open(place.url()).store();
  store->put(make_entry("fresh"));
  EXPECT_TRUE(store->find("n", "fresh"));
  if (!given.row_stays) return;
  const auto old = store->find("n", "k");
  ASSERT_TRUE(old) << "the cure keeps what was there";
  EXPECT_NE(old->payload.value_or(""), "old") << "of twins the newer";
}

INSTANTIATE_TEST_SUITE_P(All, StoreProbeFaults, ::testing::ValuesIn(faults),
                         [](const auto& each) { return each.param.name; });

class StoreProbe : public ::testing::TestWithParam<dialect_id> {};

TEST_P(StoreProbe, ATableOfOursIsFine) {
  const spoilable place(GetParam());
  for (const auto payload : {payload_column::text, payload_column::bytes}) {
    const store_options options{.prefix = payload == payload_column::text ? "A_" : "B_",
                                .payload = payload};
    place.create(options);
    const auto report = place.look(options);
    EXPECT_TRUE(report.findings.empty()) << told(report);
    EXPECT_EQ(report.tables, std::vector{options.prefix + "FAILOVER_STORE"});
    EXPECT_NE(report.server.find('.'), std::string::npos) << report.server;
    EXPECT_EQ(report.dialect, GetParam());
    EXPECT_EQ(report.skew.has_value(), GetParam() != lite);
    EXPECT_LT(std::chrono::abs(report.skew.value_or(0us)), report.skew_within + 100ms)
        << "one machine, one clock";
    EXPECT_EQ(open(place.url()).store(options)->count("holdfast"), 0U)
        << "what was tried did not stay";
  }
}

TEST_P(StoreProbe, AnIndexUnderAnyNameIsOne) {
  const spoilable place(GetParam());
  place.create();
  place.run(GetParam() == maria ? t + "DROP INDEX IDX_FAILOVER_STORE_EXPIRE_ON"
                                : "DROP INDEX IDX_FAILOVER_STORE_EXPIRE_ON");
  place.run("CREATE INDEX anything ON FAILOVER_STORE (EXPIRE_ON, FAILOVER_NAME)");
  const auto report = place.look();
  EXPECT_TRUE(report.findings.empty()) << told(report);
}

TEST_P(StoreProbe, AViewIsNoTable) {
  const spoilable place(GetParam());
  place.create();
  place.run("CREATE VIEW V_FAILOVER_STORE AS SELECT * FROM FAILOVER_STORE");
  const auto report = place.look({.prefix = "V_"});
  ASSERT_NE(find(report, "table"), nullptr) << told(report);
  EXPECT_EQ(find(report, "table")->severity, severity::wrong);
}

TEST_P(StoreProbe, AnotherKindOfTableCannotBeCured) {
  const spoilable place(GetParam());
  place.run("CREATE TABLE FAILOVER_STORE (a INTEGER)");
  const auto report = place.look();
  ASSERT_NE(find(report, "column"), nullptr) << told(report);
  EXPECT_TRUE(find(report, "column")->sql.empty());
  EXPECT_NE(find(report, "column")->advice.find("prefix"), std::string::npos);
}

TEST_P(StoreProbe, EveryRealmsTableIsLookedAt) {
  const spoilable place(GetParam());
  const store_options options{.realms = {{"acme", "ACME_"}, {"zeta", "ZETA_"}}};
  place.create(options);
  EXPECT_TRUE(place.look(options).findings.empty()) << told(place.look(options));
  place.run("DROP TABLE ZETA_FAILOVER_STORE");
  const auto report = place.look(options);
  EXPECT_EQ(report.tables.size(), 2U);
  ASSERT_EQ(report.findings.size(), 1U) << told(report);
  EXPECT_NE(report.findings.front().problem.find("ZETA_FAILOVER_STORE"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(All, StoreProbe, ::testing::Values(pg, maria, lite),
                         [](const auto& each) { return std::string(sql::to_string(each.param)); });

TEST(StoreProbeCollations, WhatIsCalledWrongLosesEntries) {
  const spoilable place(maria);
  const auto kept = [&](const std::string& collation, const std::string& one,
                        const std::string& other) {
    place.run("DROP TABLE IF EXISTS FAILOVER_STORE");
    place.create();
    place.run(t + "MODIFY FAILOVER_KEY VARCHAR(256) CHARACTER SET utf8mb4 COLLATE " + collation +
              " NOT NULL");
    const auto store = open(place.url()).store({.probe = start_probe::off});
    store->put(make_entry(one));
    store->put(make_entry(other));
    return store->count("n");
  };
  EXPECT_EQ(kept("utf8mb4_general_ci", "k", "K"), 1U);
  EXPECT_EQ(kept("utf8mb4_bin", "k", "k "), 1U);
  EXPECT_EQ(kept("utf8mb4_nopad_bin", "k", "K"), 2U);
  EXPECT_EQ(kept("utf8mb4_nopad_bin", "k", "k "), 2U);
}

TEST(StoreProbeMemory, HasNothingToSay) {
  const auto report = probe(open("memory:"));
  EXPECT_TRUE(report.usable());
  EXPECT_TRUE(report.findings.empty());
}

}  // namespace
}  // namespace holdfast::test
