// What a store answers without asking the database, in each layer and through all of them, and that
// it never waits.

#include <holdfast/store/compose.hpp>
#include <holdfast/store/memory.hpp>

#include "support/eventually.hpp"
#include "support/failure_of.hpp"
#include "support/faulty_store.hpp"
#include "support/gate.hpp"
#include "support/manual_executor.hpp"
#include "support/model_store.hpp"
#include "support/virtual_clock.hpp"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <utility>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using operation = faulty_store::operation;

const std::string one_key = "k1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

class FindInMemory : public ::testing::Test {
 protected:
  [[nodiscard]] entry make(std::string key, std::string payload,
                           std::chrono::milliseconds ago = 0ms) const {
    return {.name = "n",
            .key = std::move(key),
            .as_of = clock_->now() - ago,
            .expire_on = clock_->now() + 1h,
            .payload = std::move(payload),
            .payload_class = "c"};
  }
  [[nodiscard]] std::shared_ptr<write_behind> queue(write_behind_options options = {}) const {
    options.clock = clock_;
    options.executor = executor_;
    options.refresh_after = 0ms;
    options.linger = 0ms;
    return make_write_behind(database_, std::move(options));
  }
  [[nodiscard]] std::shared_ptr<tiered_store> front(std::shared_ptr<holdfast::store> below,
                                                    tiered_options options = {}) const {
    options.clock = clock_;
    return make_tiered_store(std::move(below), std::move(options));
  }
  /// "current: v", "outdated: v", "current: (none)" or "unknown".
  static std::string memory_of(holdfast::store& asked, std::string_view key) {
    const auto remembered = asked.find_in_memory("n", key);
    if (!remembered.current && !remembered.entry) return "unknown";
    return (remembered.current ? "current: " : "outdated: ") +
           (remembered.entry ? remembered.entry->payload.value_or("(tombstone)") : "(none)");
  }
  void fail_all() const {
    database_->before = [](auto, auto) {
      throw error(errc::unavailable, "the database is down", {.transient = true});
    };
  }

  std::shared_ptr<virtual_clock> clock_ = std::make_shared<virtual_clock>();
  std::shared_ptr<manual_executor> executor_ = std::make_shared<manual_executor>(clock_);
  std::shared_ptr<model_store> model_ =
      std::make_shared<model_store>(model_store_options{.clock = clock_});
  std::shared_ptr<faulty_store> database_ = std::make_shared<faulty_store>(model_);
};

TEST_F(FindInMemory, ADatabaseHasNone) {
  database_->put(make("k", "v"));
  EXPECT_EQ(memory_of(*database_, "k"), "unknown");
  database_->waiting = false;
  EXPECT_EQ(memory_of(*database_, "k"), "current: v") << "a store that never waits is memory";
  EXPECT_EQ(memory_of(*database_, "l"), "current: (none)");
}

TEST_F(FindInMemory, TheQueueDecides) {
  const auto store = queue();
  model_->put(make("written", "v", 1s));
  fail_all();
  EXPECT_EQ(memory_of(*store, "written"), "unknown");
  const auto one = make("k", "v", 1ms);
  store->put(one);
  EXPECT_EQ(memory_of(*store, "k"), "current: v");
  executor_->advance(1min);
  EXPECT_EQ(memory_of(*store, "k"), "current: v") << "also while it is in flight, and fails";
  store->put(make("k", "older", 1min + 2ms));
  EXPECT_EQ(memory_of(*store, "k"), "current: v");
  EXPECT_TRUE(store->erase("n", "k", one.as_of));
  EXPECT_EQ(memory_of(*store, "k"), "current: (none)") << "its erase waits";
  database_->before = {};
  executor_->advance(1min);
  EXPECT_EQ(memory_of(*store, "k"), "unknown") << "the queue is empty";
}

TEST_F(FindInMemory, TheQueueDoesNotDecideWhenSomethingNewerWasReadOrWritten) {
  const auto store = queue();
  store->put(make("k", "ours", 2ms));
  model_->put(make("k", "theirs", 1ms));
  EXPECT_EQ(memory_of(*store, "k"), "current: ours") << "nobody here has heard of theirs";
  EXPECT_EQ(store->find("n", "k")->payload, "theirs");
  EXPECT_EQ(memory_of(*store, "k"), "unknown");
  store->put(make("k", "ours again"));
  EXPECT_EQ(memory_of(*store, "k"), "current: ours again");
  executor_->run_all();
  store->put(make("k", "late", 1s));
  EXPECT_EQ(memory_of(*store, "k"), "unknown") << "a newer one was written";
}

