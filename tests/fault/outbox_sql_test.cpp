// The outbox on SQL, in transactions of the caller's own, among processes that are killed: nothing
// by halves, nothing lost, nothing twice.

#include <holdfast/database.hpp>
#include <holdfast/outbox.hpp>
#include <holdfast/outbox/sql.hpp>

#include "database/database.hpp"
#include "fault/half_parked.hpp"
#include "fault/outbox_sql_places.hpp"
#include "outbox/sql/backend.hpp"
#include "outbox/sql/open.hpp"
#include "support/eventually.hpp"
#include "support/kill_harness.hpp"
#include "support/ledger.hpp"
#include "support/own_handles.hpp"
#include "support/temporary_directory.hpp"
#include "support/worker.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

/// How often a process is killed; HOLDFAST_OUTBOX_KILLS for a long run.
std::size_t kills() {
  const char* asked = std::getenv("HOLDFAST_OUTBOX_KILLS");
  return asked != nullptr ? static_cast<std::size_t>(std::atoi(asked)) : 50;
}

/// An application: an order and its event in one transaction, again and again; every fourth is
/// rolled back.
template <class Handle>
int take_orders(const std::vector<std::string>& arguments) {
  Handle mine(arguments.at(0));
  const auto box = box_of(arguments.at(0));
  ledger<std::int64_t> book(arguments.at(1));
  std::mt19937_64 random(std::random_device{}());
  worker_is_alive();
  for (int turn = 0; !worker_should_stop(); ++turn) {
    const auto order = static_cast<std::int64_t>(random() >> 1U);
    mine.run(Handle::begin);
    mine.run("INSERT INTO orders VALUES (" + std::to_string(order) + ")");
    auto here = mine.joined();
    (void)box.publish(here, {.type = "order.taken",
                             .key = "customer-" + std::to_string(random() % 7),
                             .payload = std::to_string(order)});
    if (turn % 4 == 3) {
      mine.run("ROLLBACK");
      continue;
    }
    mine.run("COMMIT");
    book.add(order);
  }
  return 0;
}
HOLDFAST_WORKER(take_orders_sqlite) { return take_orders<sqlite_handle>(arguments); }
HOLDFAST_WORKER(take_orders_postgresql) { return take_orders<postgres_handle>(arguments); }
HOLDFAST_WORKER(take_orders_mysql) { return take_orders<mariadb_handle>(arguments); }

/// Delivers with an effect in a transaction of its own; the effect has no guard but effect_once.
template <class Handle>
int deliver(const std::vector<std::string>& arguments) {
  Handle mine(arguments.at(0));
  // A long storm kills more than ten workers with the same event, which is not poison.
  const auto box = open(arguments.at(0)).outbox({.prefix = prefix, .max_deliveries = 1'000'000});
  worker_is_alive();
  while (!worker_should_stop() || box.admin().stats().events > 0) {
    const auto got = box.claim({.most = 5, .run = 4, .lease = 400ms});
    if (got.events.empty()) std::this_thread::sleep_for(5ms);
    for (const auto& one : got.events) {
      mine.run(Handle::begin);
      auto here = mine.joined();
      const auto status = box.effect_once(here, got.fence, one);
      if (status == commit_status::done)
        mine.run("INSERT INTO effects (n) VALUES (" + one.event.payload + ")");
      mine.run(status == commit_status::stale ? "ROLLBACK" : "COMMIT");
      if (status != commit_status::stale) (void)box.ack(got.fence, one);
    }
  }
  return 0;
}
HOLDFAST_WORKER(deliver_sqlite) { return deliver<sqlite_handle>(arguments); }
HOLDFAST_WORKER(deliver_postgresql) { return deliver<postgres_handle>(arguments); }
HOLDFAST_WORKER(deliver_mysql) { return deliver<mariadb_handle>(arguments); }

template <class Place>
class OutboxSqlFault : public OnSqlDatabase<Place> {};
TYPED_TEST_SUITE(OutboxSqlFault, sql_places);

