// One table, two languages: what Java writes is found, compared and removed rightly, and what we
// write Java finds, reads and removes.

#include <holdfast/database.hpp>
#include <holdfast/key/failover.hpp>
#include <holdfast/nlohmann.hpp>
#include <holdfast/payload.hpp>
#include <holdfast/store/write_behind.hpp>

#include "java/java_process.hpp"
#include "support/failure_of.hpp"
#include "support/postgres_server.hpp"
#include "support/shared_server.hpp"
#include "support/temporary_directory.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

namespace app {

struct country {
  std::string code;
  std::string name;
  std::optional<double> area{};
  std::vector<std::string> languages{};
  bool operator==(const country&) const = default;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(country, code, name, area, languages)

}  // namespace app

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

/// As Java's Instant prints it, and as it reads it, with nanoseconds added.
std::string instant(timestamp when, int nanoseconds = 0) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(when);
  const auto rest = std::chrono::nanoseconds(when - seconds).count() + nanoseconds;
  const auto day = std::chrono::floor<std::chrono::days>(seconds);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss time(seconds - day);
  char text[64];
  (void)std::snprintf(text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02d.%09ldZ",
                      static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                      static_cast<unsigned>(date.day()), static_cast<int>(time.hours().count()),
                      static_cast<int>(time.minutes().count()),
                      static_cast<int>(time.seconds().count()), rest);
  return text;
}

/// Java leaves out zeros at the end, three at a time.
std::string printed(timestamp when) {
  std::string text = instant(when);
  for (int i = 0; i < 3 && text.ends_with("000Z"); ++i) text.replace(text.size() - 4, 3, "");
  if (text.ends_with(".Z")) text.replace(text.size() - 2, 1, "");
  return text;
}

