// The outbox on SQL, in tables that hold what they should not: damaged entries, too many rows,
// missing rights and columns, wrong names.

#include <holdfast/database.hpp>
#include <holdfast/outbox.hpp>
#include <holdfast/outbox/sql.hpp>

#include "fault/outbox_sql_places.hpp"
#include "support/eventually.hpp"
#include "support/failure_of.hpp"
#include "support/hostile_entries.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

template <class Place>
class OutboxSqlTables : public OnSqlDatabase<Place> {};
TYPED_TEST_SUITE(OutboxSqlTables, sql_places);

/// More than one step forgets, all the same.
TYPED_TEST(OutboxSqlTables, WhatIsRememberedTooMuchIsForgotten) {
  const auto box =
      open(this->url).outbox({.prefix = prefix, .dedup_limit = 100, .create_schema = true});
  (void)box.admin().stats();  // creates the tables
  typename TestFixture::handle mine(this->url);
  const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(
                       std::chrono::system_clock::now().time_since_epoch())
                       .count();
  std::string rows = "INSERT INTO fault_OUTBOX (LANE, ID, EVENT_KEY, PLACE, AT) VALUES ";
  for (int i = 0; i < 3500; ++i)
    rows.append(i == 0 ? "" : ", ")
        .append("(0, 'old")
        .append(std::to_string(i))
        .append("', '', 4, ")
        .append(std::to_string(now + i % 500)) += ')';
  mine.run(rows);
  EXPECT_EQ(box.admin().stats().remembered, 3500U);
  for (int i = 0; i < 10; ++i) (void)box.publish({.type = "t"});
  const auto got = box.claim();
  std::vector<settlement> what;
  for (const auto& one : got.events) what.push_back({.id = one.event.id, .key = one.event.key});
  EXPECT_EQ(box.settle(0, got.fence, what).done, std::vector<bool>(10, true));
  EXPECT_GE(box.admin().stats().remembered, 100U);
  EXPECT_LE(box.admin().stats().remembered, 120U) << "some of the same moment";
}

