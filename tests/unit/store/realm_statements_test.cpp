// The statements for a table depend on the types of its columns, which are queried once.

#include "store/sql/realm_statements.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

using detail::store::realm_statements;
using detail::store::store_statements;

/// A fake database that reports these numbers of time columns.
struct fake_catalog {
  std::atomic<std::int64_t> without_zone = 0;
  std::atomic<std::int64_t> with_zone = 0;
  std::atomic<std::int64_t> zones = 1;  // known by the name in the query
  std::atomic<int> queries = 0;
  std::optional<error> failure{};

  realm_statements::execute_function execute() {
    return [this](const sql::statement& s, std::span<const sql::parameter>) {
      ++queries;
      if (failure) throw error(*failure);
      sql::outcome result{.rows = sql::rows(s.results.size())};
      result.rows.add(s.results.size() == 2 ? without_zone.load() : zones.load());
      if (s.results.size() == 2) result.rows.add(with_zone.load());
      return result;
    };
  }
};

constexpr auto postgresql = sql::dialect_id::postgresql;

template <class F>
errc code_of(F f) {
  try {
    f();
  } catch (const error& e) {
    return e.code();
  }
  return errc::internal;
}

TEST(RealmStatements, QueryOnceIfTheColumnsHaveAZone) {
  fake_catalog catalog;
  realm_statements statements(postgresql, {}, catalog.execute());
  EXPECT_EQ(statements.for_realm("").find.text, statements.any_realm().find.text);
  EXPECT_EQ(catalog.queries, 1) << "the table did not exist";
  catalog.with_zone = 2;
  for (int i = 0; i < 3; ++i) (void)statements.for_realm("");
  EXPECT_EQ(catalog.queries, 2);
  EXPECT_EQ(statements.for_realm("").find.text.find("AT TIME ZONE"), std::string::npos);
}

TEST(RealmStatements, OtherDatabasesAreNotQueried) {
  fake_catalog catalog;
  for (const auto dialect : {sql::dialect_id::sqlite, sql::dialect_id::mysql,
                             sql::dialect_id::mariadb, sql::dialect_id::unknown}) {
    realm_statements statements(dialect, {}, catalog.execute());
    (void)statements.for_realm("");
    EXPECT_EQ(code_of([&] {
                const realm_statements refused(dialect, {.zone = "Europe/Paris"},
                                               catalog.execute());
              }),
              errc::invalid_argument);
  }
  EXPECT_EQ(code_of([&] {
              const realm_statements refused(sql::dialect_id::sqlite, {.zone = "UTC"},
                                             catalog.execute());
            }),
            errc::invalid_argument);
  // A DATETIME column has no zone, but UTC may be set.
  for (const auto dialect : {sql::dialect_id::mysql, sql::dialect_id::mariadb}) {
    for (const auto* const zone : {"UTC", "+00:00"}) {
      realm_statements statements(dialect, {.zone = zone}, catalog.execute());
      EXPECT_EQ(statements.for_realm("").find.text,
                realm_statements(dialect, {}, catalog.execute()).for_realm("").find.text);
    }
  }
  EXPECT_EQ(catalog.queries, 0);
}

TEST(RealmStatements, TheZoneIsInEveryStatementWithATime) {
  fake_catalog catalog;
  catalog.without_zone = 2;
  realm_statements refused(postgresql, {}, catalog.execute());
  EXPECT_EQ(code_of([&] { (void)refused.for_realm(""); }), errc::missing_object)
      << "blames the table, not an entry";
  catalog.with_zone = 1;
  EXPECT_EQ(code_of([&] { (void)refused.for_realm(""); }), errc::missing_object) << "one of each";
  catalog.with_zone = 0;
  catalog.zones = 0;
  realm_statements nowhere(postgresql, {.zone = "Europe/Nowhere"}, catalog.execute());
  EXPECT_EQ(code_of([&] { (void)nowhere.for_realm(""); }), errc::missing_object);
  catalog.zones = 1;
  for (const auto& [zone, expression] : {std::pair("Europe/Paris", "AT TIME ZONE 'Europe/Paris'"),
                                         std::pair("-03:30", "AT TIME ZONE INTERVAL '-03:30'")}) {
    realm_statements statements(postgresql, {.zone = zone}, catalog.execute());
    const auto& s = statements.for_realm("");
    for (const auto& text : {s.upsert.text, s.insert.text, s.update.text, s.find.text,
                             s.find_first.text, s.find_after.text, s.erase.text, s.expire.text})
      EXPECT_NE(text.find(expression), std::string::npos) << text;
    EXPECT_EQ(s.count.text.find("ZONE"), std::string::npos);
    EXPECT_EQ(s.erase.text,
              "DELETE FROM FAILOVER_STORE WHERE FAILOVER_NAME = $1 AND FAILOVER_KEY = $2 AND AS_OF "
              ">= ($3 " +
                  std::string(expression) + ") AND AS_OF < ($4 " + expression + ")");
  }
}

TEST(RealmStatements, EachRealmHasItsOwnTable) {
  fake_catalog catalog;
  catalog.with_zone = 2;
  realm_statements statements(postgresql, {.realms = {{"acme", "ACME_"}, {"best", "BEST_"}}},
                              catalog.execute());
  EXPECT_EQ(statements.for_realm("acme").table, "ACME_FAILOVER_STORE");
  EXPECT_EQ(statements.for_realm("best").table, "BEST_FAILOVER_STORE");
  EXPECT_EQ(catalog.queries, 2);
  EXPECT_EQ(statements.realms(), (std::vector<std::string>{"acme", "best"}));
  EXPECT_EQ(code_of([&] { (void)statements.for_realm(""); }), errc::invalid_argument);
}

TEST(RealmStatements, AServerWithoutCatalogIsAssumedToHaveZonesAndFailuresPass) {
  fake_catalog catalog;
  catalog.failure = error(errc::unavailable, "down", {.transient = true});
  realm_statements statements(postgresql, {}, catalog.execute());
  EXPECT_EQ(code_of([&] { (void)statements.for_realm(""); }), errc::unavailable);
  catalog.failure = error(errc::grammar, "what is to_regclass?");
  EXPECT_EQ(&statements.for_realm(""), &statements.any_realm());
  catalog.failure.reset();
  catalog.without_zone = 2;
  EXPECT_EQ(&statements.for_realm(""), &statements.any_realm());
}

TEST(RealmStatements, ManyThreadsMayUseIt) {
  fake_catalog catalog;
  catalog.without_zone = 2;
  realm_statements statements(postgresql, {.zone = "UTC"}, catalog.execute());
  std::vector<const store_statements*> seen(8);
  {
    std::vector<std::jthread> threads;
    for (auto& each : seen)
      threads.emplace_back([&statements, &each] { each = &statements.for_realm(""); });
  }
  for (const auto* each : seen) EXPECT_EQ(each, seen.front());
  EXPECT_NE(seen.front()->find.text.find("AT TIME ZONE 'UTC'"), std::string::npos);
}

}  // namespace
}  // namespace holdfast::test