const app::country france{"FR", "France é", 551'695.5, {"fr", "br"}};
const std::string france_in_java = "FR|France é|551695.5|[fr, br]";

class JavaPeer : public ::testing::Test {
 protected:
  JavaPeer() {
    types.add<app::country>("com.acme.Country");
    types.add_java_list<std::vector<app::country>>();
  }

  /// The table as it is published; PostgreSQL makes microseconds of TIMESTAMP(9).
  void create_published(const std::string& prefix = "",
                        const std::string& time = "TIMESTAMP(9) WITH TIME ZONE") const {
    server.run("CREATE TABLE " + prefix +
                   "FAILOVER_STORE (FAILOVER_NAME VARCHAR(50) NOT NULL, FAILOVER_KEY VARCHAR(256) "
                   "NOT NULL, AS_OF " +
                   time + " NOT NULL, EXPIRE_ON " + time +
                   " NOT NULL, PAYLOAD VARCHAR(4000), PAYLOAD_CLASS VARCHAR(256), PRIMARY KEY "
                   "(FAILOVER_NAME, FAILOVER_KEY)); CREATE INDEX "
                   "IDX_" +
                   prefix + "FAILOVER_STORE_EXPIRE_ON ON " + prefix +
                   "FAILOVER_STORE (EXPIRE_ON); ALTER TABLE " + prefix +
                   "FAILOVER_STORE OWNER TO holdfast",
               name);
  }

  [[nodiscard]] std::shared_ptr<store> shared(store_options options = {}) const {
    options.peer = peer::java;
    return open(server.url(name)).store(std::move(options));
  }
  [[nodiscard]] entry make(const std::string& code, timestamp as_of) const {
    return {.name = "country",
            .key = keys(code),
            .as_of = as_of,
            .expire_on = as_of + 1h,
            .payload = encode_payload(france),
            .payload_class = types.name_of<app::country>()};
  }
  /// What Java is asked to write.
  [[nodiscard]] json row(const std::string& op, const std::string& code, timestamp as_of,
                         int nanoseconds = 0) const {
    return {{"op", op},
            {"name", "country"},
            {"key", keys(code)},
            {"as_of", instant(as_of, nanoseconds)},
            {"as", "country"},
            {"payload", france},
            {"expire_on", instant(as_of + 1h, nanoseconds)}};
  }
  [[nodiscard]] json found(java_process& java, const std::string& code,
                           const std::string& prefix = "") const {
    return java.ask(
        {{"op", "find"}, {"prefix", prefix}, {"name", "country"}, {"key", keys(code)}})["found"];
  }

  const postgres_endpoint& server = shared_server<postgres_server>();
  std::string name = server.create_database("java");
  payload_registry types;
  key::failover_keys keys{{.name = "country"}, {.style = key::style::exact}};
  timestamp now = std::chrono::floor<std::chrono::seconds>(system_clock()->now());
};

TEST_F(JavaPeer, WhatJavaWritesIsFoundComparedErasedAndExpired) {
  create_published();
  const auto store = shared();
  java_process java(server.port(), name, "Asia/Kolkata");

  // Nanoseconds: JDBC rounds them to PostgreSQL's microseconds.
  const timestamp moment = now + 123'456us;
  EXPECT_EQ(java.ask(row("merge", "FR", moment, 789))["rows"], 1);
  auto read = store->find("country", keys("FR"));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->as_of, moment + 1us) << "rounded up, by JDBC";
  EXPECT_EQ(read->expire_on, moment + 1h + 1us);
  EXPECT_EQ(read->payload_class, "com.acme.Country");
  types.allowlist_of<app::country>().check(read->payload_class);
  EXPECT_EQ(decode_payload<app::country>(*read->payload), france);
  EXPECT_EQ(store->count("country"), 1U);
  EXPECT_EQ(store->find_all("country", 10).entries, std::vector{*read});

  // Newer wins, against Java's row too.
  auto ours = make("FR", moment);
  ours.expire_on = moment + 2h;
  ours.payload = R"({"code":"FR"})";
  store->put(ours);
  EXPECT_EQ(store->find("country", keys("FR"))->payload, read->payload) << "a microsecond older";
  ours.as_of = moment + 1us;
  store->put(ours);
  EXPECT_EQ(store->find("country", keys("FR"))->payload, ours.payload)
      << "the same: the later arrival stays";
  EXPECT_EQ(java.ask(row("update", "FR", moment + 1s, 1))["rows"], 1);
  ours.as_of = moment + 2s;
  store->put(ours);
  EXPECT_EQ(store->find("country", keys("FR"))->as_of, moment + 2s) << "newer";

  // A version is erased, and no other.
  EXPECT_EQ(java.ask(row("insert", "DE", moment, 499))["rows"], 1);
  const auto version = store->find("country", keys("DE"))->as_of;
  EXPECT_EQ(version, moment) << "rounded down";
  EXPECT_FALSE(store->erase("country", keys("DE"), version - 1us));
  EXPECT_FALSE(store->erase("country", keys("DE"), version + 1us));
  EXPECT_TRUE(store->erase("country", keys("DE"), version));
  EXPECT_TRUE(found(java, "DE").empty());

  // At its last moment it is still there.
  EXPECT_EQ(java.ask(row("merge", "IT", moment, 0))["rows"], 1);
  EXPECT_EQ(store->expire(moment + 1h, 10), 0U);
  EXPECT_EQ(store->expire(moment + 1h + 1us, 10), 1U);
  EXPECT_FALSE(store->find("country", keys("IT")));

  // Null is nothing to Java and a tombstone to us.
  auto nothing = row("merge", "XX", moment);
  nothing.erase("as");
  java.ask(nothing);
  EXPECT_TRUE(store->find("country", keys("XX"))->tombstone());
}

TEST_F(JavaPeer, ListsThatJavaWritesAreReadWithTheirElements) {
  create_published();
  const auto store = shared();
  java_process java(server.port(), name, "UTC");
  for (const char* kind : {"list.of", "array list"}) {
    auto list = row("merge", kind, now);
    list["as"] = kind;
    list["payload"] = {france, app::country{"DE", "Germany"}};
    java.ask(list);
    const auto read = store->find("country", keys(kind));
    types.allowlist_of<std::vector<app::country>>().check(read->payload_class);
    EXPECT_EQ(
        failure_of([&] { types.allowlist_of<app::country>().check(read->payload_class); }).code(),
        errc::permission);
    auto wanted = app::country{"DE", "Germany"};
    EXPECT_EQ(decode_payload<std::vector<app::country>>(*read->payload),
              (std::vector{france, wanted}))
        << read->payload_class;
  }
  EXPECT_EQ(store->find("country", keys("list.of"))->payload_class,
            "java.util.ImmutableCollections$List12");
}