TEST_F(FindInMemory, AnEraseWithoutItsPutDoesNotHideTheStoredVersion) {
  const auto store = queue({.max_entries = 2, .full = when_full::drop_oldest});
  model_->put(make("k", "stored", 2s));
  const auto lost = make("k", "lost", 1s);
  store->put(lost);
  EXPECT_TRUE(store->erase("n", "k", lost.as_of));
  EXPECT_EQ(memory_of(*store, "k"), "current: (none)") << "the queued put replaces what is stored";
  store->put(make("other", "v"));
  ASSERT_EQ(store->numbers().dropped, 1U) << "the put of the lost version; its erase waits";
  EXPECT_EQ(memory_of(*store, "k"), "unknown") << "before a find";
  EXPECT_EQ(store->find("n", "k")->payload, "stored");
  EXPECT_EQ(memory_of(*store, "k"), "unknown") << "after a find";
}

TEST_F(FindInMemory, AQueuedEraseDoesNotHideWhatAnotherProcessWrote) {
  const auto store = queue();
  const auto ours = make("k", "ours", 2s);
  model_->put(ours);
  EXPECT_TRUE(store->erase("n", "k", ours.as_of));
  EXPECT_EQ(memory_of(*store, "k"), "unknown");
  EXPECT_EQ(store->find("n", "k"), std::nullopt);
  model_->put(make("k", "theirs", 1s));
  EXPECT_EQ(memory_of(*store, "k"), "unknown");
  EXPECT_EQ(store->find("n", "k")->payload, "theirs");
}

/// Two rounds of put and erase, of which the second put was given up: the store below has a version
/// between the two, which this process has read.
TEST_F(FindInMemory, AnEraseWithoutItsPutDoesNotVouchForOlderOperations) {
  const auto store = queue({.max_entries = 4, .batch_entries = 2, .full = when_full::drop_oldest});
  const auto first = make("k", "first", 3s);
  const auto second = make("k", "second", 1s);
  store->put(first);
  EXPECT_TRUE(store->erase("n", "k", first.as_of));
  fail_all();
  EXPECT_TRUE(executor_->run_one());
  ASSERT_EQ(store->numbers().batches, 1U) << "both are in flight";
  database_->before = {};
  model_->put(make("k", "theirs", 2s));
  store->put(second);
  EXPECT_TRUE(store->erase("n", "k", second.as_of));
  store->put(make("other", "v"));
  ASSERT_EQ(store->numbers().dropped, 1U) << "the second put";
  EXPECT_EQ(store->find("n", "k")->payload, "theirs");
  EXPECT_EQ(memory_of(*store, "k"), "unknown");
}

TEST_F(FindInMemory, ManyKeysInTheQueueAreFoundThoughTheyShareARecord) {
  const auto store = queue({.remembered = 1});
  for (int i = 0; i < 100; ++i) store->put(make("w" + std::to_string(i), "v", 1s));
  executor_->run_all();
  fail_all();
  for (int i = 0; i < 100; ++i) {
    store->put(make("k" + std::to_string(i), "v"));
    EXPECT_EQ(memory_of(*store, "k" + std::to_string(i)), "current: v");
    EXPECT_EQ(store->find("n", "k" + std::to_string(i))->payload, "v");
  }
}

TEST_F(FindInMemory, TheFrontIsCurrentWhileItIsFresh) {
  const auto store = front(database_, {.freshness = 10s});
  store->put(make("k", "v"));
  EXPECT_EQ(memory_of(*store, "k"), "current: v");
  EXPECT_EQ(store->stats().fresh, 1U);
  clock_->advance(10s + 1us);
  EXPECT_EQ(memory_of(*store, "k"), "outdated: v") << "to be served if the database is silent";
  EXPECT_EQ(memory_of(*store, "l"), "unknown");
  EXPECT_TRUE(store->erase("n", "k", clock_->now() - 10s - 1us));
  EXPECT_EQ(memory_of(*store, "k"), "unknown");
}

