// The decorators of the store against a simple map: a read never gives a value older than an
// acknowledged one, never brings back an erased version, never crosses realms; a crash loses at
// most what was not flushed. 200,000 steps; HOLDFAST_SEED=n repeats one run.

#include "store_model.hpp"

#include <holdfast/store/memory.hpp>
#include <holdfast/store/sealed.hpp>
#include <holdfast/store/tenants.hpp>
#include <holdfast/store/tiered.hpp>

#include "store/write_behind/store.hpp"
#include "support/seed.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <iostream>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace holdfast::test {
namespace {

constexpr std::size_t runs = 200;
constexpr std::size_t steps_of_a_run = 1'000;
constexpr std::chrono::milliseconds freshness{200};  // of the memory in front

template <class Rules = detail::store::queue_rules>
model_stack write_behind_only(const model_world& world, const write_behind_options& options) {
  const auto store =
      detail::store::make_write_behind(world.faulty, options, std::make_shared<Rules>());
  return {.top = store, .behind = store};
}

/// Memory in front, small and brief, so that entries leave it and are read again. It still shows
/// what the queue below it gives up, and need not show at once what a caller wrote through in
/// doubt: so puts that find no room are refused here, and nothing is quarantined.
void give_nothing_up(write_behind_options& options) {
  options.full = when_full::block;
  options.quarantine_after = 1'000'000;
}

model_stack tiered_on_write_behind(const model_world& world, write_behind_options options) {
  give_nothing_up(options);
  const auto behind = make_write_behind(world.faulty, options);
  return {.top = make_tiered_store(
              behind, {.max_entries = 8, .freshness = freshness, .clock = world.clock}),
          .behind = behind,
          .freshness = freshness};
}

/// Callers of several tenants: whatever realm an operation is about is that of the one who makes
/// it. `who` gives the tenant of a realm.
class callers final : public store {
 public:
  using tenant_of = std::string (*)(std::string_view realm);
  callers(std::shared_ptr<store> to, tenant_of who)
      : to_(make_tenant_store(std::move(to), {.tenants = {"nobody", "a", "b"}})), who_(who) {}

  void put(std::span<const entry> entries) override {
    std::map<std::string, std::vector<entry>> by_realm;
    for (const entry& each : entries) by_realm[each.realm].push_back(each);
    bool first = true;
    for (auto& [realm, some] : by_realm) {
      const tenant_scope scope(who_(realm));
      for (entry& each : some) each.realm.clear();
      try {
        to_->put(some);
      } catch (const error&) {
        if (first) throw;
        throw error(errc::unavailable, "some tenants' entries were put, some were not");
      }
      first = false;
    }
  }
  std::optional<entry> find(place where, std::string_view key) override {
    const tenant_scope scope(who_(where.realm));
    auto found = to_->find(place(where.name), key);
    if (found) found->realm = where.realm;
    return found;
  }
  remembered_entry find_in_memory(place where, std::string_view key) override {
    const tenant_scope scope(who_(where.realm));
    auto found = to_->find_in_memory(place(where.name), key);
    if (found.entry) found.entry->realm = where.realm;
    return found;
  }
  entry_page find_all(place where, std::size_t limit, std::string_view after) override {
    const tenant_scope scope(who_(where.realm));
    auto page = to_->find_all(place(where.name), limit, after);
    for (entry& each : page.entries) each.realm = where.realm;
    return page;
  }
  bool erase(place where, std::string_view key, timestamp as_of) override {
    const tenant_scope scope(who_(where.realm));
    return to_->erase(place(where.name), key, as_of);
  }
  std::size_t expire(timestamp before, std::size_t limit) override {
    return to_->expire(before, limit);
  }
  std::uint64_t count(place where) override {
    const tenant_scope scope(who_(where.realm));
    return to_->count(place(where.name));
  }
  store_health health() noexcept override { return to_->health(); }