TEST_F(JavaPeer, WhatWeWriteJavaFindsReadsAndRemoves) {
  const auto store = shared({.create_schema = true});
  java_process java(server.port(), name, "America/St_Johns");
  const timestamp moment = now + 654'321us;
  store->put(make("FR", moment));
  auto seen = found(java, "FR");
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0]["as_of"], printed(moment));
  EXPECT_EQ(seen[0]["expire_on"], printed(moment + 1h));
  EXPECT_EQ(seen[0]["class"], "com.acme.Country");
  EXPECT_EQ(seen[0]["payload"], france_in_java);

  // A tombstone is a row without a payload: Java's answer is null.
  entry gone = make("XX", moment);
  gone.payload.reset();
  store->put(gone);
  seen = found(java, "XX");
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_TRUE(seen[0]["payload"].is_null());

  // Lists: ArrayList, whose elements Java forgets (as it does with its own), and arrays, whose
  // elements it knows.
  entry list = make("list", moment);
  list.payload = encode_payload(std::vector{france});
  list.payload_class = types.name_of<std::vector<app::country>>();
  store->put(list);
  seen = found(java, "list");
  EXPECT_EQ(seen[0]["class"], "java.util.ArrayList");
  EXPECT_NE(seen[0]["payload"].get<std::string>().find("code=FR"), std::string::npos)
      << "a map: " << seen[0]["payload"];
  entry array = make("array", moment);
  array.payload = list.payload;
  array.payload_class = "[Lcom.acme.Country;";
  store->put(array);
  seen = found(java, "array");
  EXPECT_EQ(seen[0]["payload"], "[" + france_in_java + "]");

  // An end that never comes.
  entry forever = make("forever", moment);
  forever.expire_on = timestamp::max();
  store->put(forever);
  EXPECT_GT(found(java, "forever")[0]["expire_on"].get<std::string>(), "+2")
      << "a year with more than four digits";

  EXPECT_EQ(java.ask({{"op", "find_all"}, {"name", "country"}})["found"].size(), 5U)
      << "all of it can be read";

  EXPECT_EQ(java.ask({{"op", "delete"}, {"name", "country"}, {"key", keys("FR")}})["rows"], 1);
  EXPECT_FALSE(store->find("country", keys("FR")));
  EXPECT_EQ(java.ask({{"op", "clean_up"}, {"before", instant(moment + 1h)}})["rows"], 0)
      << "at their last moment they are still there";
  EXPECT_EQ(java.ask({{"op", "clean_up"}, {"before", instant(moment + 1h + 1us)}})["rows"], 3);
  EXPECT_EQ(store->count("country"), 1U) << "the one without an end";
}

TEST_F(JavaPeer, KeysAreTheSame) {
  java_process java(server.port(), name, "UTC");
  const auto same = [&](const std::string& point, const std::string& domain, const json& arguments,
                        const auto&... ours) {
    const key::failover_keys made({.name = point, .domain = domain}, {.style = key::style::exact});
    const auto theirs =
        java.ask({{"op", "key"}, {"name", point}, {"domain", domain}, {"args", arguments}});
    EXPECT_EQ(made.raw(ours...), theirs["raw"].get<std::string>());
    EXPECT_EQ(made(ours...), theirs["key"].get<std::string>()) << arguments;
  };
  same("country-by-code", "", json::array());
  same("country-by-code", "", {"FR"}, "FR");
  same("country-by-code", "country", {"FR"}, "FR");
  same("country-by-code", "  ", {"FR"}, "FR");
  same("country-by-code", "", {"a:b", "c"}, "a:b", "c");
  same("country-by-code", "", {"x", nullptr, "y"}, "x", nullptr, "y");
  same("country-by-code", "", {1, -7, 2147483648LL, true}, 1, -7, 2147483648LL, true);
  same("country-by-code", "", {1e7, 0.1, 1.0, 9.99e-4}, 1e7, 0.1, 1.0, 9.99e-4);
  same("country-by-code", "", {json::array({1, 2, 3}), json::array()}, std::vector{1, 2, 3},
       std::vector<int>{});
  same("country-by-code", "",
       json::array({json::array({json::array({"a", "b"}), json::array({"c"})})}),
       std::vector<std::vector<std::string>>{{"a", "b"}, {"c"}});
  same("Société Générale", "", {"Zürich", "東京", "😀"}, "Zürich", "東京", "😀");
}

TEST_F(JavaPeer, TimesWithAZoneAreTheSameMomentEverywhere) {
  create_published();
  const auto store = shared();
  java_process east(server.port(), name, "Asia/Kolkata");
  java_process west(server.port(), name, "America/St_Johns");
  const timestamp moment = now + 5us;
  east.ask(row("merge", "FR", moment));
  EXPECT_EQ(found(west, "FR")[0]["as_of"], printed(moment));
  EXPECT_EQ(store->find("country", keys("FR"))->as_of, moment);
  store->put(make("DE", moment));
  for (auto* java : {&east, &west}) EXPECT_EQ(found(*java, "DE")[0]["as_of"], printed(moment));
}