TYPED_TEST(OutboxSqlFault, RollbackLeavesNothingAndCommitLeavesBoth) {
  const auto box = box_of(this->url, true);
  typename TestFixture::handle mine(this->url);
  mine.run("CREATE TABLE orders (id BIGINT)");
  auto here = mine.joined();
  EXPECT_THROW((void)box.publish(here, {.type = "t"}), error)
      << "without a transaction it would be there whatever the caller decides";

  mine.run(TestFixture::handle::begin);
  mine.run("INSERT INTO orders VALUES (1)");
  const auto first = box.publish(here, {.type = "t", .key = "k", .payload = "1"});
  EXPECT_EQ(first.status, publish_status::added);
  EXPECT_EQ(box.publish(here, {.type = "t", .key = "k", .payload = "1", .id = first.id}).status,
            publish_status::duplicate);
  mine.run("ROLLBACK");
  EXPECT_TRUE(payloads(box).empty());
  EXPECT_EQ(box.admin().stats(), outbox_stats{});
  EXPECT_EQ(box.claim().status, claim_status::empty);

  mine.run(TestFixture::handle::begin);
  mine.run("INSERT INTO orders VALUES (2)");
  std::vector<event> many;
  for (int i = 0; i < 5; ++i)
    many.push_back({.type = "t", .key = "k", .payload = std::to_string(i)});
  (void)box.publish_all(here, many);
  mine.run("COMMIT");
  EXPECT_EQ(numbers(mine, "SELECT id FROM orders"), std::vector<std::int64_t>{2});
  const auto got = box.claim({.run = 10});
  ASSERT_EQ(got.events.size(), 5U);
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(got.events[static_cast<std::size_t>(i)].event.payload, std::to_string(i));

  // The effect of an event, once, and only while it is held.
  mine.run(TestFixture::handle::begin);
  EXPECT_EQ(box.effect_once(here, got.fence + 1, got.events[0]), commit_status::stale);
  EXPECT_EQ(box.effect_once(here, got.fence, got.events[0]), commit_status::done);
  mine.run("ROLLBACK");
  mine.run(TestFixture::handle::begin);
  EXPECT_EQ(box.effect_once(here, got.fence, got.events[0]), commit_status::done)
      << "what was rolled back was not applied";
  mine.run("COMMIT");
  mine.run(TestFixture::handle::begin);
  EXPECT_EQ(box.effect_once(here, got.fence, got.events[0]), commit_status::applied);
  mine.run("COMMIT");
  EXPECT_TRUE(box.admin().check().well());
}

TYPED_TEST(OutboxSqlFault, KilledApplicationsLeaveNothingByHalves) {
  (void)box_of(this->url, true);
  typename TestFixture::handle mine(this->url);
  mine.run("CREATE TABLE orders (id BIGINT)");
  const temporary_directory books("book", "", medium::memory);
  const auto book = (books.path() / "ledger").string();
  kill_harness harness({.workers = 4, .kills = kills(), .longest = 30ms});
  const auto report = harness.run(std::string("take_orders_") + TypeParam::name, {this->url, book});
  EXPECT_EQ(report.failures, std::vector<std::string>{});

  const auto box = box_of(this->url);
  std::multiset<std::int64_t> kept;
  for (const auto& payload : payloads(box)) kept.insert(std::stoll(payload));
  std::multiset<std::int64_t> orders;
  for (const auto order : numbers(mine, "SELECT id FROM orders")) orders.insert(order);
  EXPECT_EQ(kept, orders) << "an order without its event, or an event without its order";
  const auto acknowledged = ledger<std::int64_t>(book).read();
  EXPECT_GT(acknowledged.size(), 0U);
  for (const auto order : acknowledged) EXPECT_EQ(orders.count(order), 1U) << "committed, and lost";
  EXPECT_TRUE(box.admin().check().well());
  std::cout << acknowledged.size() << " orders acknowledged, " << orders.size() << " kept, "
            << report.killed << " killed\n";
}

