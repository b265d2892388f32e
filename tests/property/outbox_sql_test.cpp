// The outbox on SQLite and the model in memory, given the same thousand things to do: they answer
// the same. HOLDFAST_SEED=n runs that seed alone.

#include <holdfast/database.hpp>
#include <holdfast/outbox.hpp>
#include <holdfast/outbox/memory.hpp>

#include "base/uuid.hpp"
#include "database/database.hpp"
#include "outbox/sql/deliver.hpp"
#include "outbox/sql/inspect.hpp"
#include "outbox/sql/publish.hpp"
#include "outbox/sql/tables.hpp"
#include "support/seed.hpp"
#include "support/temporary_directory.hpp"
#include "support/virtual_clock.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::test {
namespace {

using ms = std::chrono::milliseconds;

/// HOLDFAST_OUTBOX_STEPS for a long run.
int steps() {
  const char* asked = std::getenv("HOLDFAST_OUTBOX_STEPS");
  return asked != nullptr ? std::atoi(asked) : 700;
}

std::string show(const claimed& what) {
  std::string text = std::to_string(static_cast<int>(what.status));
  for (const auto& one : what.events) {
    text.append(" ")
        .append(one.event.id)
        .append("/")
        .append(one.event.payload)
        .append("/")
        .append(std::to_string(one.deliveries));
    text.append("/")
        .append(std::to_string(one.attempts))
        .append("/")
        .append(std::to_string(one.replays))
        .append("/")
        .append(one.last_error);
  }
  return text;
}

std::string show(const std::optional<outbox_record>& what) {
  if (!what) return "nothing";
  return std::string(to_string(what->state)) + " " + what->details.event.id + " behind '" +
         what->behind + "' until " +
         (what->until ? std::to_string(what->until->time_since_epoch().count()) : "-") + " " +
         std::to_string(what->details.deliveries) + " " + std::to_string(what->details.attempts) +
         " " + what->details.last_error;
}

std::string show(const outbox_stats& what) {
  std::string text;
  for (const auto number : {what.events, what.pending, what.following, what.parked, what.tickets,
                            what.published, what.duplicates, what.claims, what.acked, what.retried,
                            what.parkings, what.stale, what.fired})
    text.append(std::to_string(number)).append(" ");
  return text + (what.paused ? "paused" : "running") + " overdue " +
         std::to_string(what.overdue.count());
}

class OutboxSqlDifferential : public testing::TestWithParam<std::uint64_t> {
 protected:
  /// Does the same to both; the first one's answer.
  template <class Act>
  void both(const char* what, Act act) {
    const auto expected = act(*model_, 0);
    const auto actual = act(*sql_, 1);
    ASSERT_EQ(actual, expected) << what << " in step " << step_;
  }
  std::uint64_t dice(std::uint64_t sides) { return random_() % sides; }
  /// From the seed, like everything else.
  std::string new_id() {
    detail::uuid_bytes bytes{};
    for (auto& each : bytes) each = static_cast<std::uint8_t>(dice(256));
    return detail::uuid_text(bytes);
  }
  std::vector<std::string> new_ids(std::size_t count) {
    std::vector<std::string> made(count);
    for (auto& each : made) each = new_id();
    return made;
  }
  std::string any_id() { return ids_[dice(ids_.size())]; }
  static std::string key_of(const std::string& id) {
    return id.back() < '4' ? "" : std::string(1, id.back());
  }