 private:
  std::shared_ptr<tenant_store> to_;
  tenant_of who_;
};

std::string own_tenant(std::string_view realm) {
  return realm.empty() ? "nobody" : std::string(realm);
}

std::shared_ptr<store> sealed(const std::shared_ptr<store>& below) {
  sealed_options how;
  constexpr std::array<std::byte, sealing_key::size> key{std::byte{7}};
  how.keys.add("model", sealing_key::from_bytes(key));
  return make_sealed(below, std::move(how));
}

/// All of them: tenants, memory in front, the queue, encryption.
model_stack whole_stack(const model_world& world, write_behind_options options) {
  give_nothing_up(options);
  const auto behind = make_write_behind(sealed(world.faulty), options);
  const auto tiered =
      make_tiered_store(behind, {.max_entries = 8, .freshness = freshness, .clock = world.clock});
  return {.top = std::make_shared<callers>(tiered, own_tenant),
          .behind = behind,
          .freshness = freshness,
          .durable = std::make_shared<callers>(sealed(world.bottom), own_tenant)};
}

/// The rule that was broken first, and how often each kind of step was taken; runs until then.
std::string first_broken(const make_stack& make, std::uint64_t seed, std::size_t most_runs,
                         std::map<std::string, std::size_t>* done = nullptr) {
  for (std::size_t run = 0; run < most_runs; ++run) {
    model_run one(seed + run, make);
    try {
      one.steps(steps_of_a_run);
    } catch (const broken_rule& broken) {
      return broken.what();
    }
    if (done == nullptr) continue;
    for (const auto& [kind, count] : one.done()) (*done)[kind] += count;
  }
  return {};
}

void keeps_the_rules(const make_stack& make, std::initializer_list<const char*> more) {
  const auto only = seed_from_environment();
  const auto seed = first_seed();
  std::cout << "seed " << seed << (only ? ", this run only" : "") << "\n";
  std::map<std::string, std::size_t> done;
  const auto broken = first_broken(make, seed, only ? 1 : runs, &done);
  EXPECT_EQ(broken, "") << "HOLDFAST_SEED="
                        << broken.substr(broken.find("(seed ") + 6,
                                         broken.rfind(", step") - broken.find("(seed ") - 6)
                        << " repeats it";
  if (only || !broken.empty()) return;
  std::vector<const char*> kinds{"put",    "erase", "find",  "recall",    "current", "scan",
                                 "expire", "flush", "crash", "elsewhere", "task",    "time"};
  kinds.insert(kinds.end(), more);
  for (const char* kind : kinds) EXPECT_GE(done[kind], 500U) << kind << " was hardly tried";
}

/// The rules are checked, or the test is worth nothing: a stack with a planted bug is found out.
std::string found_out(const make_stack& make) { return first_broken(make, 1, 50); }

TEST(StoreModel, WriteBehindKeepsTheRules) {
  keeps_the_rules(write_behind_only<>, {"not in memory"});
}

TEST(StoreModel, TieredOnWriteBehindKeepsTheRules) {
  keeps_the_rules(tiered_on_write_behind, {"not in memory", "not current"});
}

TEST(StoreModel, TenantsTieredWriteBehindAndSealedKeepTheRulesTogether) {
  keeps_the_rules(whole_stack, {"not in memory", "not current"});
}

/// A seed that broke a rule of the model itself: a put that lost to another machine's version stays
/// in memory when it is not fresh any more, and is given there as not current.
TEST(StoreModel, MemoryKeepsWhatIsNotFresh) {
  constexpr std::uint64_t seed = 486'443'114;
  EXPECT_EQ(first_broken(whole_stack, seed, 1), "");
}

/// A seed in which the queue dropped a put, but not the erase of its version. Memory then said that
/// there is no entry, although the store has an older one.
TEST(StoreModel, AnEraseWithoutItsPutHidesNothing) {
  constexpr std::uint64_t seed = 1'834'877'134;
  EXPECT_EQ(first_broken(write_behind_only<>, seed, 1), "");
}

/// Two seeds in which a put expired while it was written again and again. An older put, queued
/// after it, was then written, although the newer version had been acknowledged first.
TEST(StoreModel, AnExpiredPutThatFailsIsNotFollowedByAnOlderOne) {
  constexpr std::uint64_t in_a_find = 1'866'756'321;
  constexpr std::uint64_t after_a_flush = 312'492'697;
  EXPECT_EQ(first_broken(write_behind_only<>, in_a_find, 1), "");
  EXPECT_EQ(first_broken(whole_stack, after_a_flush, 1), "");
}

TEST(StoreModel, FindsOutTenantsThatMeet) {
  const auto broken = found_out([](const model_world& world, const write_behind_options& options) {
    const auto behind = make_write_behind(sealed(world.faulty), options);
    const auto mixed_up = [](std::string_view realm) {
      return realm == "b" ? std::string("a") : own_tenant(realm);
    };
    return model_stack{.top = std::make_shared<callers>(behind, mixed_up),
                       .behind = behind,
                       .durable = std::make_shared<callers>(sealed(world.bottom), mixed_up)};
  });
  EXPECT_NE(broken, "");
}

TEST(StoreModel, FindsOutReadsThatSkipWhatIsInFlight) {
  struct planted final : detail::store::queue_rules {
    [[nodiscard]] bool reads_in_flight() const noexcept override { return false; }
  };
  EXPECT_NE(found_out(write_behind_only<planted>), "");
}

TEST(StoreModel, FindsOutAQueueWithoutTheGuardOfAsOf) {
  struct planted final : detail::store::queue_rules {
    [[nodiscard]] bool replaces(const entry&, const entry&, timestamp) const noexcept override {
      return true;
    }
  };
  EXPECT_NE(found_out(write_behind_only<planted>), "");
}

TEST(StoreModel, FindsOutAStoreWithoutTheGuardOfAsOf) {
  /// The later arrival stays, whatever its version.
  class careless final : public store {
   public:
    explicit careless(std::shared_ptr<store> to) : to_(std::move(to)) {}
    void put(std::span<const entry> entries) override {
      for (const entry& each : entries) {
        if (const auto there = to_->find(place(each), each.key))
          to_->erase(place(each), each.key, there->as_of);
        to_->put({&each, 1});
      }
    }
    std::optional<entry> find(place where, std::string_view key) override {
      return to_->find(where, key);
    }
    entry_page find_all(place where, std::size_t limit, std::string_view after) override {
      return to_->find_all(where, limit, after);
    }
    bool erase(place where, std::string_view key, timestamp as_of) override {
      return to_->erase(where, key, as_of);
    }
    std::size_t expire(timestamp before, std::size_t limit) override {
      return to_->expire(before, limit);
    }
    std::uint64_t count(place where) override { return to_->count(where); }
    store_health health() noexcept override { return to_->health(); }

   private:
    std::shared_ptr<store> to_;
  };
  EXPECT_NE(found_out([](const model_world& world, const write_behind_options& options) {
              const auto made =
                  make_write_behind(std::make_shared<careless>(world.faulty), options);
              return model_stack{.top = made, .behind = made};
            }),
            "");
}

TEST(StoreModel, FindsOutABackfillAfterAnErase) {
  /// Memory in front, filled by every read, whatever was erased meanwhile.
  class naive_tier final : public store {
   public:
    naive_tier(std::shared_ptr<store> to, std::shared_ptr<const clock> time)
        : front_(make_memory_store({.clock = std::move(time)})), to_(std::move(to)) {}
    void put(std::span<const entry> entries) override {
      to_->put(entries);
      for (const entry& each : entries) drop(place(each), each.key);
    }
    std::optional<entry> find(place where, std::string_view key) override {
      if (auto found = front_->find(where, key)) return found;
      auto found = to_->find(where, key);
      if (found) front_->put({&*found, 1});
      return found;
    }
    entry_page find_all(place where, std::size_t limit, std::string_view after) override {
      return to_->find_all(where, limit, after);
    }
    bool erase(place where, std::string_view key, timestamp as_of) override {
      drop(where, key);
      return to_->erase(where, key, as_of);
    }
    std::size_t expire(timestamp before, std::size_t limit) override {
      (void)front_->expire(before, 1'000);
      return to_->expire(before, limit);
    }
    std::uint64_t count(place where) override { return to_->count(where); }
    store_health health() noexcept override { return to_->health(); }

   private:
    void drop(place where, std::string_view key) {
      if (const auto there = front_->find(where, key)) front_->erase(where, key, there->as_of);
    }
    std::shared_ptr<store> front_;
    std::shared_ptr<store> to_;
  };
  const auto broken = found_out([](const model_world& world, write_behind_options options) {
    give_nothing_up(options);
    const auto behind = make_write_behind(world.faulty, options);
    return model_stack{.top = std::make_shared<naive_tier>(behind, world.clock),
                       .behind = behind,
                       .freshness = std::chrono::hours(1)};
  });
  EXPECT_NE(broken, "");
}

TEST(StoreModel, FindsOutMemoryThatIsTakenForFreshForTooLong) {
  const auto broken = found_out([](const model_world& world, const write_behind_options& options) {
    auto stack = tiered_on_write_behind(world, options);
    stack.freshness -= freshness / 4;
    return stack;
  });
  EXPECT_NE(broken, "");
}

TEST(StoreModel, FindsOutMemoryThatForgetsNothing) {
  /// Gives from memory whatever was found last.
  class never_forgets final : public store {
   public:
    explicit never_forgets(std::shared_ptr<store> to) : to_(std::move(to)) {}
    void put(std::span<const entry> entries) override { to_->put(entries); }
    std::optional<entry> find(place where, std::string_view key) override {
      auto found = to_->find(where, key);
      last_[{std::string(where.realm), std::string(where.name), std::string(key)}] = found;
      return found;
    }
    remembered_entry find_in_memory(place where, std::string_view key) override {
      const auto last =
          last_.find({std::string(where.realm), std::string(where.name), std::string(key)});
      if (last == last_.end()) return {};
      return {.entry = last->second, .current = true};
    }
    entry_page find_all(place where, std::size_t limit, std::string_view after) override {
      return to_->find_all(where, limit, after);
    }
    bool erase(place where, std::string_view key, timestamp as_of) override {
      return to_->erase(where, key, as_of);
    }
    std::size_t expire(timestamp before, std::size_t limit) override {
      return to_->expire(before, limit);
    }
    std::uint64_t count(place where) override { return to_->count(where); }
    store_health health() noexcept override { return to_->health(); }

   private:
    std::shared_ptr<store> to_;
    std::map<std::tuple<std::string, std::string, std::string>, std::optional<entry>> last_{};
  };
  EXPECT_NE(found_out([](const model_world& world, const write_behind_options& options) {
              const auto made = make_write_behind(world.faulty, options);
              return model_stack{.top = std::make_shared<never_forgets>(made), .behind = made};
            }),
            "");
}

TEST(StoreModel, FindsOutAFlushThatLies) {
  /// Says that it wrote what it did not.
  class forgetful final : public store {
   public:
    explicit forgetful(std::shared_ptr<store> to) : to_(std::move(to)) {}
    void put(std::span<const entry> entries) override {
      if (++puts_ % 50 != 0) to_->put(entries);
    }
    std::optional<entry> find(place where, std::string_view key) override {
      return to_->find(where, key);
    }
    entry_page find_all(place where, std::size_t limit, std::string_view after) override {
      return to_->find_all(where, limit, after);
    }
    bool erase(place where, std::string_view key, timestamp as_of) override {
      return to_->erase(where, key, as_of);
    }
    std::size_t expire(timestamp before, std::size_t limit) override {
      return to_->expire(before, limit);
    }
    std::uint64_t count(place where) override { return to_->count(where); }
    store_health health() noexcept override { return to_->health(); }

   private:
    std::shared_ptr<store> to_;
    int puts_ = 0;
  };
  EXPECT_NE(found_out([](const model_world& world, const write_behind_options& options) {
              const auto made =
                  make_write_behind(std::make_shared<forgetful>(world.faulty), options);
              return model_stack{.top = made, .behind = made};
            }),
            "");
}

}  // namespace
}  // namespace holdfast::test