TYPED_TEST(OutboxSqlFault, KilledWorkersDeliverEveryEventAndApplyItOnce) {
  const auto box = box_of(this->url, true);
  typename TestFixture::handle mine(this->url);
  // A number for each effect: their order is that of the table.
  const bool postgres = std::string_view(TypeParam::name) == "postgresql";
  const bool sqlite = std::string_view(TypeParam::name) == "sqlite";
  mine.run(std::string("CREATE TABLE effects (at ") +
           (sqlite     ? "INTEGER PRIMARY KEY AUTOINCREMENT"
            : postgres ? "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY"
                       : "BIGINT AUTO_INCREMENT PRIMARY KEY") +
           ", n BIGINT)");
  constexpr int keys = 12;
  constexpr int each = 20;
  std::vector<event> many;
  for (int n = 0; n < keys * each; ++n)
    many.push_back(
        {.type = "t", .key = "k" + std::to_string(n % keys), .payload = std::to_string(n)});
  (void)box.publish_all(many);
  kill_harness harness({.workers = 3, .kills = kills() / 2, .shortest = 2ms, .longest = 60ms});
  const auto report = harness.run(std::string("deliver_") + TypeParam::name, {this->url});
  EXPECT_EQ(report.failures, std::vector<std::string>{});

  const auto effects = numbers(mine, "SELECT n FROM effects ORDER BY at");
  EXPECT_EQ(effects.size(), static_cast<std::size_t>(keys * each)) << "lost, or applied twice";
  std::map<std::int64_t, std::int64_t> last;
  for (const auto n : effects) {
    const auto before = last.find(n % keys);
    EXPECT_TRUE(before == last.end() || before->second < n) << "out of order: " << n;
    last[n % keys] = n;
  }
  EXPECT_EQ(box.admin().stats().events, 0U);
  EXPECT_TRUE(box.admin().check().well());
}

/// One transaction publishes first and commits last. Are the two delivered in the order in which
/// they were published?
template <class Place>
bool keeps_order(detail::outbox::key_order rule) {
  const Place place;
  const auto url = place.url();
  const auto database = open(url);
  const outbox box(
      detail::outbox::open_sql_outbox(database.shared()->sql,
                                      {.prefix = prefix, .create_schema = true, .order = rule}),
      {.prefix = prefix});
  typename Place::handle first(url);
  first.run(Place::handle::begin);
  auto in_first = first.joined();
  (void)box.publish(in_first, {.type = "t", .key = "k", .payload = "1"});
  std::atomic<bool> done{false};
  std::jthread other([&] {
    typename Place::handle second(url);
    second.run(Place::handle::begin);
    auto in_second = second.joined();
    (void)box.publish(in_second, {.type = "t", .key = "k", .payload = "2"});
    second.run("COMMIT");
    done = true;
  });
  // With the right rule it waits for the first, so there is no waiting for it.
  (void)eventually([&] { return done.load(); },
                   rule == detail::outbox::key_order::locked ? 500ms : 20'000ms);
  std::string delivered;
  const auto take = [&] {
    const auto got = box.claim({.run = 1});
    for (const auto& one : got.events) {
      delivered += one.event.payload;
      (void)box.ack(got.fence, one);
    }
  };
  take();
  first.run("COMMIT");
  other.join();
  return eventually([&] {
           take();
           return delivered.size() == 2;
         }) &&
         delivered == "12";
}

TEST(OutboxSqlOrder, WhoPublishesFirstIsDeliveredFirst) {
  EXPECT_TRUE(keeps_order<in_postgres>(detail::outbox::key_order::locked));
  EXPECT_TRUE(keeps_order<in_mariadb>(detail::outbox::key_order::locked));
}

TEST(OutboxSqlOrder, WithoutTheLockItIsNot) {
  EXPECT_FALSE(keeps_order<in_postgres>(detail::outbox::key_order::wrong_without_lock))
      << "this test could not fail";
  EXPECT_FALSE(keeps_order<in_mariadb>(detail::outbox::key_order::wrong_without_lock))
      << "this test could not fail";
}

/// A caller may take its time: who waits for it are those who publish for the same key, and nobody
/// else.
template <class Place>
void expect_nobody_waits() {
  const Place place;
  const auto url = place.url();
  const auto box = box_of(url, true);
  (void)box.publish_all(std::vector<event>{{.type = "t", .key = "a", .payload = "1"},
                                           {.type = "t", .key = "a", .payload = "2"},
                                           {.type = "t"}});
  typename Place::handle slow(url);
  slow.run(Place::handle::begin);
  auto here = slow.joined();
  (void)box.publish(here, {.type = "t", .key = "a", .payload = "3"});
  (void)box.publish(here, {.type = "t"});
  const auto start = std::chrono::steady_clock::now();
  const auto got = box.claim({.run = 5});
  EXPECT_EQ(got.events.size(), 3U);
  std::vector<settlement> what;
  for (const auto& one : got.events) what.push_back({.id = one.event.id, .key = one.event.key});
  EXPECT_EQ(box.extend(got.fence, got.events, 30s), std::vector<bool>(3, true));
  EXPECT_EQ(box.settle(0, got.fence, what, run_request{}).done, std::vector<bool>(3, true));
  EXPECT_EQ(box.publish({.type = "t", .key = "another"}).status, publish_status::added);
  EXPECT_EQ(box.admin().stats().events, 1U);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 4s) << "lock timeouts are longer";
  slow.run("COMMIT");
  EXPECT_EQ(box.claim({.run = 5}).events.size(), 3U) << "found without being promoted by anybody";
}

