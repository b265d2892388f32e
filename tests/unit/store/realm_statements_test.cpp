// What a store says to a table depends on the table's own columns, which are asked for once.

#include "store/realm_statements.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

/// A database whose table has so many columns without a zone, and so many with one.
struct columns {
  std::atomic<std::int64_t> without = 0;
  std::atomic<std::int64_t> with = 0;
  std::atomic<std::int64_t> zones = 1;  // that it knows by the name that is asked for
  std::atomic<int> asked = 0;
  std::optional<error> fails{};

  realm_statements::ask how() {
    return [this](const sql::statement& s, std::span<const sql::parameter>) {
      ++asked;
      if (fails) throw error(*fails);
      sql::outcome result{.rows = sql::rows(s.results.size())};
      result.rows.add(s.results.size() == 2 ? without.load() : zones.load());
      if (s.results.size() == 2) result.rows.add(with.load());
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

TEST(RealmStatements, AskOnceWhereTheColumnsHaveAZone) {
  columns table;
  realm_statements say(postgresql, {}, table.how());
  EXPECT_EQ(say.in("").find.text, say.shape().find.text);
  EXPECT_EQ(table.asked, 1) << "the table was not there";
  table.with = 2;
  for (int i = 0; i < 3; ++i) (void)say.in("");
  EXPECT_EQ(table.asked, 2);
  EXPECT_EQ(say.in("").find.text.find("AT TIME ZONE"), std::string::npos);
}

TEST(RealmStatements, OtherDatabasesAreNotAsked) {
  columns table;
  for (const auto dialect : {sql::dialect_id::sqlite, sql::dialect_id::mysql, sql::dialect_id::mariadb, sql::dialect_id::unknown}) {
    realm_statements say(dialect, {}, table.how());
    (void)say.in("");
    EXPECT_EQ(code_of([&] { const realm_statements refused(dialect, {.zone = "Europe/Paris"}, table.how()); }), errc::invalid_argument);
  }
  EXPECT_EQ(code_of([&] { const realm_statements refused(sql::dialect_id::sqlite, {.zone = "UTC"}, table.how()); }),
            errc::invalid_argument);
  // A DATETIME column has no zone; that it is UTC may be stated.
  for (const auto dialect : {sql::dialect_id::mysql, sql::dialect_id::mariadb}) {
    for (const auto* const zone : {"UTC", "+00:00"}) {
      realm_statements say(dialect, {.zone = zone}, table.how());
      EXPECT_EQ(say.in("").find.text, realm_statements(dialect, {}, table.how()).in("").find.text);
    }
  }
  EXPECT_EQ(table.asked, 0);
}

TEST(RealmStatements, AZoneStandsInEveryStatementThatHasATime) {
  columns table;
  table.without = 2;
  realm_statements refused(postgresql, {}, table.how());
  EXPECT_EQ(code_of([&] { (void)refused.in(""); }), errc::missing_object) << "the table's fault, not that of an entry";
  table.with = 1;
  EXPECT_EQ(code_of([&] { (void)refused.in(""); }), errc::missing_object) << "one of each";
  table.with = 0;
  table.zones = 0;
  realm_statements nowhere(postgresql, {.zone = "Europe/Nowhere"}, table.how());
  EXPECT_EQ(code_of([&] { (void)nowhere.in(""); }), errc::missing_object);
  table.zones = 1;
  for (const auto& [zone, words] :
       {std::pair("Europe/Paris", "AT TIME ZONE 'Europe/Paris'"), std::pair("-03:30", "AT TIME ZONE INTERVAL '-03:30'")}) {
    realm_statements say(postgresql, {.zone = zone}, table.how());
    const auto& s = say.in("");
    for (const auto& text :
         {s.upsert.text, s.insert.text, s.update.text, s.find.text, s.find_first.text, s.find_after.text, s.erase.text, s.expire.text})
      EXPECT_NE(text.find(words), std::string::npos) << text;
    EXPECT_EQ(s.count.text.find("ZONE"), std::string::npos);
    EXPECT_EQ(s.erase.text, "DELETE FROM FAILOVER_STORE WHERE FAILOVER_NAME = $1 AND FAILOVER_KEY = $2 AND AS_OF >= ($3 " +
                                std::string(words) + ") AND AS_OF < ($4 " + words + ")");
  }
}

TEST(RealmStatements, EachRealmHasItsOwnTable) {
  columns table;
  table.with = 2;
  realm_statements say(postgresql, {.realms = {{"acme", "ACME_"}, {"best", "BEST_"}}}, table.how());
  EXPECT_EQ(say.in("acme").table, "ACME_FAILOVER_STORE");
  EXPECT_EQ(say.in("best").table, "BEST_FAILOVER_STORE");
  EXPECT_EQ(table.asked, 2);
  EXPECT_EQ(say.realms(), (std::vector<std::string>{"acme", "best"}));
  EXPECT_EQ(code_of([&] { (void)say.in(""); }), errc::invalid_argument);
}

TEST(RealmStatements, WhoHasNoCatalogueIsTakenAtItsWordAndFaultsPass) {
  columns table;
  table.fails = error(errc::unavailable, "down", {.transient = true});
  realm_statements say(postgresql, {}, table.how());
  EXPECT_EQ(code_of([&] { (void)say.in(""); }), errc::unavailable);
  table.fails = error(errc::grammar, "what is to_regclass?");
  EXPECT_EQ(&say.in(""), &say.shape());
  table.fails.reset();
  table.without = 2;
  EXPECT_EQ(&say.in(""), &say.shape());
}

TEST(RealmStatements, ManyThreadsMayAskAtOnce) {
  columns table;
  table.without = 2;
  realm_statements say(postgresql, {.zone = "UTC"}, table.how());
  std::vector<const store_statements*> seen(8);
  {
    std::vector<std::jthread> threads;
    for (auto& each : seen) threads.emplace_back([&say, &each] { each = &say.in(""); });
  }
  for (const auto* each : seen) EXPECT_EQ(each, seen.front());
  EXPECT_NE(seen.front()->find.text.find("AT TIME ZONE 'UTC'"), std::string::npos);
}

}  // namespace
}  // namespace holdfast::test
