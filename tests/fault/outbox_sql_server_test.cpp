// The outbox on SQL servers that are set up in unusual ways, and claims that are delayed between
// two statements.

#include <holdfast/database.hpp>
#include <holdfast/outbox.hpp>

#include "fault/outbox_sql_places.hpp"
#include "support/eventually.hpp"
#include "support/hooked_connection.hpp"
#include "support/virtual_clock.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

template <class Place>
class OutboxSqlStuck : public OnSqlDatabase<Place> {};
TYPED_TEST_SUITE(OutboxSqlStuck, sql_places);

/// An outbox whose statements can be delayed.
struct delayed_outbox {
  explicit delayed_outbox(const std::string& url)
      : database(hooked_factory(url, hook), {}), box(database.outbox({.prefix = prefix})) {
    if (const auto problem = box.admin().health()) throw error(*problem);
  }

  std::shared_ptr<statement_hook> hook = std::make_shared<statement_hook>();
  holdfast::database database;
  outbox box;
};

std::vector<std::string> deliver_all(const outbox& box) {
  std::vector<std::string> delivered;
  while (true) {
    const auto claim = box.claim();
    if (claim.events.empty()) return delivered;
    for (const auto& each : claim.events) {
      if (box.ack(claim.fence, each)) delivered.push_back(each.event.payload);
    }
  }
}

/// A settlement sees the event that was published after it began, and promotes it.
template <class Place>
void expect_settlement_sees_later_events(const std::string& url) {
  const auto box = box_of(url, true);
  delayed_outbox delayed(url);
  (void)box.publish({.type = "t", .key = "k", .payload = "1"});
  const auto claim = box.claim();
  ASSERT_EQ(claim.events.size(), 1U);
  delayed.hook->arm("FOR UPDATE", [&] {
    (void)box.publish({.type = "t", .key = "k", .payload = "2"});
    EXPECT_TRUE(box.claim().events.empty());  // takes the time of the follower away
  });
  EXPECT_TRUE(delayed.box.ack(claim.fence, claim.events[0]));
  EXPECT_FALSE(delayed.hook->is_armed());
  EXPECT_EQ(deliver_all(box), std::vector<std::string>{"2"}) << Place::name;
  EXPECT_TRUE(box.admin().check().well());
}

TEST(OutboxSqlIsolation, OfTheDatabaseDoesNotStopAKey) {
  for (const std::string level : {"repeatable read", "serializable"}) {
    SCOPED_TRACE(level);
    const auto& server = shared_server<postgres_server>();
    const auto name = server.create_database("outbox");
    server.run("ALTER DATABASE " + name + " SET default_transaction_isolation = '" + level + "'");
    expect_settlement_sees_later_events<in_postgres>(server.url(name));
  }
  const in_mariadb place;
  expect_settlement_sees_later_events<in_mariadb>(place.url());
}

/// A claim that was delayed after it read the time gets a later fence than the claim that overtook
/// it: within a key, the fence of a later event is larger.
template <class Place>
void expect_fence_grows() {
  const Place place;
  const auto box = box_of(place.url(), true);
  delayed_outbox delayed(place.url());
  for (const auto* payload : {"1", "2", "3"})
    (void)box.publish({.type = "t", .key = "k", .payload = payload});
  fence first = 0;
  delayed.hook->arm("SKIP LOCKED", [&] {
    const auto claim = box.claim({.run = 1});
    ASSERT_EQ(claim.events.size(), 1U);
    first = claim.fence;
    EXPECT_TRUE(box.ack(claim.fence, claim.events[0]));
  });
  const auto second = delayed.box.claim({.run = 1});
  ASSERT_EQ(second.events.size(), 1U);
  EXPECT_EQ(second.events[0].event.payload, "2");
  EXPECT_GT(second.fence, first) << Place::name;
}

TEST(OutboxSqlFence, GrowsWithinAKeyWhenAClaimIsDelayed) {
  expect_fence_grows<in_postgres>();
  expect_fence_grows<in_mariadb>();
}

