// The outbox on Redis: random operations compared with the outbox in memory, its keys, its repairs,
// and the servers that it refuses.
//
// HOLDFAST_OUTBOX_STEPS=1000000 makes the comparison longer; HOLDFAST_SEED=n repeats it.

#include <holdfast/database.hpp>
#include <holdfast/key/redis.hpp>
#include <holdfast/outbox.hpp>
#include <holdfast/outbox/memory.hpp>
#include <holdfast/redis.hpp>

#include "outbox/redis/backend.hpp"
#include "support/eventually.hpp"
#include "support/hostile_entries.hpp"
#include "support/redis_cluster.hpp"
#include "support/redis_server.hpp"
#include "support/seed.hpp"
#include "support/shared_server.hpp"
#include "support/virtual_clock.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return text == nullptr || *text == '\0' ? otherwise : std::stoull(text);
}

// ---- results as text, so that a difference can be read ----

std::string show(const std::vector<bool>& marks) {
  std::string text;
  for (const bool mark : marks) text += mark ? '1' : '0';
  return text;
}
std::string show(const claimed_event& event) {
  std::ostringstream text;
  text << event.event.id << ' ' << event.event.key << ' ' << event.event.payload << " d"
       << event.deliveries << " a" << event.attempts << " r" << event.replays << " c"
       << event.created_at.time_since_epoch().count() << " s" << event.sequence << " '"
       << event.last_error << "'";
  return text.str();
}
std::string show(const claimed& result) {
  std::ostringstream text;
  text << static_cast<int>(result.status) << " fence " << result.fence << " next "
       << (result.next ? result.next->count() : -1) << " now "
       << result.now.time_since_epoch().count();
  for (const auto& event : result.events) text << "\n  " << show(event);
  return text.str();
}
std::string show(const outbox_record& record) {
  std::ostringstream text;
  text << show(record.details) << ' ' << to_string(record.state) << ' '
       << (record.until ? record.until->time_since_epoch().count() : -1) << " behind "
       << record.behind << " fence " << record.fence;
  return text.str();
}
std::string show(const outbox_stats& stats) {
  std::ostringstream text;
  text << "events " << stats.events << " pending " << stats.pending << " following "
       << stats.following << " parked " << stats.parked << " tickets " << stats.tickets
       << " remembered " << stats.remembered << " bytes " << stats.bytes << " paused "
       << stats.paused << " overdue " << stats.overdue.count() << " published " << stats.published
       << " duplicates " << stats.duplicates << " claims " << stats.claims << " acked "
       << stats.acked << " retried " << stats.retried << " parkings " << stats.parkings << " stale "
       << stats.stale << " fired " << stats.fired << " orphans " << stats.orphans;
  return text.str();
}
std::string show(const std::vector<receipt>& receipts) {
  std::string text;
  for (const auto& receipt : receipts) text.append(to_string(receipt.status)).append(" ");
  if (!receipts.empty() && receipts[0].problem) text += receipts[0].problem->what();
  return text;
}
std::string show(const scheduled& result) {
  return std::to_string(result.expires_at.time_since_epoch().count()) + " before " +
         (result.before ? std::to_string(result.before->time_since_epoch().count()) : "none");
}
std::string show_all(outbox_backend& box, scan_what kind) {
  std::vector<std::string> lines;
  std::string after;
  do {
    auto page = box.scan(0, kind, after, 50);
    for (const auto& record : page.records) lines.push_back(show(record));
    after = page.after;
  } while (!after.empty());
  std::sort(lines.begin(), lines.end());
  std::string text;
  for (const auto& line : lines) text.append(line).append("\n");
  return text;
}

/// Runs the same operations on Redis and in memory, and compares the results.
class comparison {
 public:
  /// Without keys the scripts take their fast paths.
  comparison(std::uint64_t seed, bool keyed)
      : random_(seed),
        keyed_(keyed),
        server_(shared_server<redis_server>()),
        client_(std::make_shared<redis::client>(server_.url())) {
    prefix_ = "{" + server_.unique_prefix("differential") + "}";
    set_time();
    // The scripts read the time of the test from `meta`, a key in their slot.
    redis_ = std::make_unique<detail::outbox::redis_backend>(
        client_, outbox_options{.prefix = prefix_},
        "redis.call('HMGET', KEYS[12], 'test-seconds', 'test-micros')");
    model_ = make_memory_outbox({.clock = clock_});
    for (int i = 0; i < 60; ++i) ids_.push_back(new_event_id());
  }