TEST(OutboxSqlOrder, AnOpenTransactionStopsNobodyElse) {
  expect_nobody_waits<in_postgres>();
  expect_nobody_waits<in_mariadb>();
}

/// Nor does it hold up a lane: the tickets of other keys become their events, and that of its key
/// does when it ends.
template <class Place>
void expect_tickets_of_others_fire() {
  const Place place;
  const auto url = place.url();
  const auto box = box_of(url, true);
  typename Place::handle slow(url);
  slow.run(Place::handle::begin);
  auto here = slow.joined();
  (void)box.publish(here, {.type = "t", .key = "a", .payload = "1"});
  for (const auto* key : {"a", "another", ""})
    (void)box.schedule(std::string("of-") + key, 1ms, {.type = "t", .key = key, .payload = "2"});
  const auto start = std::chrono::steady_clock::now();
  std::size_t fired = 0;
  EXPECT_TRUE(eventually([&] { return (fired += box.drain(0).tickets) == 2; }));
  const auto held_up = box.drain(0);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 4s) << "lock timeouts are longer";
  EXPECT_EQ(held_up.tickets, 0U);
  EXPECT_GE(held_up.next.value_or(0ms), 100ms) << "nobody asks again and again";
  slow.run("COMMIT");
  EXPECT_TRUE(eventually([&] { return box.drain(0).tickets == 1; }));
  std::string of_a;
  for (const auto& one : box.claim({.run = 5}).events) {
    if (one.event.key == "a") of_a += one.event.payload;
  }
  EXPECT_EQ(of_a, "12");
  EXPECT_TRUE(box.admin().check().well());
}

TEST(OutboxSqlOrder, AnOpenTransactionStopsNoTicketOfOthers) {
  expect_tickets_of_others_fire<in_postgres>();
  expect_tickets_of_others_fire<in_mariadb>();
}