/// The clock of the database is set back by an hour: the fence of the next event of a key is larger
/// nevertheless.
template <class Place>
void expect_fence_outlives_the_clock() {
  const Place place;
  const auto box = box_of(place.url(), true);
  typename Place::handle client(place.url());
  std::vector<event> events;
  for (int i = 0; i < 3; ++i) events.push_back({.type = "t", .key = "k", .id = new_event_id()});
  (void)box.publish_all(events);
  // As if it was claimed an hour later.
  constexpr fence later = 4'000'000'000'000'000;
  client.run("UPDATE fault_OUTBOX SET TOKEN = " + std::to_string(later) + " WHERE ID = '" +
             events[0].id + "'");
  fence last = later;
  for (int i = 0; i < 3; ++i) {
    const auto claim = box.claim({.run = 1});
    ASSERT_EQ(claim.events.size(), 1U);
    EXPECT_GT(claim.fence, last) << Place::name << " event " << i;
    last = claim.fence;
    if (i == 1) {
      EXPECT_TRUE(box.fail(claim.fence, claim.events[0], 0ms, "again"));
      const auto again = box.claim({.run = 1});
      ASSERT_EQ(again.events.size(), 1U);
      EXPECT_GT(again.fence, last);
      last = again.fence;
      EXPECT_TRUE(box.ack(again.fence, again.events[0]));
    } else {
      EXPECT_TRUE(box.ack(claim.fence, claim.events[0]));
    }
  }
}

TEST(OutboxSqlFence, GrowsWithinAKeyWhenTheClockIsSetBack) {
  expect_fence_outlives_the_clock<in_sqlite>();
  expect_fence_outlives_the_clock<in_postgres>();
  expect_fence_outlives_the_clock<in_mariadb>();
}

/// Statements that were prepared while the tables were empty do not read every event later.
TEST(OutboxSqlPlans, OfEmptyTablesDoNotReadEveryEventLater) {
  const in_postgres place;
  postgres_handle client(place.url());
  constexpr std::int64_t burst = 20'000;
  {
    const auto database = open(place.url());
    const auto box = database.outbox({.prefix = prefix, .create_schema = true});
    const auto deliver_one = [&] {
      const auto claim = box.claim({.most = 3, .run = 2});
      ASSERT_FALSE(claim.events.empty());
      (void)box.extend(claim.fence, claim.events, 30s);
      std::vector<settlement> settlements;
      for (const auto& each : claim.events)
        settlements.push_back({.id = each.event.id, .key = each.event.key});
      (void)box.settle(0, claim.fence, settlements, run_request{.run = 2});
    };
    (void)box.publish({.type = "t", .key = "k"});
    client.run("VACUUM ANALYZE fault_OUTBOX");
    client.run("VACUUM ANALYZE fault_OUTBOX_ENTRY");
    for (int i = 0; i < 12; ++i) {  // PostgreSQL may keep a plan from the sixth execution on
      (void)box.publish_all(std::vector<event>{{.type = "t"}, {.type = "t", .key = "k"}});
      deliver_one();
    }
    std::vector<event> many;
    for (std::int64_t i = 0; i < burst; ++i)
      many.push_back({.type = "t", .key = i % 2 == 0 ? "" : "k" + std::to_string(i % 100)});
    (void)box.publish_all(many);
    for (int i = 0; i < 12; ++i) deliver_one();
  }
  // The statistics of a connection are complete when its process has ended.
  ASSERT_TRUE(eventually([&] {
    return numbers(client,
                   "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND "
                   "pid <> pg_backend_pid()")
               .at(0) == 0;
  }));
  const auto rows_read = numbers(
      client,
      "SELECT MAX(seq_tup_read) FROM pg_stat_user_tables WHERE relname LIKE 'fault_outbox%'");
  EXPECT_LT(rows_read.at(0), burst);
}