  void publish() {
    ids_[dice(ids_.size())] = new_id();
    std::vector<event> events;
    for (auto n = 1 + dice(4); n > 0; --n) {
      event what{.type = "t", .payload = std::to_string(dice(1000)), .id = any_id()};
      what.key = key_of(what.id);
      if (dice(5) == 0) what.delay = ms(dice(60));
      events.push_back(std::move(what));
    }
    both("publish", [&](outbox_backend& box, int) {
      std::string text;
      for (const auto& one : box.publish(0, events, terms_))
        text.append(to_string(one.status)).append(" ");
      return text;
    });
  }
  void remember(const claimed (&got)[2]) {
    for (const auto& one : got[0].events)
      held_.push_back({{got[0].fence, got[1].fence}, {.id = one.event.id, .key = one.event.key}});
    if (held_.size() > 50) held_.erase(held_.begin(), held_.begin() + 20);
  }
  void claim() {
    const claim_request request{.most = 1 + dice(6),
                                .run = 1 + dice(5),
                                .lease = ms(1 + dice(120)),
                                .owner = dice(6) == 0 ? "a" : ""};
    claimed got[2];
    both("claim", [&](outbox_backend& box, int which) {
      got[which] = box.claim(request);
      return show(got[which]);
    });
    remember(got);
  }
  void settle() {
    if (held_.empty()) return;
    const auto tokens = held_[dice(held_.size())].first;
    std::vector<settlement> what;
    for (const auto& [fences, one] : held_) {
      if (fences != tokens && dice(20) != 0) continue;
      auto item = one;
      const auto side = dice(10);
      item.action = side < 6    ? settlement::kind::ack
                    : side < 8  ? settlement::kind::retry
                    : side == 8 ? settlement::kind::park
                                : settlement::kind::release;
      item.delay = ms(dice(50));
      item.counts = dice(3) != 0;
      item.error = "error " + std::to_string(dice(10));
      item.policy = static_cast<park_policy>(dice(3));
      what.push_back(std::move(item));
      if (dice(4) == 0) break;
    }
    std::optional<run_request> next;
    if (dice(2) == 0) next = run_request{.run = 1 + dice(4), .lease = ms(50)};
    claimed got[2];
    both("settle", [&](outbox_backend& box, int which) {
      auto done = box.settle(0, which == 0 ? tokens.first : tokens.second, what, next, terms_);
      std::string text;
      for (const bool each : done.done) text.append(each ? "y" : "n");
      for (const auto& key : done.keys_to_park) {
        text.append(" ").append(key);
        while (box.park_followers(0, key, 2) > 0) {
        }
      }
      got[which] = std::move(done.next);
      return text + " " + show(got[which]);
    });
    remember(got);
  }
  void extend() {
    if (held_.empty()) return;
    const auto picked = held_[dice(held_.size())];
    const auto lease = ms(1 + dice(100));
    both("extend", [&](outbox_backend& box, int which) {
      return box.extend(0, which == 0 ? picked.first.first : picked.first.second,
                        std::span(&picked.second, 1), lease);
    });
  }
  void bring_back() {
    const std::vector<std::string> some{any_id(), any_id(), any_id()};
    const bool again = dice(2) == 0;
    both("replay or discard", [&](outbox_backend& box, int) {
      return again ? box.replay(0, some) : box.discard(0, some);
    });
  }
  void tickets() {
    const auto name = "ticket" + std::to_string(dice(6));
    const auto delay = ms(dice(80));
    const event becomes{.type = "expired",
                        .key = std::string(1, static_cast<char>('a' + dice(3))),
                        .payload = name};
    switch (dice(3)) {
      case 0:
        both("schedule", [&](outbox_backend& box, int) {
          return box.schedule(0, name, {}, delay, becomes, terms_).before;
        });
        break;
      case 1:
        both("cancel", [&](outbox_backend& box, int) { return box.cancel(0, name); });
        break;
      default:
        both("drain", [&](outbox_backend& box, int) { return box.drain(0, 3, terms_).tickets; });
    }
  }
  void lock() {
    const std::string owner = dice(2) == 0 ? "a" : "b";
    const auto ttl = ms(1 + dice(80));
    const auto side = dice(3);
    both("lock", [&](outbox_backend& box, int) {
      if (side == 2) return std::string(box.unlock(0, owner) ? "unlocked" : "not held");
      const auto got = side == 0 ? box.lock(0, owner, ttl) : box.renew(0, owner, ttl);
      return std::string(got.held ? "held " : "not ") + got.holder + " " +
             std::to_string(got.remaining.count());
    });
  }
  void look() {
    const auto id = any_id();
    both("find", [&](outbox_backend& box, int) { return show(box.find(0, id)); });
    both("stats", [&](outbox_backend& box, int) { return show(box.stats(0)); });
  }