TEST_F(JavaPeer, TimesWithoutAZoneWantOne) {
  create_published("", "TIMESTAMP(6)");
  java_process east(server.port(), name, "Asia/Kolkata");
  java_process west(server.port(), name, "UTC");
  const timestamp moment = now + 5us;
  east.ask(row("merge", "FR", moment));
  EXPECT_EQ(found(west, "FR")[0]["as_of"], printed(moment + 330min))
      << "even two Javas do not agree on it";

  // Refused, with what to do, before anything is written: when it is opened, and at the first use
  // by a store that did not look then.
  EXPECT_NE(failure_of([&] { (void)shared({.start = start_mode::require}); })
                .message()
                .find("store_options::zone"),
            std::string::npos);
  for (const auto& store : {shared({.probe = start_probe::off}),
                            open(server.url(name)).store({.probe = start_probe::off})}) {
    const auto e = failure_of([&] { store->put(make("DE", moment)); });
    EXPECT_EQ(e.code(), errc::missing_object) << e.what();
    EXPECT_NE(e.message().find("store_options::zone"), std::string::npos) << e.what();
    EXPECT_NE(e.message().find("ALTER TABLE FAILOVER_STORE ALTER COLUMN AS_OF TYPE TIMESTAMPTZ"),
              std::string::npos)
        << e.what();
    EXPECT_EQ(failure_of([&] { (void)store->find("country", keys("FR")); }).code(),
              errc::missing_object);
    EXPECT_EQ(failure_of([&] { (void)store->expire(now + 24h, 10); }).code(), errc::missing_object);
    EXPECT_FALSE(store->health().available);
  }
  EXPECT_EQ(server.run("SELECT count(*) FROM FAILOVER_STORE", name), "1\n");

  // With its zone everything is as it should be, by name and by offset.
  for (const char* zone : {"Asia/Kolkata", "+05:30"}) {
    const auto store = shared({.zone = zone});
    EXPECT_EQ(store->find("country", keys("FR"))->as_of, moment) << zone;
    EXPECT_EQ(store->find_all("country", 10).entries.at(0).expire_on, moment + 1h);
    auto ours = make("DE", moment);
    store->put(ours);
    EXPECT_EQ(found(east, "DE")[0]["as_of"], printed(moment));
    ours.as_of = moment - 1us;
    ours.payload = "{}";
    store->put(ours);
    EXPECT_NE(*store->find("country", keys("DE"))->payload, "{}") << "newer wins";
    ours.as_of = moment + 1us;
    store->put(ours);
    EXPECT_EQ(*store->find("country", keys("DE"))->payload, "{}");
    EXPECT_FALSE(store->erase("country", keys("DE"), moment));
    EXPECT_TRUE(store->erase("country", keys("DE"), moment + 1us));

    // A stamp from the future does not hold its key here either.
    east.ask(row("merge", "IT", moment + 1h));
    store->put(make("IT", moment));
    EXPECT_EQ(store->find("country", keys("IT"))->as_of, moment);
    EXPECT_EQ(store->expire(moment + 1h, 10), 0U);
    EXPECT_TRUE(store->erase("country", keys("IT"), moment));

    // Where the native statement is refused too.
    const auto plainly =
        shared({.zone = zone, .replace_query = [](store_query which, const std::string& standard) {
                  return which == store_query::upsert ? "UPSERT " + standard : standard;
                }});
    for (const auto as_of : {moment, moment - 1us, moment + 1us}) plainly->put(make("ES", as_of));
    EXPECT_EQ(found(east, "ES")[0]["as_of"], printed(moment + 1us));
    EXPECT_TRUE(plainly->erase("country", keys("ES"), moment + 1us));
  }
  EXPECT_EQ(shared({.zone = "Asia/Kolkata"})->expire(moment + 1h + 1us, 10), 1U);

  for (const char* unknown : {"Mars/Base", "UTC+2", "utc/"}) {
    const auto e = failure_of([&] { (void)shared({.zone = unknown})->find("country", "k"); });
    EXPECT_EQ(e.code(), errc::missing_object) << unknown;
    EXPECT_EQ(e.path(), "zone");
  }
  for (const char* bad : {"x'; DROP TABLE FAILOVER_STORE; --", "+5", "+0530", "05:30", "+25:00",
                          " UTC", "Asia\\Kolkata"})
    EXPECT_EQ(failure_of([&] { (void)shared({.zone = bad}); }).path(), "zone") << bad;
}