TEST_F(FindInMemory, TheFrontYieldsToTheQueueBelow) {
  const auto behind = queue();
  const auto store = front(behind, {.freshness = 10s});
  store->put(make("k", "first"));
  executor_->run_all();
  clock_->advance(1min);
  EXPECT_EQ(memory_of(*store, "k"), "outdated: first");
  behind->put(make("k", "second"));  // not through the front
  EXPECT_EQ(memory_of(*store, "k"), "current: second");
  executor_->run_all();
  fail_all();
  EXPECT_EQ(memory_of(*store, "k"), "unknown") << "the first one is known to be replaced";
  EXPECT_EQ(failure_of([&] { (void)store->find("n", "k"); }).code(), errc::unavailable);
}

/// As an engine composes it: its own queue is above the layers that it was given.
TEST_F(FindInMemory, AQueueAboveTheFrontDecidesOverIt) {
  const auto tiered = front(database_, {.freshness = 10s});
  const auto store =
      make_write_behind(tiered, {.linger = 0ms, .executor = executor_, .clock = clock_});
  tiered->put(make("k", "first"));
  EXPECT_EQ(memory_of(*store, "k"), "current: first") << "fresh in front";
  clock_->advance(1s);
  store->put(make("k", "second"));
  EXPECT_EQ(memory_of(*store, "k"), "current: second");
  clock_->advance(1min);
  EXPECT_EQ(memory_of(*store, "k"), "current: second") << "it waits in the queue";
  executor_->run_all();
  EXPECT_EQ(memory_of(*store, "k"), "outdated: second") << "in front, no longer fresh";
  const auto version = tiered->find("n", "k")->as_of;
  EXPECT_EQ(memory_of(*store, "k"), "current: second");
  EXPECT_TRUE(store->erase("n", "k", version));
  EXPECT_EQ(memory_of(*store, "k"), "current: (none)");
  clock_->advance(1min);
  EXPECT_EQ(memory_of(*store, "k"), "unknown") << "the front does not bring it back";
  EXPECT_EQ(store->find("n", "k"), std::nullopt);
}

TEST_F(FindInMemory, AnEraseWithoutItsPutDoesNotHideTheFrontDuringAnOutage) {
  const auto behind = queue({.max_entries = 2, .full = when_full::drop_oldest});
  const auto store = front(behind, {.freshness = 10s});
  model_->put(make("k", "stored", 2s));
  const auto lost = make("k", "lost", 1s);
  store->put(lost);
  EXPECT_TRUE(store->erase("n", "k", lost.as_of));
  store->put(make("other", "v"));
  ASSERT_EQ(behind->numbers().dropped, 1U) << "the put of the lost version; its erase waits";
  EXPECT_EQ(store->find("n", "k")->payload, "stored");
  clock_->advance(1min);
  fail_all();
  EXPECT_EQ(memory_of(*store, "k"), "outdated: stored");
  EXPECT_EQ(store->find("n", "k")->payload, "stored") << "the database is down";
}

TEST_F(FindInMemory, AReadThatIsUnderWayDoesNotBringBackWhatMemoryHasReplaced) {
  const auto behind = queue();
  const auto store = front(behind, {.freshness = 10s});
  model_->put(make("k", "first", 1s));
  database_->after = [&, once = true](operation op, auto) mutable {
    if (op != operation::find || !std::exchange(once, false)) return;
    behind->put(make("k", "second"));
    EXPECT_EQ(memory_of(*store, "k"), "current: second");
  };
  (void)store->find("n", "k");
  EXPECT_EQ(memory_of(*store, "k"), "current: second");
  executor_->run_all();
  EXPECT_EQ(memory_of(*store, "k"), "unknown");
  EXPECT_EQ(store->find("n", "k")->payload, "second");
}

TEST_F(FindInMemory, AFreshFrontEntryNeedsNoExecutor) {
  /// Refuses every task.
  struct full final : executor {
    bool post(task) override { return false; }
    bool post_after(std::chrono::steady_clock::duration, task) override { return false; }
  };
  const auto store =
      front(queue(), {.freshness = 10s, .read_deadline = 1s, .executor = std::make_shared<full>()});
  store->put(make("k", "v"));
  EXPECT_EQ(store->find("n", "k")->payload, "v");
  clock_->advance(1min);
  EXPECT_EQ(store->find("n", "k")->payload, "v") << "from the queue: the read could not be made";
}