  std::mt19937_64 random_{GetParam()};
  temporary_directory directory_{"outbox", "", medium::memory};
  std::shared_ptr<virtual_clock> clock_ = std::make_shared<virtual_clock>();
  std::shared_ptr<outbox_backend> model_ = make_memory_outbox({.clock = clock_});
  std::shared_ptr<outbox_backend> sql_ =
      open("sqlite://" + (directory_.path() / "o.db").string() + "?synchronous=off",
           {.clock = clock_})
          .outbox({.create_schema = true})
          .backend();
  const publish_terms terms_{.dedup_window = ms(100), .dedup_limit = 100'000};
  std::vector<std::string> ids_ = new_ids(50);
  std::vector<std::pair<std::pair<fence, fence>, settlement>> held_{};
  int step_ = 0;
};

TEST_P(OutboxSqlDifferential, AnswersLikeTheModel) {
  SCOPED_TRACE(repeated_by(GetParam()));
  for (step_ = 0; step_ < steps() && !HasFatalFailure(); ++step_) {
    if (dice(3) == 0) clock_->advance(std::chrono::microseconds(dice(40'000)));
    switch (dice(12)) {
      case 0:
      case 1:
      case 2:
        publish();
        break;
      case 3:
      case 4:
        claim();
        break;
      case 5:
      case 6:
      case 7:
        settle();
        break;
      case 8:
        extend();
        break;
      case 9:
        bring_back();
        break;
      case 10:
        tickets();
        break;
      default:
        lock();
        look();
    }
  }
  EXPECT_TRUE(sql_->check(0, false).well());
  const auto did = sql_->stats(0);
  for (const auto number :
       {did.duplicates, did.acked, did.retried, did.parkings, did.stale, did.fired})
    EXPECT_GT(number, 0U) << show(did);
}

std::vector<std::uint64_t> seeds() {
  if (const auto only = seed_from_environment()) return {*only};
  return {1, 2, 3};
}

INSTANTIATE_TEST_SUITE_P(Seeds, OutboxSqlDifferential, testing::ValuesIn(seeds()));

/// However many events there are: no statement of publishing, delivering and looking reads the
/// table of events from end to end.
TEST(OutboxSqlPlans, NoStatementReadsEveryEvent) {
  const temporary_directory directory("outbox", "", medium::memory);
  const auto database = open("sqlite://" + (directory.path() / "o.db").string());
  const auto box = database.outbox({.create_schema = true});
  const auto on = database.shared()->sql->pool.acquire_writer("test");
  using namespace detail::outbox;
  const statement_builder builder(sql::dialect_id::sqlite, table_names_of(box.backend()->prefix()));
  const auto events = make_event_statements(builder);
  const auto remembered = make_remembered_statements(builder);
  const auto publishing = make_publish_statements(builder);
  const auto runs = run_claimer::make_statements(builder);
  const auto delivery = make_deliver_statements(builder);
  const auto tickets = make_ticket_statements(builder);
  const auto inspection = make_inspect_statements(builder);
  const named_statement* const all[]{&events.by_id.wait,    &events.by_seq.wait,
                                     &events.heads,         &events.overdue,
                                     &events.entries,       &events.update,
                                     &events.promote,       &events.erase,
                                     &events.erase_entries, &remembered.find,
                                     &remembered.renew,     &remembered.forget,
                                     &remembered.surplus,   &*remembered.erase_oldest,
                                     &publishing.find_ids,  &runs.followers,
                                     &runs.lease_events,    &runs.lease_runs,
                                     &delivery.due_events,  &delivery.first_due,
                                     &delivery.lock_heads,  &delivery.demote,
                                     &delivery.set_due,     &delivery.mark_delivered,
                                     &tickets.find,         &tickets.lock_expired,
                                     &tickets.erase_list,   &tickets.first_expiry,
                                     &tickets.scan,         &inspection.count_states,
                                     &inspection.find,      &inspection.scan,
                                     &inspection.scan_state};
  for (const auto* statement : all) {
    const auto& original = statement->positional().text;
    std::string text = "EXPLAIN QUERY PLAN " + original;
    std::replace(text.begin(), text.end(), '?', '1');
    const auto plan = on->execute({.text = text,
                                   .results = {sql::type::integer, sql::type::integer,
                                               sql::type::integer, sql::type::text}},
                                  {})
                          .rows;
    ASSERT_FALSE(plan.empty());
    for (std::size_t i = 0; i < plan.size(); ++i) {
      const auto& step = std::get<std::string>(plan.at(i, 3));
      // A scan of rows that were given (g), of what was counted (a, b), or of an index in its
      // order.
      const bool small = step.find("VIRTUAL TABLE") != std::string::npos || step == "SCAN g" ||
                         step == "SCAN a" || step == "SCAN b";
      EXPECT_TRUE(!step.starts_with("SCAN ") || small ||
                  step.find("CONSTANT ROW") != std::string::npos)
          << step << " in " << original;
    }
  }
}

/// Above a bound not all are counted, and that is said.
TEST(OutboxSqlStats, AreBounded) {
  const temporary_directory directory("outbox", "", medium::memory);
  const auto box = open("sqlite://" + (directory.path() / "o.db").string() + "?synchronous=off")
                       .outbox({.create_schema = true});
  constexpr std::size_t keys = 20;
  std::vector<event> many;
  for (std::size_t i = 0; i < 10'000; ++i)
    many.push_back({.type = "t", .key = "k" + std::to_string(i % keys)});
  (void)box.publish_all(many);
  auto seen = box.admin().stats();
  EXPECT_FALSE(seen.at_least);
  EXPECT_EQ(seen.pending, keys);
  EXPECT_EQ(seen.following, 10'000 - keys);
  (void)box.publish_all(
      std::vector<event>{{.type = "t", .key = "z"}, {.type = "t"}, {.type = "t"}});
  seen = box.admin().stats();
  EXPECT_TRUE(seen.at_least);
  EXPECT_EQ(seen.events, 10'003U);
  EXPECT_GE(seen.pending, keys);
  EXPECT_EQ(seen.pending + seen.following, 10'003U);
}

}  // namespace
}  // namespace holdfast::test