/// A handler may take its time, too, in its transaction with effect_once: the leases and the lock
/// of its worker go on meanwhile.
template <class Place>
void expect_leases_go_on() {
  const Place place;
  const auto url = place.url();
  const auto database = open(url);
  const auto box =
      database.outbox({.prefix = prefix, .quota = {.events = 100}, .create_schema = true});
  const std::vector<event> all{
      {.type = "t", .key = "a"}, {.type = "t"}, {.type = "t", .key = "b"}, {.type = "t"}};
  (void)box.publish_all(all);
  ASSERT_TRUE(box.lock(0, "me", 30s).held);
  const auto got = box.claim({.run = 1, .lease = 3s});
  ASSERT_EQ(got.events.size(), all.size());
  typename Place::handle slow(url);
  slow.run(Place::handle::begin);
  auto here = slow.joined();
  for (const auto& one : got.events) {  // one with a key, one without
    if (one.sequence > 2) continue;
    EXPECT_EQ(box.effect_once(here, got.fence, one), commit_status::done);
  }
  (void)box.publish(here, {.type = "t", .key = "c"});
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(box.renew(0, "me", 30s).held);
  EXPECT_EQ(box.extend(got.fence, got.events, 30s), std::vector<bool>(all.size(), true));
  EXPECT_EQ(box.extend(got.fence + 1, got.events, 30s), std::vector<bool>(all.size(), false))
      << "not those of others";
  EXPECT_LT(std::chrono::steady_clock::now() - start, 4s) << "lock timeouts are longer";
  std::this_thread::sleep_for(3100ms - std::min<std::chrono::steady_clock::duration>(
                                           3100ms, std::chrono::steady_clock::now() - start));
  EXPECT_TRUE(box.claim().events.empty()) << "two have longer leases, two are locked";
  slow.run("COMMIT");
  EXPECT_EQ(box.extend(got.fence, got.events, 30s), std::vector<bool>(all.size(), true));
  for (const auto& one : got.events) EXPECT_TRUE(box.ack(got.fence, one));
}

TEST(OutboxSqlOrder, ALongHandlerStopsNoLease) {
  expect_leases_go_on<in_postgres>();
  expect_leases_go_on<in_mariadb>();
}

/// Nor does it stop other keys: what was published for its key meanwhile is put behind them.
template <class Place>
void expect_other_keys_go_on() {
  const Place place;
  const auto url = place.url();
  const auto box = box_of(url, true);
  (void)box.publish({.type = "t", .key = "a", .payload = "0"});
  const auto got = box.claim();
  ASSERT_EQ(got.events.size(), 1U);
  typename Place::handle slow(url);
  slow.run(Place::handle::begin);
  auto here = slow.joined();
  ASSERT_EQ(box.effect_once(here, got.fence, got.events[0]), commit_status::done);
  std::vector<event> many;
  for (int i = 1; i <= 30; ++i)
    many.push_back({.type = "t", .key = "a", .payload = std::to_string(i)});
  (void)box.publish_all(many);
  (void)box.publish({.type = "t", .key = "b", .payload = "other"});
  const auto other = box.claim({.most = 5});
  ASSERT_EQ(other.events.size(), 1U);
  EXPECT_EQ(other.events[0].event.payload, "other");
  ASSERT_TRUE(other.next);
  EXPECT_GT(*other.next, 0ms) << "nobody asks again and again";
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(box.ack(other.fence, other.events[0]));
  EXPECT_LT(std::chrono::steady_clock::now() - start, 4s) << "lock timeouts are longer";
  EXPECT_TRUE(eventually([&] {
    const auto later = box.claim({.most = 5});
    EXPECT_TRUE(later.events.empty());
    return later.next.value_or(0ms) >= 200ms;
  })) << "less and less often";
  slow.run("COMMIT");
  EXPECT_TRUE(box.ack(got.fence, got.events[0]));
  const auto behind = box.claim({.run = 50});
  ASSERT_EQ(behind.events.size(), many.size()) << "at once";
  for (std::size_t i = 0; i < many.size(); ++i)
    EXPECT_EQ(behind.events[i].event.payload, std::to_string(i + 1));
  EXPECT_TRUE(box.admin().check().well());
}

TEST(OutboxSqlOrder, ALongHandlerStopsNoOtherKey) {
  expect_other_keys_go_on<in_postgres>();
  expect_other_keys_go_on<in_mariadb>();
}