TEST_F(FindInMemory, AReadThatIsLateIsAnsweredFromTheQueueBelow) {
  gate door;
  const auto pool = make_thread_pool();
  const open_in_the_end opener(door);
  const auto behind = queue();
  database_->before = [&](operation op, auto) {
    if (op == operation::find) door.wait();
  };
  for (const bool serve_stale : {true, false}) {
    const auto store =
        front(behind, {.read_deadline = 20ms, .serve_stale = serve_stale, .executor = pool});
    behind->put(make("k", "v"));
    EXPECT_EQ(store->find("n", "k")->payload, "v");
    EXPECT_EQ(store->stats().late, 1U);
    EXPECT_EQ(failure_of([&] { (void)store->find("n", "l"); }).code(), errc::timeout);
  }
  door.open();
  EXPECT_TRUE(eventually([&] { return pool->count().running == 0; }));
}

TEST_F(FindInMemory, SealedEntriesAreOpened) {
  const auto memory = make_memory_store({.clock = clock_});
  const auto store = make_sealed(memory, {.keys = sealing_ring::from_text(one_key)});
  store->put(make("k", "secret"));
  EXPECT_EQ(memory_of(*store, "k"), "current: secret");
  EXPECT_EQ(memory_of(*store, "l"), "current: (none)");
  EXPECT_TRUE(memory_of(*memory, "k").starts_with("current: ENC("));
  memory->put(make("k", "ENC(k1:damaged)"));
  EXPECT_EQ(memory_of(*store, "k"), "unknown") << "find tells what is wrong with it";
  EXPECT_EQ(store->numbers().refused, 0U);
  EXPECT_EQ(failure_of([&] { (void)store->find("n", "k"); }).code(), errc::malformed);
}

TEST_F(FindInMemory, TenantsSeeTheirOwn) {
  const auto store =
      make_tenant_store(make_memory_store({.clock = clock_}), {.tenants = {"acme", "globex"}});
  {
    const tenant_scope scope("acme");
    const auto one = make("k", "acme's");
    store->put(one);
    EXPECT_EQ(store->find_in_memory("n", "k").entry, one) << "above it there are no realms";
  }
  {
    const tenant_scope scope("globex");
    EXPECT_EQ(memory_of(*store, "k"), "current: (none)");
  }
  EXPECT_EQ(failure_of([&] { (void)store->find_in_memory("n", "k"); }).code(), errc::permission);
}

/// All layers above a database that hangs in every operation.
TEST_F(FindInMemory, NeverWaitsForADatabaseThatHangs) {
  gate door;
  const auto pool = make_thread_pool({.threads = 4});
  const open_in_the_end opener(door);
  const auto store =
      compose(database_, {.tenants = tenant_options{.tenants = {"acme"}, .default_tenant = "acme"},
                          .tiered = tiered_options{.freshness = 10s, .clock = clock_},
                          .write_behind = write_behind_options{.linger = 0ms, .clock = clock_},
                          .sealed = sealed_options{.keys = sealing_ring::from_text(one_key)}});
  store->put(make("written", "v"));
  ASSERT_TRUE(store->flush(clock_->steady() + 1h).complete());
  clock_->advance(1min);
  database_->before = [&](auto, auto) { door.wait(); };
  store->put(make("k", "v"));
  // The writer, two readers, and another operation hang at the same time.
  ASSERT_TRUE(eventually([&] { return door.waiting() == 1; }));
  for (const char* key : {"k", "other"})
    (void)pool->post([store, key = std::string(key)] { (void)store->find("n", key); });
  (void)pool->post([store] { (void)store->health(); });
  ASSERT_TRUE(eventually([&] { return door.waiting() >= 2; }));
  auto asked = std::async(std::launch::async, [&] {
    store->put(make("l", "w"));
    std::string all = memory_of(*store, "k") + ", " + memory_of(*store, "l");
    clock_->advance(1min);
    return all + ", " + memory_of(*store, "k") + ", " + memory_of(*store, "written") + ", " +
           memory_of(*store, "other");
  });
  const bool in_time = asked.wait_for(60s) == std::future_status::ready;
  EXPECT_TRUE(in_time);
  door.open();
  EXPECT_EQ(asked.get(), "current: v, current: w, current: v, outdated: v, unknown");
  (void)pool->close(std::chrono::steady_clock::now() + 60s);
}

}  // namespace
}  // namespace holdfast::test