TEST_F(JavaPeer, AStatedZoneDoesNotMatterWhereTheColumnsHaveOne) {
  const auto store = shared({.create_schema = true, .zone = "Asia/Kolkata"});
  store->put(make("FR", now));
  EXPECT_EQ(store->find("country", keys("FR"))->as_of, now);
  server.run("ALTER TABLE FAILOVER_STORE ALTER COLUMN EXPIRE_ON TYPE TIMESTAMP", name);
  const auto e =
      failure_of([&] { (void)shared({.probe = start_probe::off})->find("country", keys("FR")); });
  EXPECT_NE(e.message().find("make both TIMESTAMPTZ"), std::string::npos) << e.what();
}

TEST_F(JavaPeer, ATableThatComesLaterIsLookedAtThen) {
  const auto store = shared();
  EXPECT_EQ(failure_of([&] { (void)store->find("country", keys("FR")); }).code(),
            errc::missing_object);
  create_published("", "TIMESTAMP");
  EXPECT_EQ(failure_of([&] { (void)store->find("country", keys("FR")); }).code(),
            errc::missing_object);
  server.run(
      "ALTER TABLE FAILOVER_STORE ALTER COLUMN AS_OF TYPE TIMESTAMPTZ USING AS_OF AT TIME ZONE "
      "'UTC', ALTER COLUMN EXPIRE_ON TYPE "
      "TIMESTAMPTZ USING EXPIRE_ON AT TIME ZONE 'UTC'",
      name);
  EXPECT_FALSE(store->find("country", keys("FR"))) << "what was advised helps, without a restart";
}

// What the documentation warns of: the guard is ours, not Java's.
TEST_F(JavaPeer, JavasOwnWritesDoNotKeepNewerWins) {
  create_published();
  const auto store = shared();
  java_process java(server.port(), name, "UTC");
  store->put(make("FR", now));
  java.ask(row("merge", "FR", now - 1s));
  EXPECT_EQ(store->find("country", keys("FR"))->as_of, now - 1s)
      << "Java put an older answer over a newer one";
  store->put(make("FR", now - 2s));
  EXPECT_EQ(store->find("country", keys("FR"))->as_of, now - 1s) << "we did not";
  java.ask({{"op", "delete"}, {"name", "country"}, {"key", keys("FR")}});
  store->put(make("FR", now - 2s));
  EXPECT_EQ(store->find("country", keys("FR"))->as_of, now - 2s)
      << "Java deletes instead of writing a tombstone: an older answer returned";
}

TEST_F(JavaPeer, WhatJavaCouldNotUseIsRefused) {
  const auto store = shared({.create_schema = true});
  EXPECT_EQ(store->peer(), peer::java);
  EXPECT_EQ(make_write_behind(store)->peer(), peer::java) << "a decorator says it too";
  const auto refused = [&](auto change) {
    auto bad = make("FR", now);
    change(bad);
    return failure_of([&] { store->put(bad); });
  };
  const key::failover_keys other({.name = "country"}, {.hash = key::row_hash::blake2b});
  for (const std::string& bad_key :
       {std::string("FR"), other("FR"), std::string("CD4502B1-D2D2-39EE-930F-13582AC674C1")}) {
    const auto e = refused([&](entry& one) { one.key = bad_key; });
    EXPECT_EQ(e.code(), errc::invalid_argument);
    EXPECT_NE(e.message().find("key::style::exact"), std::string::npos) << e.what();
  }
  for (const char* bad_class : {"", "com.acme.Country[]", "com..Country", ".Country", "Country.",
                                "1.X", "a b", "[", "[Lcom.acme.Country", "[X"}) {
    const auto e = refused([&](entry& one) { one.payload_class = bad_class; });
    EXPECT_EQ(e.code(), errc::invalid_argument) << bad_class;
    EXPECT_NE(e.message().find("com.acme.Country"), std::string::npos) << e.what();
  }
  EXPECT_EQ(store->count("country"), 0U);
  for (const char* good : {"com.acme.Country", "com.acme.Country$Region", "Country",
                           "[Lcom.acme.Country;", "[[I", "com.société.Pays"}) {
    auto fine = make("FR", now);
    fine.payload_class = good;
    EXPECT_NO_THROW(store->put(fine)) << good;
  }

  EXPECT_EQ(failure_of([&] { (void)shared({.payload = payload_column::bytes}); }).path(), "peer");
  temporary_directory directory;
  EXPECT_EQ(
      failure_of([&] {
        (void)open("sqlite://" + (directory.path() / "x.db").string()).store({.peer = peer::java});
      }).path(),
      "peer");
  EXPECT_EQ(failure_of([&] { (void)open("memory:").store({.peer = peer::java}); }).path(), "peer");
  EXPECT_EQ(open("memory:").store()->peer(), peer::none);
}

}  // namespace
}  // namespace holdfast::test