/// Two who finish a parking are not to wait for each other: whoever meets a row of somebody else
/// leaves it for the next.
template <class Place>
void expect_parkings_wait_for_nobody() {
  const Place place;
  const auto url = place.url();
  const auto box = box_of(url, true);
  std::vector<event> many;
  for (int i = 0; i < 4; ++i) many.push_back({.type = "t", .key = "a", .id = new_event_id()});
  (void)box.publish_all(many);
  const auto got = box.claim();
  ASSERT_EQ(got.events.size(), 1U);
  typename Place::handle other(url);
  other.run(Place::handle::begin);
  other.run("UPDATE fault_OUTBOX SET ATTEMPTS = ATTEMPTS WHERE ID = '" + many[2].id + "'");
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(box.park(got.fence, got.events[0], park_policy::park, "bad"));
  EXPECT_TRUE(box.claim().events.empty());
  EXPECT_LT(std::chrono::steady_clock::now() - start, 4s) << "lock timeouts are longer";
  EXPECT_EQ(box.find(many[0].id)->state, event_state::blocking)
      << "one of them is still to be parked";
  other.run("COMMIT");
  EXPECT_TRUE(box.claim().events.empty());
  EXPECT_EQ(box.admin().stats().parked, many.size());
  EXPECT_EQ(box.find(many[0].id)->state, event_state::parked);
  EXPECT_TRUE(box.admin().check().well());
}

TEST(OutboxSqlOrder, AParkingWaitsForNobody) {
  expect_parkings_wait_for_nobody<in_postgres>();
  expect_parkings_wait_for_nobody<in_mariadb>();
}

/// CLIENT_FOUND_ROWS counts a row that an upsert leaves as it is: of two who apply an effect at
/// once, only one does.
TEST(OutboxSqlEffect, IsAppliedOnceWhateverTheHandleCounts) {
  const in_mariadb place;
  const auto box = box_of(place.url(), true);
  (void)box.publish({.type = "t"});
  const auto got = box.claim();
  ASSERT_EQ(got.events.size(), 1U);
  mariadb_handle first(place.url(), CLIENT_FOUND_ROWS);
  first.run("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ");
  first.run("START TRANSACTION WITH CONSISTENT SNAPSHOT");  // does not see the mark of the second
  mariadb_handle second(place.url(), CLIENT_FOUND_ROWS);
  second.run("START TRANSACTION");
  auto in_first = first.joined();
  auto in_second = second.joined();
  EXPECT_EQ(box.effect_once(in_second, got.fence, got.events[0]), commit_status::done);
  second.run("COMMIT");
  EXPECT_EQ(box.effect_once(in_first, got.fence, got.events[0]), commit_status::applied);
  first.run("COMMIT");
}

/// Runs a function before the first statement that writes.
class hooked_transaction final : public join::transaction {
 public:
  hooked_transaction(join::transaction& target, std::function<void()> before_write)
      : target_(target), before_write_(std::move(before_write)) {}
  [[nodiscard]] sql::dialect_id dialect() const override { return target_.dialect(); }
  sql::outcome execute(const sql::statement& s,
                       std::span<const sql::parameter> parameters) override {
    if (!s.text.starts_with("SELECT") && before_write_) std::exchange(before_write_, nullptr)();
    return target_.execute(s, parameters);
  }

 private:
  join::transaction& target_;
  std::function<void()> before_write_;
};

/// Two transactions read a mark that is older than the dedup window. Without a claim (token 0)
/// nothing but the mark serialises them.
template <class Place>
void expect_one_renews_an_expired_mark() {
  const Place place;
  const auto url = place.url();
  const auto box = box_of(url, true);
  const claimed_event applied{.event = {.type = "t", .id = new_event_id()}};
  typename Place::handle first(url);
  typename Place::handle second(url);
  auto in_first = first.joined();
  auto in_second = second.joined();
  first.run(Place::handle::begin);
  ASSERT_EQ(box.effect_once(in_first, 0, applied), commit_status::done);
  first.run("COMMIT");
  first.run("UPDATE fault_OUTBOX SET AT = 1 WHERE ID = 'e:" + applied.event.id + "'");

  first.run(Place::handle::begin);
  second.run(Place::handle::begin);
  std::optional<commit_status> status_of_first;
  hooked_transaction hooked(in_second, [&] {
    status_of_first = box.effect_once(in_first, 0, applied);
    first.run("COMMIT");
  });
  EXPECT_EQ(box.effect_once(hooked, 0, applied), commit_status::applied) << Place::name;
  second.run("COMMIT");
  EXPECT_EQ(status_of_first, commit_status::done) << Place::name;
}