  void step() {
    if (random_() % 400 == 0) {
      // The clock is set ahead, and back.
      clock_->jump(clock_is_ahead_ ? -std::chrono::seconds(3) : std::chrono::seconds(3));
      clock_is_ahead_ = !clock_is_ahead_;
      set_time();
    }
    if (random_() % 3 == 0) {
      clock_->advance(std::chrono::microseconds(random_() % 40'000));
      set_time();
    }
    switch (random_() % 16) {
      case 0:
      case 1:
      case 2:
        publish();
        break;
      case 3:
      case 4:
      case 5:
        claim();
        break;
      case 6:
      case 7:
      case 8:
        settle();
        break;
      case 9:
        extend();
        break;
      case 10:
        replay_or_discard();
        break;
      case 11:
        tickets();
        break;
      case 12:
        lock();
        break;
      case 13:
        commit();
        break;
      case 14:
        find();
        break;
      default:
        compare("stats", [](outbox_backend& box) { return show(box.stats(0)); });
    }
  }
  void compare_everything() {
    compare("stats", [](outbox_backend& box) { return show(box.stats(0)); });
    compare("all", [](outbox_backend& box) { return show_all(box, scan_what::all); });
    compare("parked", [](outbox_backend& box) { return show_all(box, scan_what::parked); });
    compare("tickets", [](outbox_backend& box) { return show_all(box, scan_what::tickets); });
    EXPECT_TRUE(redis_->check(0, false).well());
    EXPECT_TRUE(model_->check(0, false).well());
  }

 private:
  template <class Do>
  std::string compare(const char* operation, Do run_operation) {
    const auto run = [&](outbox_backend& box) -> std::string {
      try {
        return run_operation(box);
      } catch (const error& problem) {
        return "threw " + std::string(to_string(problem.code())) + ": " + problem.message();
      }
    };
    auto expected = run(*model_);
    const auto actual = run(*redis_);
    EXPECT_EQ(actual, expected) << operation;
    return expected;
  }
  void set_time() {
    const auto us = clock_->now().time_since_epoch().count();
    (void)client_->call(redis::command("HSET")
                            .key(prefix_ + ":meta")
                            .arg("test-seconds")
                            .arg(us / 1'000'000)
                            .arg("test-micros")
                            .arg(us % 1'000'000));
  }
  template <class T>
  const T& pick(const std::vector<T>& values) {
    return values[random_() % values.size()];
  }
  std::string any_key() {
    const auto n = random_() % 7;
    return n < 2 || !keyed_ ? "" : std::string(1, static_cast<char>('a' + n));
  }
  event make(const std::string& id) {
    event result{.type = "t", .payload = "\"" + std::to_string(random_() % 1000) + "\"", .id = id};
    // Events with the same id have the same key.
    result.key = id.back() < '4' || !keyed_ ? "" : std::string(1, id.back());
    if (random_() % 5 == 0) result.delay = std::chrono::milliseconds(random_() % 60);
    return result;
  }
  publish_terms random_terms() {
    publish_terms result{.dedup_window = std::chrono::milliseconds(random_() % 4 == 0 ? 0 : 100),
                         .dedup_limit = 20};
    if (random_() % 6 == 0)
      result.quota = {.events = 25, .bytes = 5000, .overdue = std::chrono::milliseconds(300)};
    return result;
  }
  void refresh_an_id() { ids_[random_() % ids_.size()] = new_event_id(); }
  void publish() {
    refresh_an_id();
    std::vector<event> events;
    for (auto n = 1 + random_() % 5; n > 0; --n) events.push_back(make(pick(ids_)));
    const auto terms = random_terms();
    compare("publish", [&](outbox_backend& box) { return show(box.publish(0, events, terms)); });
  }
  void remember(const claimed& result) {
    for (const auto& event : result.events)
      held_.push_back({result.fence, {.id = event.event.id, .key = event.event.key}});
    if (held_.size() > 60) held_.erase(held_.begin(), held_.begin() + 20);
  }
  void claim() {
    const claim_request request{.most = 1 + random_() % 6,
                                .run = 1 + random_() % 5,
                                .bytes = random_() % 5 == 0 ? 300U : 100'000U,
                                .lease = std::chrono::milliseconds(1 + random_() % 120),
                                .owner = random_() % 6 == 0 ? "worker-a" : ""};
    claimed result;
    compare("claim", [&](outbox_backend& box) {
      result = box.claim(request);
      return show(result);
    });
    remember(result);
  }
  void settle() {
    if (held_.empty()) return;
    // One token, in the order of the claim; sometimes with events of others in between.
    const auto token = pick(held_).first;
    std::vector<settlement> settlements;
    for (const auto& [fence, held_event] : held_) {
      if (fence != token && random_() % 20 != 0) continue;
      auto settlement = held_event;
      const auto dice = random_() % 10;
      settlement.action = dice < 6    ? settlement::kind::ack
                          : dice < 8  ? settlement::kind::retry
                          : dice == 8 ? settlement::kind::park
                                      : settlement::kind::release;
      settlement.delay = std::chrono::milliseconds(random_() % 50);
      settlement.counts = random_() % 3 != 0;
      settlement.error = "error " + std::to_string(random_() % 10);
      settlement.policy = static_cast<park_policy>(random_() % 3);
      settlements.push_back(std::move(settlement));
      if (random_() % 4 == 0) break;
    }
    if (settlements.empty()) return;
    std::optional<run_request> next;
    if (random_() % 2 == 0) {
      next = run_request{.run = 1 + random_() % 4,
                         .bytes = random_() % 4 == 0 ? 300U : 100'000U,
                         .lease = std::chrono::milliseconds(50)};
      if (random_() % 6 == 0) next->owner = "worker-b";
    }
    const auto terms = random_terms();
    claimed next_claim;
    std::vector<std::string> keys_to_park;
    compare("settle", [&](outbox_backend& box) {
      auto result = box.settle(0, token, settlements, next, terms);
      next_claim = result.next;
      keys_to_park = result.keys_to_park;
      std::string keys;
      for (const auto& key : result.keys_to_park) keys += key + ",";
      return show(result.done) + " parks " + keys + " next " + (next ? show(result.next) : "");
    });
    for (const auto& key : keys_to_park) {
      compare("park followers", [&](outbox_backend& box) {
        return std::to_string(box.park_followers(0, key, static_cast<std::size_t>(1 + token % 3)));
      });
    }
    remember(next_claim);
  }
  void extend() {
    if (held_.empty()) return;
    const auto token = pick(held_).first;
    std::vector<settlement> events;
    for (const auto& [fence, event] : held_) {
      if (fence == token || random_() % 10 == 0) events.push_back(event);
    }
    compare("extend", [&](outbox_backend& box) {
      return show(box.extend(0, token, events, std::chrono::milliseconds(80)));
    });
  }
  void replay_or_discard() {
    std::vector<std::string> ids;
    for (auto n = 1 + random_() % 10; n > 0; --n) ids.push_back(pick(ids_));
    const auto key = any_key();
    const auto operation = random_() % 5;
    if (operation == 0) {
      compare("park followers",
              [&](outbox_backend& box) { return std::to_string(box.park_followers(0, key, 2)); });
    } else if (operation == 1) {
      compare("discard", [&](outbox_backend& box) { return show(box.discard(0, ids)); });
    } else if (operation < 4) {
      compare("replay", [&](outbox_backend& box) { return show(box.replay(0, ids)); });
    } else {
      const bool paused = random_() % 2 == 0;
      compare("pause", [&](outbox_backend& box) {
        box.pause(0, paused);
        return std::string();
      });
    }
  }
  void tickets() {
    const auto ticket = "ticket-" + std::to_string(random_() % 8);
    const auto terms = random_terms();
    switch (random_() % 4) {
      case 0: {
        const auto expires_at = clock_->now() + std::chrono::milliseconds(random_() % 100);
        compare("schedule", [&](outbox_backend& box) {
          return show(box.schedule(0, ticket, expires_at, {}, make_ticket(ticket), terms));
        });
        break;
      }
      case 1: {
        const std::chrono::milliseconds after(random_() % 100);
        compare("schedule", [&](outbox_backend& box) {
          return show(box.schedule(0, ticket, std::nullopt, after, make_ticket(ticket), terms));
        });
        break;
      }
      case 2:
        compare("cancel",
                [&](outbox_backend& box) { return std::string(to_string(box.cancel(0, ticket))); });
        break;
      default:
        compare("drain", [&](outbox_backend& box) {
          const auto result = box.drain(0, 3, terms);
          return std::to_string(result.tickets) + " next " +
                 (result.next ? std::to_string(result.next->count()) : "none");
        });
    }
  }
  [[nodiscard]] event make_ticket(const std::string& ticket) const {
    return {.type = "expired",
            .key = ticket.back() < '4' || !keyed_ ? "" : std::string(1, ticket.back()),
            .payload = R"({"of":")" + ticket + "\"}"};
  }
  void lock() {
    // Long leases only: Redis ends a lock by its own clock, not by the clock of the test.
    const std::string owner = random_() % 2 == 0 ? "worker-a" : "worker-b";
    const auto operation = random_() % 3;
    compare("lock", [&](outbox_backend& box) {
      if (operation == 0) return std::string(box.unlock(0, owner) ? "unlocked" : "not held");
      const auto grant = operation == 1 ? box.lock(0, owner, std::chrono::hours(1))
                                        : box.renew(0, owner, std::chrono::hours(1));
      return std::to_string(static_cast<int>(grant.held)) + ' ' + std::to_string(grant.fence) +
             ' ' + grant.holder;
    });
  }
  void commit() {
    using write_kind = commit_write::kind;
    using condition_kind = commit_condition::kind;
    const auto n = std::to_string(random_() % 4);
    const auto text = ":data:text-" + n;
    const auto hash = ":data:hash-" + n;
    commit_request request;
    for (auto i = random_() % 3; i > 0; --i) {
      const auto kind = static_cast<condition_kind>(random_() % 4);
      const bool in_hash = kind == condition_kind::missing || random_() % 2 == 0;
      request.conditions.push_back({.test = kind,
                                    .key = (in_hash ? hash : text) + std::to_string(i),
                                    .field = in_hash && random_() % 9 != 0 ? "f" : "",
                                    .value = std::to_string(random_() % 3)});
    }
    for (auto i = random_() % 3; i > 0; --i) {
      const auto kind = static_cast<write_kind>(random_() % 6);
      const bool in_hash = kind == write_kind::set_field || kind == write_kind::erase_field ||
                           kind == write_kind::add_to_field;
      const bool wrong = random_() % 9 == 0;
      request.writes.push_back({.action = kind,
                                .key = (in_hash != wrong ? hash : text) + std::to_string(i),
                                .field = in_hash ? "f" : "",
                                .value = random_() % 9 == 0 ? (random_() % 2 == 0 ? "word" : "07")
                                                            : std::to_string(random_() % 3),
                                .number = static_cast<std::int64_t>(random_() % 3) - 1});
    }
    for (auto i = random_() % 2; i > 0; --i) request.events.push_back(make(pick(ids_)));
    auto terms = random_terms();
    terms.dedup_window = std::chrono::milliseconds(100);
    if (!held_.empty() && random_() % 2 == 0) {
      const auto& [fence, event] = pick(held_);
      request.once = event.id;
      request.once_key = event.key;
      request.fence = random_() % 2 == 0 ? fence : 0;
    }
    compare("commit", [&](outbox_backend& box) {
      auto with_prefix = request;
      const auto prefix = box.key_prefix(0);
      for (auto& condition : with_prefix.conditions) condition.key = prefix + condition.key;
      for (auto& write : with_prefix.writes) write.key = prefix + write.key;
      try {
        const auto result = box.commit(0, with_prefix, terms);
        return std::string(to_string(result.status)) + ' ' + std::to_string(result.failed) + ' ' +
               show(result.receipts);
      } catch (const error& problem) {
        return "threw " + std::string(to_string(problem.code()));
      }
    });
  }
  void find() {
    const auto id = pick(ids_);
    compare("find", [&](outbox_backend& box) {
      const auto record = box.find(0, id);
      return record ? show(*record) : "nothing";
    });
  }

  std::mt19937_64 random_;
  bool keyed_;
  bool clock_is_ahead_ = false;
  std::shared_ptr<virtual_clock> clock_ = std::make_shared<virtual_clock>();
  const redis_endpoint& server_;
  std::shared_ptr<redis::client> client_;
  std::string prefix_{};
  std::unique_ptr<detail::outbox::redis_backend> redis_{};
  std::shared_ptr<outbox_backend> model_{};
  std::vector<std::string> ids_{};
  std::vector<std::pair<fence, settlement>> held_{};
};

TEST(OutboxOnRedis, DoesWhatTheModelDoes) {
  const auto seed = first_seed();
  const auto steps = from_environment("HOLDFAST_OUTBOX_STEPS", 15'000);
  std::cout << "HOLDFAST_SEED=" << seed << " HOLDFAST_OUTBOX_STEPS=" << steps << "\n";
  for (std::uint64_t done = 0, round = 0; done < steps; ++round) {
    comparison pair(seed + round, round % 2 == 0);
    for (int i = 0; i < 5000 && done < steps; ++i, ++done) {
      pair.step();
      if (i % 500 == 499) pair.compare_everything();
      ASSERT_FALSE(::testing::Test::HasFailure())
          << "at step " << done << " of HOLDFAST_SEED=" << seed;
    }
  }
}

std::string refusal(const std::function<void()>& operation) {
  try {
    operation();
  } catch (const error& problem) {
    return problem.what();
  }
  return "nothing was refused";
}

TEST(OutboxOnRedis, UsesTheKeysOfThePublishedDesign) {
  const auto lanes = detail::outbox::make_lanes("{identity:outbox}", 1);
  ASSERT_EQ(lanes.size(), 1U);
  EXPECT_EQ(lanes[0][detail::outbox::redis_lane::entries], "{identity:outbox}:entries");
  EXPECT_EQ(lanes[0][detail::outbox::redis_lane::pending], "{identity:outbox}:pending");
  EXPECT_EQ(lanes[0][detail::outbox::redis_lane::expiry_due], "{identity:outbox}:expiry-due");
  EXPECT_EQ(lanes[0][detail::outbox::redis_lane::lock], "{identity:outbox}:lock");
  for (const auto& key : lanes[0].keys) EXPECT_EQ(key::redis_slot(key), 11393);

  const auto& server = shared_server<redis_server>();
  const auto prefix = "{" + server.unique_prefix("published") + "}";
  auto box = open(server.url()).outbox({.prefix = prefix});
  const auto id = box.publish({.type = "t", .payload = "{\"a\":1}"}).id;
  const auto entry = server.run({"HGET", prefix + ":entries", id});
  EXPECT_EQ(entry.find("{\"v\":1,\"id\":\"" + id +
                       "\",\"type\":\"t\",\"contentType\":\"application/"
                       "json\",\"payload\":{\"a\":1},\"createdAt\":1"),
            0U)
      << entry;
  EXPECT_NE(server.run({"ZSCORE", prefix + ":pending", id}), "");
  (void)box.schedule("ticket-1", std::chrono::hours(1), {.type = "t"});
  EXPECT_NE(server.run({"ZSCORE", prefix + ":expiry-due", "ticket-1"}), "");
  const auto grant = box.lock(0, "me");
  EXPECT_EQ(server.run({"GET", prefix + ":lock"}), "me|" + std::to_string(grant.fence));
}

TEST(OutboxOnRedis, LanesAreSpreadAndFixed) {
  for (const std::size_t count : {2U, 8U, 64U}) {
    const auto lanes = detail::outbox::make_lanes("{identity:outbox}", count);
    for (std::size_t i = 0; i < count; ++i) {
      const auto slot = key::redis_slot(lanes[i][detail::outbox::redis_lane::pending]);
      EXPECT_EQ(slot * count / 16384, i);
      for (const auto& key : lanes[i].keys) EXPECT_EQ(key::redis_slot(key), slot);
    }
  }
  const auto& server = shared_server<redis_server>();
  const auto prefix = "{" + server.unique_prefix("lanes") + "}";
  const auto db = open(server.url());
  (void)db.outbox({.prefix = prefix, .lanes = 4}).admin().stats();
  EXPECT_NE(refusal([&] {
              (void)db.outbox({.prefix = prefix, .lanes = 2}).admin().stats();
            }).find("has 4 lanes, not 2"),
            std::string::npos);
  EXPECT_NE(refusal([&] {
              (void)db.outbox({.prefix = prefix}).admin().stats();
            }).find("has 4 lanes, not 1"),
            std::string::npos);
  EXPECT_NE(refusal([&] { (void)db.outbox({.prefix = "no-tag"}); }), "nothing was refused");
  EXPECT_NE(refusal([&] { (void)db.outbox({.prefix = prefix, .lanes = 3}); }),
            "nothing was refused");
  for (const auto* key : {":meta", ":entries", ":pending"}) {
    const auto other = "{" + server.unique_prefix("other") + "}";
    (void)server.run({"SET", other + key, "x"});
    EXPECT_NE(refusal([&] {
                (void)db.outbox({.prefix = other}).admin().stats();
              }).find("holds a string, which an outbox does not write; choose another prefix"),
              std::string::npos)
        << key;
  }
}

TEST(OutboxOnRedis, RefusesAServerThatCannotKeepItsPromise) {
  redis_server server({.durable = false});
  const auto db = open(server.url());
  EXPECT_NE(refusal([&] {
              (void)db.outbox({.safe = durability::aof()}).admin().stats();
            }).find("append-only"),
            std::string::npos);
  EXPECT_NE(refusal([&] {
              (void)db.outbox({.safe = durability::replicated(1)}).admin().stats();
            }).find("0 of the 1 replicas"),
            std::string::npos);
  // Debian has Redis 7.0. Refused at the first operation, and before the append-only file is
  // checked: turning that on would not help.
  const auto no_waitaof =
      refusal([&] { (void)db.outbox({.safe = durability::fsynced()}).admin().stats(); });
  EXPECT_NE(no_waitaof.find("has no WAITAOF, which came with Redis 7.2; ask for"),
            std::string::npos)
      << no_waitaof;
  EXPECT_EQ(no_waitaof.find('\n'), std::string::npos);
  const auto box = db.outbox();
  EXPECT_EQ(refusal([&] { (void)box.publish({.type = "t"}, durability::fsynced()); }), no_waitaof);
  EXPECT_EQ(box.admin().stats().published, 0U);
  EXPECT_NE(
      refusal([&] { (void)box.publish({.type = "t"}, durability::aof()); }).find("append-only"),
      std::string::npos);
  (void)server.run({"CONFIG", "SET", "maxmemory-policy", "allkeys-lru"});
  EXPECT_NE(refusal([&] { (void)db.outbox().claim(); }).find("noeviction"), std::string::npos);
  EXPECT_EQ(db.outbox({.allow_eviction = true}).publish({.type = "t"}).status,
            publish_status::added);
}

/// With `appendfsync everysec` acknowledged events can be lost: that is logged, and refused if the
/// user demands more.
TEST(OutboxOnRedis, DemandsThatEveryWriteIsSynced) {
  redis_server server({.durable = false});
  std::vector<std::string> warnings;
  std::mutex mutex;
  database_options settings;
  settings.log = [&](const log_record& record) {
    const std::scoped_lock guard(mutex);
    if (record.level == log_level::warning) warnings.emplace_back(record.message);
  };
  const auto db = open(server.url(), settings);
  const auto refusal_of = [&](const durability& safe) {
    return refusal([&] { (void)db.outbox({.safe = safe}).admin().stats(); });
  };
  EXPECT_NE(refusal_of(durability::always()).find("no append-only file"), std::string::npos);
  (void)server.run({"CONFIG", "SET", "appendonly", "yes"});
  (void)server.run({"CONFIG", "SET", "appendfsync", "everysec"});
  EXPECT_NE(refusal_of(durability::always()).find("appendfsync everysec"), std::string::npos);
  EXPECT_TRUE(warnings.empty());
  EXPECT_EQ(refusal_of(durability::aof()), "nothing was refused");
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings[0].find("can lose acknowledged events"), std::string::npos) << warnings[0];
  (void)server.run({"CONFIG", "SET", "appendfsync", "always"});
  EXPECT_EQ(refusal_of(durability::aof()), "nothing was refused");
  EXPECT_EQ(refusal_of(durability::always()), "nothing was refused");
  EXPECT_EQ(warnings.size(), 1U);
}

TEST(OutboxOnRedis, RepairsInconsistentKeys) {
  const auto& server = shared_server<redis_server>();
  const auto prefix = "{" + server.unique_prefix("fsck") + "}";
  auto box = open(server.url()).outbox({.prefix = prefix});
  std::vector<event> events;
  for (int i = 0; i < 12; ++i)
    events.push_back({.type = "t", .key = "k" + std::to_string(i % 3), .id = new_event_id()});
  events.push_back({.type = "t", .id = new_event_id()});
  (void)box.publish_all(events);
  EXPECT_TRUE(box.admin().check().well());
  // The head of k0: pending leads to nothing
  (void)server.run({"HDEL", prefix + ":entries", events[0].id});
  // The head of k1: nothing leads to it
  (void)server.run({"ZREM", prefix + ":pending", events[1].id});
  (void)server.run({"ZREM", prefix + ":pending", events[12].id});  // without a key
  (void)server.run({"HDEL", prefix + ":heads", "k2"});
  (void)server.run({"ZREM", prefix + ":pending", events[2].id});
  const auto report = box.admin().check();
  EXPECT_FALSE(report.well());
  EXPECT_EQ(report.without_entry, 1U);
  EXPECT_GE(report.without_place, 2U);
  EXPECT_NE(report.bytes_off, 0);
  for (int i = 0; i < 3 && !box.admin().check().well(); ++i) (void)box.admin().check(true);
  EXPECT_TRUE(box.admin().check().well());
  std::size_t delivered = 0;
  for (int i = 0; i < 30; ++i) {
    const auto claimed = box.claim({.run = 10});
    for (const auto& event : claimed.events) delivered += box.ack(claimed.fence, event) ? 1U : 0U;
  }
  EXPECT_EQ(delivered, 12U);
  EXPECT_EQ(box.admin().stats().events, 0U);
}

/// Events that are discarded during a check are not reported as a difference.
TEST(OutboxOnRedis, ACheckIsNotMisledByADiscard) {
  const auto& server = shared_server<redis_server>();
  const auto box =
      open(server.url()).outbox({.prefix = "{" + server.unique_prefix("discard") + "}"});
  std::vector<event> events;
  for (int i = 0; i < 600; ++i) events.push_back({.type = "t", .id = new_event_id()});
  (void)box.publish_all(events);
  const auto claimed = box.claim({.most = 1000});
  ASSERT_EQ(claimed.events.size(), events.size());
  for (const auto& event : claimed.events)
    ASSERT_TRUE(box.park(claimed.fence, event, park_policy::skip, "bad"));
  std::atomic<bool> stopped{false};
  {
    const std::jthread discarder([&] {
      for (const auto& event : events) {
        if (stopped) break;
        EXPECT_EQ(box.admin().discard(std::vector<std::string>{event.id}), 1U);
      }
      stopped = true;
    });
    while (!stopped) {
      const auto report = box.admin().check(true);
      EXPECT_EQ(report.bytes_off, 0);
      if (report.bytes_off != 0) stopped = true;
    }
  }
  EXPECT_TRUE(box.admin().check().well());
}

TEST(OutboxOnRedis, ParksWhatItCannotRead) {
  const auto& server = shared_server<redis_server>();
  const auto prefix = "{" + server.unique_prefix("unreadable") + "}";
  auto box = open(server.url()).outbox({.prefix = prefix});
  std::vector<event> events;
  for (const char* key : {"", "k", "k", "", "m", "m", "m"})
    events.push_back({.type = "t", .key = key, .id = new_event_id()});
  (void)box.publish_all(events);
  for (const std::size_t bad : {1U, 3U, 5U})
    (void)server.run({"HSET", prefix + ":entries", events[bad].id, "no entry"});
  std::vector<std::string> delivered;
  for (int i = 0; i < 8; ++i) {
    const auto claimed = box.claim({.run = 1});
    for (const auto& event : claimed.events) {
      if (box.ack(claimed.fence, event)) delivered.push_back(event.event.id);
    }
  }
  std::sort(delivered.begin(), delivered.end());
  EXPECT_EQ(delivered,
            (std::vector<std::string>{events[0].id, events[2].id, events[4].id, events[6].id}));
  const auto parked = box.admin().scan(scan_what::parked).records;
  ASSERT_EQ(parked.size(), 3U);
  for (const auto& record : parked)
    EXPECT_NE(record.details.last_error.find("cannot be read"), std::string::npos)
        << record.details.last_error;
  EXPECT_EQ(box.find(events[1].id)->details.event.key, "k");
  (void)box.admin().check();
  const std::vector<std::string> ids{events[1].id, events[3].id, events[5].id};
  EXPECT_EQ(box.admin().discard(ids), 3U);
  EXPECT_EQ(box.admin().stats().events, 0U);
}

TEST(OutboxOnRedis, ParksWhatPublishWouldRefuse) {
  const auto& server = shared_server<redis_server>();
  const auto prefix = "{" + server.unique_prefix("hostile") + "}";
  auto box = open(server.url()).outbox({.prefix = prefix});
  const auto count = hostile_entries("").size();
  for (std::size_t i = 0; i < count; ++i) {
    const auto bad = box.publish({.type = "t", .key = "k"}).id;
    const auto good = box.publish({.type = "t", .key = "k"}).id;
    const auto [reason, entry] = hostile_entries(bad)[i];
    SCOPED_TRACE(reason);
    redis::client(server.url())
        .call(redis::command("HSET").key(prefix + ":entries").arg(bad).arg(entry));
    std::vector<std::string> delivered;
    for (int round = 0; round < 4; ++round) {
      const auto claimed = box.claim({.run = 5});
      for (const auto& event : claimed.events) {
        if (box.ack(claimed.fence, event)) delivered.push_back(event.event.id);
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
}

/// An outbox of this test only, whose keys another program changes.
struct written_by_others {
  const redis_server::endpoint& server = shared_server<redis_server>();
  std::string prefix = "{" + server.unique_prefix("others") + "}";
  outbox box = open(server.url()).outbox({.prefix = prefix});
  redis::client direct{server.url()};

  void set(const std::string& hash, const std::string& field, const std::string& text) const {
    (void)direct.call(redis::command("HSET").key(prefix + ":" + hash).arg(field).arg(text));
  }
  /// Claims and acknowledges events, and returns their ids. Leases are short: an event that cannot
  /// be settled is claimed again.
  [[nodiscard]] std::vector<std::string> deliver_all() const {
    std::vector<std::string> delivered;
    for (int round = 0; round < 6; ++round) {
      const auto claimed = box.claim({.lease = std::chrono::milliseconds(20)});
      for (const auto& event : claimed.events) {
        if (box.ack(claimed.fence, event)) delivered.push_back(event.event.id);
      }
      if (claimed.events.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(25));
    }
    return delivered;
  }
};

TEST(OutboxOnRedis, GoesOnWithAClaimThatNoScriptWrote) {
  const std::vector<std::string> claims{"",
                                        "x",
                                        "0:0",
                                        "-1:-1:-1:-1:-1:-1:k",
                                        "nan:inf:0:0:0:0:k",
                                        "99999999999999999999:9:9:9:9:9:k",
                                        "1:99999999999:0:0:0:0:k",
                                        "0:0:0:0:0:999999999:k",
                                        "0:0:0:0:0:0:\r\nEvil"};
  for (const auto& claim : claims) {
    for (const char* key : {"", "k"}) {
      for (const bool repair : {false, true}) {
        SCOPED_TRACE("'" + claim + "' of key '" + key + (repair ? "', repaired" : "'"));
        const written_by_others store;
        const auto bad = store.box.publish({.type = "t", .key = key}).id;
        const auto behind = store.box.publish({.type = "t", .key = "k"}).id;
        const auto other = store.box.publish({.type = "t", .key = "other"}).id;
        store.set("claims", bad, claim);
        EXPECT_EQ(store.box.admin().scan(scan_what::all).records.size(), 3U);
        // A claim that a script could have written for this key, or one that is as good as none.
        const bool harmless = *key == '\0' ? claim.empty() : claim == "0:0:0:0:0:999999999:k";
        EXPECT_EQ(store.box.admin().check().bad_fields, harmless ? 0U : 1U);
        if (repair) {
          (void)store.box.admin().check(true);
          EXPECT_TRUE(store.box.admin().check().well());
        }
        auto delivered = store.deliver_all();
        EXPECT_EQ(std::count(delivered.begin(), delivered.end(), bad), 1);
        EXPECT_EQ(std::count(delivered.begin(), delivered.end(), behind), 1);
        EXPECT_EQ(std::count(delivered.begin(), delivered.end(), other), 1);
        if (*key != '\0') {
          EXPECT_LT(std::find(delivered.begin(), delivered.end(), bad),
                    std::find(delivered.begin(), delivered.end(), behind));
        }
        EXPECT_TRUE(store.box.admin().check().well());
      }
    }
  }
}

TEST(OutboxOnRedis, FindsAClaimThatLostItsKey) {
  for (const bool gone : {false, true}) {
    const written_by_others store;
    const auto bad = store.box.publish({.type = "t", .key = "k"}).id;
    const auto behind = store.box.publish({.type = "t", .key = "k"}).id;
    if (gone) (void)store.server.run({"HDEL", store.prefix + ":claims", bad});
    else store.set("claims", bad, "0:0:0:0:0:0:");
    EXPECT_EQ(store.box.admin().check(true).bad_fields, 1U);
    EXPECT_TRUE(store.box.admin().check().well());
    EXPECT_EQ(store.deliver_all(), (std::vector<std::string>{bad, behind}));
  }
}

TEST(OutboxOnRedis, GoesOnWithNumbersThatNoScriptWrote) {
  for (const std::string name :
       {"token", "fence", "seq", "bytes", "published", "claims", "acked", "parkings"}) {
    for (const std::string text :
         {"abc", "", "-5", "nan", "inf", "1e308", "99999999999999999999"}) {
      for (const bool repair : {false, true}) {
        SCOPED_TRACE(name + " '" + text + (repair ? "', repaired" : "'"));
        const written_by_others store;
        // Ahead of the clock, as if the clock was set back.
        constexpr fence ahead = 5'000'000'000'000'000;
        for (const char* number : {"token", "fence"})
          store.set("meta", number, std::to_string(ahead));
        (void)store.box.publish({.type = "t", .key = "k"});
        const auto first = store.box.claim({.lease = std::chrono::hours(1)});
        const auto held = store.box.lock(0, "a", std::chrono::hours(1));
        EXPECT_GT(first.fence, ahead);
        EXPECT_GT(held.fence, ahead);
        EXPECT_TRUE(store.box.unlock(0, "a"));
        store.set("meta", name, text);
        EXPECT_EQ(store.box.admin().check().bad_fields, 1U);
        if (repair) {
          (void)store.box.admin().check(true);
          EXPECT_TRUE(store.box.admin().check().well());
        }
        for (const char* key : {"", "k", ""}) (void)store.box.publish({.type = "t", .key = key});
        EXPECT_TRUE(store.box.ack(first.fence, first.events.at(0)));
        const auto second = store.box.claim();
        EXPECT_GT(second.fence, first.fence) << "a token never goes back";
        EXPECT_EQ(second.events.size(), 3U);
        for (const auto& event : second.events) EXPECT_TRUE(store.box.ack(second.fence, event));
        EXPECT_GT(store.box.lock(0, "b", std::chrono::hours(1)).fence, held.fence)
            << "a fence never goes back";
        const auto stats = store.box.admin().stats();
        EXPECT_EQ(stats.events, 0U);
        for (const auto number :
             {stats.bytes, stats.published, stats.claims, stats.acked, stats.parkings})
          EXPECT_LT(number, 1000U);
      }
    }
  }
}

TEST(OutboxOnRedis, GoesOnWithFollowersAndTimesThatNoScriptWrote) {
  const written_by_others store;
  const auto first = store.box.publish({.type = "t", .key = "k"}).id;
  const auto second = store.box.publish({.type = "t", .key = "k"}).id;
  const auto endless = store.box.publish({.type = "t"}).id;
  (void)store.server.run({"ZADD", store.prefix + ":pending", "inf", endless});
  for (const std::string_view member : {std::string_view("k\0junk", 6), std::string_view("short")})
    (void)store.direct.call(
        redis::command("ZADD").key(store.prefix + ":followers").arg("0").arg(member));
  EXPECT_EQ(store.box.admin().scan(scan_what::all).records.size(), 3U);
  EXPECT_EQ(store.deliver_all(), (std::vector<std::string>{first, second}));
  EXPECT_EQ(store.box.admin().check(true).without_entry, 1U) << "of the one without a key";
  EXPECT_TRUE(store.box.admin().check().well());
}

/// The limit is that of the outbox that delivers: with the limit of the publisher the event is
/// delivered.
TEST(OutboxOnRedis, ParksAPayloadAboveTheLimit) {
  const written_by_others store;
  const auto bad = store.box.publish({.type = "t", .key = "k"}).id;
  const auto good = store.box.publish({.type = "t", .key = "k"}).id;
  store.set("entries", bad, entry_of_size(bad, 262'145));
  store.set("entries", good, entry_of_size(good, 262'144));
  EXPECT_EQ(store.deliver_all(), std::vector<std::string>{good});
  EXPECT_EQ(store.box.find(bad)->state, event_state::parked);
  EXPECT_NE(store.box.find(bad)->details.last_error.find("larger than the limit of 262144"),
            std::string::npos);
  EXPECT_EQ(store.box.admin().replay(std::vector<std::string>{bad}), 1U);
  const auto roomy = open(store.server.url())
                         .outbox({.prefix = store.prefix, .inline_limit = std::size_t{1} << 20U});
  const auto claimed = roomy.claim();
  ASSERT_EQ(claimed.events.size(), 1U);
  EXPECT_EQ(claimed.events[0].event.payload.size(), 262'145U);
}

TEST(OutboxOnRedis, ATicketThatCannotBeReadBecomesAParkedEvent) {
  const auto& server = shared_server<redis_server>();
  const auto prefix = "{" + server.unique_prefix("ticket") + "}";
  auto box = open(server.url()).outbox({.prefix = prefix});
  for (const auto* ticket : {"bare", "long", "body", "fine"})
    (void)box.schedule(ticket, std::chrono::milliseconds(1),
                       {.type = "t", .key = "k", .payload = ticket});
  (void)server.run({"HSET", prefix + ":tickets", "bare", "no ticket"});
  (void)server.run({"HSET", prefix + ":tickets", "long", "99:k\"type\":\"t\""});
  (void)server.run({"HSET", prefix + ":tickets", "body", "1:k{{"});
  std::map<std::string, outbox_record> seen;
  for (const auto& record : box.admin().scan(scan_what::tickets).records)
    seen.emplace(record.details.event.id, record);
  ASSERT_EQ(seen.size(), 4U);
  for (const auto* ticket : {"bare", "long", "body"})
    EXPECT_NE(seen.at(ticket).details.last_error.find("cannot be read"), std::string::npos)
        << seen.at(ticket).details.last_error;
  EXPECT_EQ(seen.at("body").details.event.key, "k");
  EXPECT_EQ(seen.at("fine").details.event.payload, "fine");
  std::size_t fired = 0;
  EXPECT_TRUE(eventually([&] { return (fired += box.drain(0).tickets) == 4; }));
  std::vector<std::string> delivered;
  for (int i = 0; i < 8; ++i) {
    const auto claimed = box.claim({.run = 1});
    for (const auto& event : claimed.events) {
      delivered.push_back(event.event.payload);
      EXPECT_TRUE(box.ack(claimed.fence, event));
    }
  }
  EXPECT_EQ(delivered, std::vector<std::string>{"fine"});
  EXPECT_EQ(box.admin().stats().parked, 3U);
}

TEST(OutboxOnRedis, ForgetsOldEffects) {
  const auto& server = shared_server<redis_server>();
  auto box = open(server.url()).outbox({.prefix = "{" + server.unique_prefix("effects") + "}"});
  for (int i = 0; i < 10; ++i) {
    commit_request request;
    request.once = new_event_id();
    EXPECT_EQ(box.backend()
                  ->commit(0, request, {.dedup_window = std::chrono::hours(1), .dedup_limit = 4})
                  .status,
              commit_status::done);
  }
  EXPECT_EQ(box.admin().stats().remembered, 4U);
}

/// A process of the version before acknowledges an event, and does not start the window of its
/// mark.
TEST(OutboxOnRedis, ARepairEndsMarksOfEventsThatAreGone) {
  const written_by_others store;
  const auto mark = "e:" + new_event_id();
  (void)store.server.run({"ZADD", store.prefix + ":done", "9000000000000000", mark});
  EXPECT_EQ(store.box.admin().check().bad_fields, 1U);
  EXPECT_EQ(store.box.admin().check(true).bad_fields, 1U);
  EXPECT_TRUE(store.box.admin().check().well());
  EXPECT_LT(std::stod(store.server.run({"ZSCORE", store.prefix + ":done", mark})), 9e15);
}

TEST(OutboxOnRedis, SurvivesAForgottenScriptInTheMiddle) {
  // A server of its own: other tests count how often a script is sent in full.
  const redis_server server({.durable = false});
  const auto prefix = "{" + server.unique_prefix("flush") + "}";
  auto box = open(server.url()).outbox({.prefix = prefix});
  for (int i = 0; i < 20; ++i) {
    (void)box.publish({.type = "t", .key = "k", .payload = std::to_string(i)});
    if (i % 3 == 0) (void)server.run({"SCRIPT", "FLUSH"});
    const auto claimed = box.claim();
    ASSERT_EQ(claimed.events.size(), 1U);
    EXPECT_EQ(claimed.events[0].event.payload, std::to_string(i));
    if (i % 3 == 1) (void)server.run({"SCRIPT", "FLUSH"});
    EXPECT_TRUE(box.ack(claimed.fence, claimed.events[0]));
  }
}

}  // namespace
}  // namespace holdfast::test