/// Claims and settlements find the rows of their events by an index, however many ids the lane
/// remembers, and however many events wait.
TEST(OutboxSqlPlans, OnMariaDbDoNotReadTheWholeLane) {
  const in_mariadb place;
  const auto& server = shared_server<mariadb_server>();
  server.run("SET GLOBAL userstat = 1");
  const auto box = box_of(place.url(), true);
  const auto publish = [&](std::size_t count) {
    (void)box.publish_all(std::vector<event>(count, {.type = "t"}));
  };
  const auto deliver = [&](std::size_t count, std::size_t most) {
    for (std::size_t delivered = 0; delivered < count;) {
      const auto claim = box.claim({.most = most, .run = 10});
      ASSERT_FALSE(claim.events.empty());
      std::vector<settlement> settlements;
      for (const auto& each : claim.events)
        settlements.push_back({.id = each.event.id, .key = each.event.key});
      (void)box.settle(0, claim.fence, settlements);
      delivered += settlements.size();
    }
  };
  const auto schema = place.url().substr(place.url().rfind('/') + 1);
  const auto rows_read = [&] {
    return std::stoll(
        server.run("SELECT SUM(ROWS_READ) FROM information_schema.TABLE_STATISTICS "
                   "WHERE TABLE_SCHEMA = '" +
                   schema + "'"));
  };
  publish(1000);
  deliver(1000, 100);
  publish(2000);
  const auto before = rows_read();
  deliver(200, 5);
  // To read the waiting events once in each of 40 claims would be 80,000 rows, and to read the
  // remembered ids once for each event 200,000.
  EXPECT_LT(rows_read() - before, 30'000);
}

/// The clock of the database was an hour ahead when the events were published, and is right again:
/// those without a delay are due.
template <class Place>
void expect_no_delay_after_the_clock_was_ahead() {
  const Place place;
  std::vector<event> events;
  for (const auto* key : {"", "k", "k", "k", ""})
    events.push_back({.type = "t", .key = key, .id = new_event_id()});
  events.back().delay = 1ms;
  {
    const auto box = box_of(place.url(), true);
    (void)box.publish_all(events);
    (void)box.publish({.type = "t", .delay = 1h});
    typename Place::handle client(place.url());
    client.run(
        "UPDATE fault_OUTBOX SET DUE = DUE + 3600000, AT = AT + 3600000, CREATED = CREATED + "
        "3600000");
  }
  const auto box = box_of(place.url());  // a worker that starts after it
  std::vector<std::string> delivered;
  for (int i = 0; i < 4; ++i) {
    const auto claim = box.claim({.run = 2});
    for (const auto& each : claim.events) {
      if (!each.event.key.empty()) delivered.push_back(each.event.id);
      EXPECT_TRUE(box.ack(claim.fence, each));
    }
  }
  EXPECT_EQ(delivered, (std::vector<std::string>{events[1].id, events[2].id, events[3].id}))
      << Place::name;
  EXPECT_EQ(box.admin().stats().events, 2U) << "those with a delay wait";
}

TEST(OutboxSqlClock, ThatWasAheadDelaysNoEventWithoutADelay) {
  expect_no_delay_after_the_clock_was_ahead<in_sqlite>();
  expect_no_delay_after_the_clock_was_ahead<in_postgres>();
  expect_no_delay_after_the_clock_was_ahead<in_mariadb>();
}

/// The same for a worker that runs all the time.
TEST(OutboxSqlClock, ThatIsSetBackIsNoticed) {
  const in_sqlite place;
  const auto clock = std::make_shared<virtual_clock>();
  const auto box =
      open(place.url(), {.clock = clock}).outbox({.prefix = prefix, .create_schema = true});
  EXPECT_TRUE(box.claim().events.empty());
  clock->jump(1h);
  const auto first = box.publish({.type = "t", .key = "k"}).id;
  const auto claim = box.claim();
  ASSERT_EQ(claim.events.size(), 1U);
  (void)box.publish_all(std::vector<event>{{.type = "t", .key = "k"}, {.type = "t"}});
  clock->jump(-1h);
  const auto other = box.claim();
  ASSERT_EQ(other.events.size(), 1U);
  EXPECT_EQ(other.events[0].event.key, "");
  EXPECT_TRUE(box.ack(claim.fence, claim.events[0]));
  EXPECT_EQ(box.claim().events.size(), 1U);
}

/// A connection to a server that says that it is a node of a cluster.
class clustered_connection final : public sql::connection {
 public:
  clustered_connection(std::unique_ptr<sql::connection> target, std::string nodes)
      : target_(std::move(target)), nodes_(std::move(nodes)) {}
  [[nodiscard]] sql::dialect_id dialect() const noexcept override { return target_->dialect(); }
  sql::outcome execute(const sql::statement& s,
                       std::span<const sql::parameter> parameters) override {
    if (!s.text.starts_with("SHOW")) return target_->execute(s, parameters);
    sql::outcome answer{.rows = sql::rows(2)};
    answer.rows.add("name");
    answer.rows.add(s.text.find("wsrep_on") != std::string::npos ? "ON" : nodes_);
    return answer;
  }
  sql::outcome batch(const sql::batch_statement& s,
                     std::span<const std::vector<sql::parameter>> columns,
                     std::span<const sql::parameter> common) override {
    return target_->batch(s, columns, common);
  }
  void run(const std::string& text) override { target_->run(text); }
  void begin() override { target_->begin(); }
  void commit() override { target_->commit(); }
  void rollback() noexcept override { target_->rollback(); }
  void limit(std::chrono::milliseconds longest) override { target_->limit(longest); }
  [[nodiscard]] bool broken() const noexcept override { return target_->broken(); }

 private:
  std::unique_ptr<sql::connection> target_;
  std::string nodes_;
};

/// Percona XtraDB Cluster. MariaDB with Galera is in galera_test.cpp.
TEST(OutboxSqlCluster, GaleraOnMySqlWithSeveralNodesIsRefused) {
  const in_mariadb place;
  (void)box_of(place.url(), true);
  const auto database_with = [&](const std::string& nodes) {
    return database([connect = detail::sql::connector(place.url(), {}),
                     nodes] { return std::make_unique<clustered_connection>(connect(), nodes); },
                    {.resolve_dialect = [](sql::connection&) { return sql::dialect_id::mysql; }});
  };
  EXPECT_FALSE(database_with("1").outbox({.prefix = prefix}).admin().health());
  const auto refusal = database_with("3").outbox({.prefix = prefix}).admin().health();
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->code(), errc::unsupported_type);
  EXPECT_NE(refusal->message().find("Galera of 3 nodes"), std::string::npos);
  EXPECT_NE(refusal->message().find("--allow-unsafe"), std::string::npos);
  EXPECT_FALSE(
      database_with("3").outbox({.prefix = prefix, .allow_unsafe = true}).admin().health());
}

/// The first event of a key has lost its time.
TYPED_TEST(OutboxSqlStuck, HeadsAreReported) {
  const auto box = box_of(this->url, true);
  const auto first = box.publish({.type = "t", .key = "k"}).id;
  const auto second = box.publish({.type = "t", .key = "k"}).id;
  (void)box.publish({.type = "t", .key = "well"});
  EXPECT_EQ(box.admin().stats().stuck, 0U);
  typename TestFixture::handle client(this->url);
  client.run("UPDATE fault_OUTBOX SET DUE = NULL WHERE ID = '" + first + "'");
  EXPECT_EQ(box.admin().stats().stuck, 1U);
  EXPECT_EQ(box.find(first)->state, event_state::stuck);
  EXPECT_NE(box.admin().explain(first).find("fsck --repair"), std::string::npos);
  EXPECT_NE(box.admin().explain(second).find("fsck --repair"), std::string::npos);
  EXPECT_FALSE(box.admin().check(true).well());
  EXPECT_EQ(box.admin().stats().stuck, 0U);
  EXPECT_EQ(box.find(first)->state, event_state::due);
}

}  // namespace
}  // namespace holdfast::test