/// Nobody delivers, and there is a quota: publishing does not get slower for it.
TYPED_TEST(OutboxSqlTables, TalliesStayFew) {
  const auto box = open(this->url).outbox(
      {.prefix = prefix, .quota = {.events = 100'000}, .create_schema = true});
  (void)box.admin().stats();  // creates the tables
  typename TestFixture::handle mine(this->url);
  std::string rows =
      "INSERT INTO fault_OUTBOX_TALLY (LANE, EVENTS, BYTES, TICKETS, PUBLISHED, DUPLICATES, "
      "CLAIMS, ACKED, RETRIED, PARKINGS, STALE, "
      "FIRED, "
      "ORPHANS) VALUES ";
  for (int i = 0; i < 4500; ++i)
    rows.append(i == 0 ? "" : ", ").append("(0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0)");
  mine.run(rows);
  for (int i = 0; i < 130; ++i) (void)box.publish({.type = "t"});
  EXPECT_LT(numbers(mine, "SELECT COUNT(*) FROM fault_OUTBOX_TALLY").at(0), 100);
  EXPECT_EQ(box.admin().stats().published, 130U);
  EXPECT_EQ(box.admin().stats().events, 130U);
  EXPECT_EQ(box.admin().stats().duplicates, 4500U);
}

/// The counters are compared with what is there while somebody publishes: neither a false alarm,
/// nor a wrong repair.
TYPED_TEST(OutboxSqlTables, ACheckSeesCountersAndEventsOfOneMoment) {
  const auto database = open(this->url);
  const auto box = database.outbox({.prefix = prefix, .create_schema = true});
  std::atomic<bool> over{false};
  {
    // A check reads all events, so there must not be too many.
    const std::jthread publisher([&] {
      for (int i = 0; i < 1'000 && !over; ++i) (void)box.publish({.type = "t", .payload = "12345"});
    });
    for (int i = 0; i < 40; ++i) {
      const auto seen = box.admin().check(i % 2 == 0);
      EXPECT_EQ(seen.bytes_off, 0) << i;
      if (seen.bytes_off != 0) break;
    }
    over = true;
  }
  EXPECT_TRUE(box.admin().check().well());
  EXPECT_EQ(box.admin().stats().events, payloads(box).size());
}

/// Damaged, or written by a later version: it is kept aside with the reason, and the others are
/// delivered.
TYPED_TEST(OutboxSqlTables, AnUnreadableEntryIsParked) {
  const auto box = box_of(this->url, true);
  std::vector<event> events;
  for (const char* key : {"", "k", "k", "", "m", "m", "m"})
    events.push_back({.type = "t", .key = key, .id = new_event_id()});
  (void)box.publish_all(events);
  typename TestFixture::handle mine(this->url);
  mine.run(
      "UPDATE fault_OUTBOX_ENTRY SET ENTRY = REPLACE(ENTRY, '\"v\":1', '\"v\":2') WHERE ID = '" +
      events[1].id + "'");
  for (const std::size_t bad : {3U, 5U})
    mine.run("UPDATE fault_OUTBOX_ENTRY SET ENTRY = '{' WHERE ID = '" + events[bad].id + "'");
  std::set<std::string> delivered;
  for (int i = 0; i < 8; ++i) {
    const auto got = box.claim({.run = 5});
    for (const auto& one : got.events) {
      if (box.ack(got.fence, one)) delivered.insert(one.event.id);
    }
  }
  EXPECT_EQ(delivered,
            (std::set<std::string>{events[0].id, events[2].id, events[4].id, events[6].id}));
  EXPECT_EQ(box.admin().stats().parkings, 3U);
  const auto parked = box.admin().scan(scan_what::parked, "", 10).records;
  ASSERT_EQ(parked.size(), 3U);
  for (const auto& one : parked)
    EXPECT_NE(one.details.last_error.find("cannot be read"), std::string::npos)
        << one.details.last_error;
  EXPECT_EQ(box.find(events[1].id)->details.event.key, "k");
  EXPECT_TRUE(box.admin().check().well());
  EXPECT_EQ(box.admin().discard(std::vector<std::string>{events[1].id, events[3].id, events[5].id}),
            3U);
  EXPECT_EQ(box.admin().stats().events, 0U);
  // What its key does is the policy for poison.
  const auto careful = open(this->url).outbox({.prefix = prefix, .poison = park_policy::block});
  const auto bad = careful.publish({.type = "t", .key = "k"}).id;
  (void)careful.publish({.type = "t", .key = "k"});
  mine.run("UPDATE fault_OUTBOX_ENTRY SET ENTRY = '' WHERE ID = '" + bad + "'");
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(careful.claim({.run = 5}).events.empty());
  EXPECT_EQ(careful.find(bad)->state, event_state::blocking);
}

/// Entries that publish would refuse, written by another program: parked with the reason, and the
/// lane goes on.
TYPED_TEST(OutboxSqlTables, AnEntryThatPublishWouldRefuseIsParked) {
  const auto box = box_of(this->url, true);
  typename TestFixture::handle mine(this->url);
  const auto count = hostile_entries("").size();
  for (std::size_t i = 0; i < count; ++i) {
    const auto bad = box.publish({.type = "t", .key = "k"}).id;
    const auto good = box.publish({.type = "t", .key = "k"}).id;
    const auto [reason, entry] = hostile_entries(bad)[i];
    SCOPED_TRACE(reason);
    std::string quoted = entry;
    if (std::string_view(TypeParam::name) == "mysql") {
      for (std::size_t at = 0; (at = quoted.find('\\', at)) != std::string::npos; at += 2)
        quoted.insert(at, 1, '\\');
    }
    mine.run("UPDATE fault_OUTBOX_ENTRY SET ENTRY = '" + quoted + "' WHERE ID = '" + bad + "'");
    std::vector<std::string> delivered;
    for (int round = 0; round < 4; ++round) {
      const auto claimed = box.claim({.run = 5});
      for (const auto& one : claimed.events) {
        if (box.ack(claimed.fence, one)) delivered.push_back(one.event.id);
      }
    }
    EXPECT_EQ(delivered, std::vector<std::string>{good});
    const auto parked = box.find(bad);
    ASSERT_TRUE(parked);
    EXPECT_EQ(parked->state, event_state::parked);
    EXPECT_NE(parked->details.last_error.find(reason), std::string::npos)
        << parked->details.last_error;
    EXPECT_EQ(box.admin().discard(std::vector<std::string>{bad}), 1U);
  }
  EXPECT_TRUE(box.admin().check().well());
}

/// Such rows are not counted when they are inserted, but when they are delivered. A repair
/// recounts.
TYPED_TEST(OutboxSqlTables, RowsThatWereInsertedByHandLeaveNoWrongCounters) {
  const auto box =
      open(this->url).outbox({.prefix = prefix, .quota = {.events = 3}, .create_schema = true});
  (void)box.admin().stats();  // creates the tables
  typename TestFixture::handle mine(this->url);
  for (int i = 0; i < 3; ++i) {
    const auto id = new_event_id();
    mine.run(
        "INSERT INTO fault_OUTBOX (LANE, ID, EVENT_KEY, QUEUE, DUE, AT, BYTES, CREATED, "
        "DELIVERIES) VALUES (0, '" +
        id + "', 'k', 'k', 1, 1, 0, 1, -7)");
    mine.run("INSERT INTO fault_OUTBOX_ENTRY (ID, ENTRY) VALUES ('" + id + "', '" +
             entry_of_size(id, 10) + "')");
  }
  for (int i = 0; i < 3; ++i) {
    const auto claimed = box.claim({.run = 1});
    ASSERT_EQ(claimed.events.size(), 1U);
    EXPECT_EQ(claimed.events[0].deliveries, 1U);
    EXPECT_TRUE(box.ack(claimed.fence, claimed.events[0]));
  }
  EXPECT_EQ(box.admin().stats().events, 0U);
  EXPECT_EQ(box.admin().check().bad_fields, 1U) << "the count of events is -3";
  EXPECT_FALSE(box.admin().check().well());
  mine.run(
      "INSERT INTO fault_OUTBOX_TALLY (LANE, EVENTS, BYTES, TICKETS, PUBLISHED, DUPLICATES, "
      "CLAIMS, ACKED, RETRIED, PARKINGS, STALE, FIRED, ORPHANS) "
      "VALUES (0, 0, 0, -5, -9, 0, 0, 0, 0, 0, 0, 0, 0)");
  EXPECT_EQ(box.admin().check(true).bad_fields, 3U);
  EXPECT_TRUE(box.admin().check().well());
  for (int i = 0; i < 3; ++i) (void)box.publish({.type = "t"});
  EXPECT_EQ(box.admin().stats().events, 3U);
  EXPECT_EQ(box.admin().stats().published, 3U);
  EXPECT_THROW((void)box.publish({.type = "t"}), error) << "the quota counts right";
}

/// The limit is that of the outbox that delivers: with the limit of the publisher the event is
/// delivered.
TYPED_TEST(OutboxSqlTables, APayloadAboveTheLimitIsParked) {
  const auto box = box_of(this->url, true);
  typename TestFixture::handle mine(this->url);
  const auto write = [&](const std::string& id, std::size_t size) {
    mine.run("UPDATE fault_OUTBOX_ENTRY SET ENTRY = '" + entry_of_size(id, size) +
             "' WHERE ID = '" + id + "'");
  };
  const auto bad = box.publish({.type = "t", .key = "k"}).id;
  const auto good = box.publish({.type = "t", .key = "k"}).id;
  write(bad, 262'145);
  write(good, 262'144);
  std::vector<std::string> delivered;
  for (int round = 0; round < 4; ++round) {
    const auto claimed = box.claim({.run = 5});
    for (const auto& event : claimed.events) {
      if (box.ack(claimed.fence, event)) delivered.push_back(event.event.id);
    }
  }
  EXPECT_EQ(delivered, std::vector<std::string>{good});
  EXPECT_EQ(box.find(bad)->state, event_state::parked);
  EXPECT_NE(box.find(bad)->details.last_error.find("larger than the limit of 262144"),
            std::string::npos);
  EXPECT_EQ(box.admin().replay(std::vector<std::string>{bad}), 1U);
  const auto roomy =
      open(this->url).outbox({.prefix = prefix, .inline_limit = std::size_t{1} << 20U});
  const auto claimed = roomy.claim();
  ASSERT_EQ(claimed.events.size(), 1U);
  EXPECT_EQ(claimed.events[0].event.payload.size(), 262'145U);
  EXPECT_TRUE(roomy.ack(claimed.fence, claimed.events[0]));
}

/// The first event of a key has nothing to deliver, and those behind it are found by the same
/// claim.
TYPED_TEST(OutboxSqlTables, AMissingEntryHoldsUpNoKey) {
  const auto box = box_of(this->url, true);
  std::vector<event> events;
  for (int i = 0; i < 4; ++i)
    events.push_back({.type = "t", .key = "k", .payload = std::to_string(i), .id = new_event_id()});
  (void)box.publish_all(events);
  typename TestFixture::handle mine(this->url);
  mine.run("DELETE FROM fault_OUTBOX_ENTRY WHERE ID = '" + events[0].id + "'");
  std::string delivered;
  for (int i = 0; i < 5; ++i) {
    const auto got = box.claim();
    for (const auto& one : got.events) {
      if (box.ack(got.fence, one)) delivered += one.event.payload;
    }
  }
  EXPECT_EQ(delivered, "123");
  EXPECT_EQ(box.admin().stats().orphans, 1U);
  EXPECT_TRUE(box.admin().check().well());
}

/// A claim removes rows without an entry and goes on with the events after them.
TYPED_TEST(OutboxSqlTables, AClaimGoesOnAfterRowsWithoutAnEntry) {
  const auto box = box_of(this->url, true);
  std::vector<event> events;
  for (int i = 0; i < 5; ++i) events.push_back({.type = "t", .id = new_event_id()});
  (void)box.publish_all(events);
  std::ranges::sort(events, {}, &event::id);  // they are due at the same time
  typename TestFixture::handle mine(this->url);
  mine.run("DELETE FROM fault_OUTBOX_ENTRY WHERE ID <> '" + events.back().id + "'");
  const auto got = box.claim({.most = 2});
  ASSERT_EQ(got.events.size(), 1U);
  EXPECT_EQ(got.events[0].event.id, events.back().id);
  EXPECT_EQ(box.admin().stats().orphans, 4U);
}

/// The clock of the database went back, and a claim takes more than one look: all that it gives out
/// has one token.
TYPED_TEST(OutboxSqlTables, AClaimHasOneTokenWhateverTheClockDid) {
  const auto box = box_of(this->url, true);
  (void)box.publish_all(std::vector<event>{{.type = "t", .key = "a", .payload = "1"},
                                           {.type = "t", .key = "a", .payload = "2"}});
  std::this_thread::sleep_for(2ms);  // those are due before it
  const auto later = box.publish({.type = "t", .key = "b", .payload = "3"}).id;
  typename TestFixture::handle mine(this->url);
  mine.run("UPDATE fault_OUTBOX SET TOKEN = 4000000000000000 WHERE ID = '" + later + "'");
  std::string delivered;
  for (int i = 0; i < 5; ++i) {
    const auto got = box.claim({.most = 2});
    for (const auto& one : got.events) {
      EXPECT_TRUE(box.ack(got.fence, one)) << one.event.payload;
      delivered += one.event.payload;
    }
  }
  EXPECT_EQ(delivered.size(), 3U) << delivered;
  EXPECT_TRUE(box.admin().check().well());
}

/// So does a ticket: it fires, and becomes an event that is parked.
TYPED_TEST(OutboxSqlTables, AnUnreadableTicketBecomesAParkedEvent) {
  const auto box = box_of(this->url, true);
  for (const auto* ticket : {"bad", "worse", "fine"})
    (void)box.schedule(ticket, 1ms, {.type = "t", .key = "k", .payload = ticket});
  typename TestFixture::handle mine(this->url);
  mine.run("UPDATE fault_OUTBOX_TICKET SET BODY = '{{' WHERE TICKET = 'bad'");
  mine.run("UPDATE fault_OUTBOX_TICKET SET BODY = '' WHERE TICKET = 'worse'");
  std::map<std::string, outbox_record> seen;
  for (const auto& one : box.admin().scan(scan_what::tickets).records)
    seen.emplace(one.details.event.id, one);
  ASSERT_EQ(seen.size(), 3U);
  for (const auto* ticket : {"bad", "worse"}) {
    EXPECT_NE(seen.at(ticket).details.last_error.find("cannot be read"), std::string::npos)
        << seen.at(ticket).details.last_error;
    EXPECT_EQ(seen.at(ticket).details.event.key, "k");
  }
  EXPECT_EQ(seen.at("fine").details.event.payload, "fine");
  std::size_t fired = 0;
  EXPECT_TRUE(eventually([&] { return (fired += box.drain(0).tickets) == 3; }));
  std::vector<std::string> delivered;
  for (int i = 0; i < 6; ++i) {
    const auto got = box.claim();
    for (const auto& one : got.events) {
      delivered.push_back(one.event.payload);
      EXPECT_TRUE(box.ack(got.fence, one));
    }
  }
  EXPECT_EQ(delivered, std::vector<std::string>{"fine"});
  EXPECT_EQ(box.admin().stats().parked, 2U);
  EXPECT_TRUE(box.admin().check().well());
  // An entry that nothing leads to, and that cannot be read, stops no repair.
  mine.run("DELETE FROM fault_OUTBOX");
  EXPECT_EQ(box.admin().check(true).without_place, 2U);
  EXPECT_TRUE(box.admin().check().well());
  (void)box.claim();
  EXPECT_EQ(box.admin().stats().parked, 2U);
}

/// What went wrong, and what to do: in one line, and about an outbox.
TYPED_TEST(OutboxSqlTables, MistakesSayWhatToDo) {
  const auto told = [&](outbox_options options) {
    const auto problem =
        failure_of([&] { (void)open(this->url).outbox(std::move(options)).admin().stats(); });
    EXPECT_EQ(std::string(problem.what()).find('\n'), std::string::npos);
    EXPECT_EQ(std::string(problem.what()).find("store schema"), std::string::npos)
        << problem.what();
    return std::string(problem.what());
  };
  const auto missing = told({.prefix = "{absent}"});
  EXPECT_NE(missing.find("does not exist"), std::string::npos) << missing;
  const auto schema = missing.find("holdfast outbox schema --dialect ");
  EXPECT_NE(schema, std::string::npos) << missing;
  EXPECT_NE(missing.find(" --prefix '{absent}'", schema), std::string::npos) << missing;
  // What is refused leaves nothing behind.
  (void)told({.prefix = "absent", .create_schema = true});
  (void)told({.prefix = "{absent}", .lanes = 3, .create_schema = true});
  EXPECT_EQ(told({.prefix = "{absent}"}), missing);

  const auto box = box_of(this->url, true);
  EXPECT_NE(told({.prefix = prefix, .lanes = 4}).find("has 1 lane, not 4"), std::string::npos);
  typename TestFixture::handle mine(this->url);
  mine.run("ALTER TABLE fault_OUTBOX_LANE DROP COLUMN UNTIL");
  const auto other = told({.prefix = prefix});
  EXPECT_NE(other.find("was created by another version"), std::string::npos) << other;
  mine.run("DROP TABLE fault_OUTBOX_TALLY");
  EXPECT_NE(told({.prefix = prefix}).find("outbox schema"), std::string::npos);
  // Also when it happens to one that is open.
  mine.run("DROP TABLE fault_OUTBOX_LANE");
  EXPECT_NE(std::string(failure_of([&] { (void)box.claim(); }).what()).find("outbox schema"),
            std::string::npos);
}

/// Prefixes that differ only in case and punctuation name the same tables.
TYPED_TEST(OutboxSqlTables, OneOfAnotherPrefixIsNotOpened) {
  const auto database = open(this->url);
  const auto box = database.outbox({.prefix = "{a:b}", .lanes = 2, .create_schema = true});
  (void)box.publish({.type = "t"});
  for (const auto* other : {"{a_b}", "{A:B}", "{a.b}"}) {
    for (const auto& from : {database, open(this->url)}) {
      const auto problem = failure_of([&] {
        (void)from.outbox({.prefix = other, .lanes = 2, .create_schema = true}).admin().stats();
      });
      EXPECT_EQ(problem.code(), errc::invalid_argument) << other << ": " << problem.what();
      EXPECT_NE(std::string(problem.what()).find("'{a:b}'"), std::string::npos) << problem.what();
    }
  }
  EXPECT_EQ(open(this->url).outbox({.prefix = "{a:b}", .lanes = 2}).admin().stats().events, 1U);

  // One that an earlier version made keeps working, and belongs from then on to whoever opens it
  // first.
  typename TestFixture::handle mine(this->url);
  mine.run("DELETE FROM a_b_OUTBOX_LANE WHERE LANE < 0");
  EXPECT_EQ(open(this->url).outbox({.prefix = "{a_b}", .lanes = 2}).admin().stats().events, 1U);
  EXPECT_EQ(failure_of([&] {
              (void)open(this->url).outbox({.prefix = "{a:b}", .lanes = 2}).admin().stats();
            }).code(),
            errc::invalid_argument);
}

TEST(OutboxSqlRights, ThoseThatAreMissingAreNamed) {
  const auto& postgres = shared_server<postgres_server>();
  const auto pg = postgres.create_database("rights");
  (void)box_of(postgres.url(pg), true);
  postgres.run("ALTER TABLE fault_OUTBOX OWNER TO postgres", pg);
  const std::string from_postgres = failure_of([&] { (void)box_of(postgres.url(pg)); }).what();
  EXPECT_NE(from_postgres.find("needs SELECT, INSERT, UPDATE and DELETE on fault_OUTBOX"),
            std::string::npos)
      << from_postgres;

  const auto& mariadb = shared_server<mariadb_server>();
  const auto my = mariadb.create_database("rights");
  (void)box_of(mariadb.url(my), true);
  const auto name = "guest" + std::to_string(::getpid());
  const auto user = name + "@'127.0.0.1'";
  mariadb.run("CREATE USER " + user + " IDENTIFIED BY 'secret'", "mysql");
  mariadb.run("GRANT SELECT ON " + my + ".fault_OUTBOX_LANE TO " + user, "mysql");
  const std::string from_mariadb =
      failure_of([&] {
        (void)open(mariadb.url(my), {.user = name}).outbox({.prefix = prefix}).admin().stats();
      }).what();
  EXPECT_NE(from_mariadb.find("needs SELECT, INSERT, UPDATE and DELETE on fault_OUTBOX"),
            std::string::npos)
      << from_mariadb;
  mariadb.run("DROP USER " + user, "mysql");
}

TEST(OutboxSqlNames, APrefixIsItsHashTag) {
  using sql::dialect_id;
  EXPECT_THROW((void)outbox_schema(dialect_id::sqlite, "{shop}:orders"), error);
  EXPECT_THROW((void)outbox_schema(dialect_id::sqlite, "my{shop}"), error);
  EXPECT_EQ(outbox_schema(dialect_id::sqlite, "{Shop}"),
            outbox_schema(dialect_id::sqlite, "{shop}"));
  EXPECT_THROW((void)outbox_schema(dialect_id::mariadb, "{" + std::string(38, 'x') + "}"), error);
  const in_mariadb place;
  const auto box =
      open(place.url()).outbox({.prefix = "{" + std::string(37, 'X') + "}", .create_schema = true});
  EXPECT_EQ(box.publish({.type = "t"}).status, publish_status::added);
}

}  // namespace
}  // namespace holdfast::test