TEST(OutboxSqlEffect, OneOfTwoRenewsAMarkThatHasExpired) {
  expect_one_renews_an_expired_mark<in_postgres>();
  expect_one_renews_an_expired_mark<in_mariadb>();
}

HOLDFAST_WORKER(parks_half) { return park_half_and_die(box_of(arguments.at(0))); }

TYPED_TEST(OutboxSqlFault, AWorkerKilledBetweenTheParkedAndItsFollowersBlocksNoKey) {
  whoever_claims_next_parks_the_rest(box_of(this->url, true),
                                     [&] { return worker_options("parks_half", {this->url}); });
}

TYPED_TEST(OutboxSqlFault, ManyPublishersAndManyWorkersKeepTheOrderOfEachKey) {
  const auto database = open(this->url);
  const auto box = database.outbox({.prefix = prefix, .create_schema = true});
  constexpr int publishers = 4;
  constexpr int each = 60;
  constexpr int keys = 3;
  std::atomic<int> publishing{publishers};
  std::mutex mutex;
  std::map<std::string, std::vector<std::int64_t>> first_deliveries;  // by key
  std::set<std::string> seen;
  std::vector<std::jthread> threads;
  for (int p = 0; p < publishers; ++p) {
    threads.emplace_back([&, p] {
      typename TestFixture::handle mine(this->url);
      std::mt19937 random(static_cast<unsigned>(p));
      for (int n = 0; n < each; ++n) {
        mine.run(TestFixture::handle::begin);
        auto here = mine.joined();
        (void)box.publish(here, {.type = "t", .key = "k" + std::to_string(random() % keys)});
        if (random() % 4 == 0) std::this_thread::sleep_for(1ms);
        mine.run(random() % 8 == 0 ? "ROLLBACK" : "COMMIT");
      }
      --publishing;
    });
  }
  for (int w = 0; w < 3; ++w) {
    threads.emplace_back([&, w] {
      std::mt19937 random(static_cast<unsigned>(100 + w));
      for (;;) {
        const bool last = publishing == 0;
        const auto got = box.claim({.most = 4, .run = 3, .lease = 30s});
        if (got.events.empty() && last && box.admin().stats().events == 0) return;
        std::vector<settlement> what;
        {
          const std::scoped_lock lock(mutex);
          for (const auto& one : got.events) {
            if (seen.insert(one.event.id).second)
              first_deliveries[one.event.key].push_back(one.sequence);
            const bool failed = random() % 10 == 0;
            what.push_back({.id = one.event.id,
                            .key = one.event.key,
                            .action = failed ? settlement::kind::retry : settlement::kind::ack});
          }
        }
        if (!what.empty()) (void)box.settle(0, got.fence, what);
        else std::this_thread::sleep_for(1ms);
      }
    });
  }
  threads.clear();
  for (const auto& [key, sequence] : first_deliveries)
    EXPECT_TRUE(std::is_sorted(sequence.begin(), sequence.end())) << key;
  EXPECT_EQ(box.admin().stats().events, 0U);
  EXPECT_TRUE(box.admin().check().well());
}

TEST(OutboxSqlWake, PostgresTellsAtOnce) {
  const in_postgres place;
  const auto box = box_of(place.url(), true);
  const auto elsewhere = box_of(place.url());  // another pool, as in another process
  while (box.wait(0, 5ms)) {
  }
  for (int turn = 0; turn < 3; ++turn) {
    std::jthread publisher([&] { (void)elsewhere.publish({.type = "t"}); });
    EXPECT_TRUE(eventually([&] { return box.wait(0, 900ms); }))
        << "what it finds by looking by itself is no news";
    publisher.join();
    (void)box.claim();
  }
  // Many notices are one: all of them were published before it looked.
  for (int n = 0; n < 50; ++n) (void)elsewhere.publish({.type = "t"});
  EXPECT_TRUE(eventually([&] { return box.wait(0, 300ms); }));
  int woken = 1;
  while (box.wait(0, 300ms)) ++woken;
  EXPECT_LT(woken, 25);
}

}  // namespace
}  // namespace holdfast::test
