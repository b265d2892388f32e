// The front of the tiered store against all that the durable store ever had: operations begin,
// happen and end as tasks of the manual executor, in any order, on a virtual clock, with another
// process, faults, and a front so small that entries leave all the time. 200,000 operations;
// HOLDFAST_SEED=n repeats one run.

#include "store/tiered/memory_tier.hpp"
#include "support/manual_executor.hpp"
#include "support/model_store.hpp"
#include "support/seed.hpp"
#include "support/virtual_clock.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

constexpr auto freshness = 50ms;
/// What the payloads begin with of which nobody here knows that they are in the durable store:
/// those of another process, and those whose put failed and happened all the same.
const std::string unknown = "unknown ";

bool is_unknown(const std::optional<entry>& e) {
  return e && e->payload && e->payload->starts_with(unknown);
}

/// What can be wrong with how the store uses its front. Each of these must be found out.
enum class planted : std::uint8_t {
  nothing,
  backfill_unguarded,  // the read's ticket is taken when the answer is there already
  put_unguarded,       // the put is announced when the durable store has taken it
  erase_too_early,     // the front forgets before the durable store does
  expiry_too_early,    // the same for what expired
  front_first          // the front follows before the durable store has answered
};

struct identity {
  std::string name;
  std::string realm;
  std::string key;
  auto operator<=>(const identity&) const = default;
  [[nodiscard]] place where() const { return {name, realm}; }
};

/// One run: the durable store (the model), the front, and the history of what the durable store
/// had.
class world {
 public:
  world(std::uint64_t seed, planted bug) : random_(seed), bug_(bug) {}

  /// The rule that was broken, or nothing.
  std::string run(std::size_t operations) {
    for (std::size_t i = 0; i < operations && broken_.empty(); ++i) {
      begin_something();
      // About as many steps as begin: several operations are always under way.
      for (std::size_t steps = below(7); steps-- > 0;) (void)executor_.run_one(random_);
    }
    while (broken_.empty() && executor_.run_one(random_));
    return broken_;
  }
  std::map<std::string, std::size_t> done{};

 private:
  using moment = std::size_t;  // a number that grows with each step of the world
  struct state {
    moment since = 0;
    std::chrono::steady_clock::time_point time{};
    std::optional<entry> value{};
  };

  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(random_() % bound); }
  identity some_identity() {
    return {.name = "n", .realm = below(4) == 0 ? "acme" : "", .key = std::to_string(below(6))};
  }
  entry some_entry() {
    const identity id = some_identity();
    entry e{.name = id.name,
            .key = id.key,
            // Some versions are the same, some come late, some are from the future.
            .as_of = clock_->now() - 1ms * static_cast<int>(below(below(3) == 0 ? 100 : 4)),
            .payload = std::to_string(++payloads_),
            .payload_class = "test.payload",
            .realm = id.realm};
    if (below(25) == 0) e.as_of = clock_->now() + (below(2) == 0 ? 10ms : 10min);
    e.expire_on = e.as_of + 1ms * static_cast<int>(below(400));
    return e;
  }

  /// Something changed in the durable store, perhaps: note what it has now.
  void note() {
    ++now_;
    for (auto& [id, states] : history_) note(id, states);
  }
  void note(const identity& id, std::vector<state>& states) {
    auto value = durable_.find(id.where(), id.key);
    if (states.empty() || states.back().value != value)
      states.push_back({.since = now_, .time = clock_->steady(), .value = std::move(value)});
  }
  void watch(const identity& id) {
    if (auto& states = history_[id]; states.empty()) states.push_back({});
  }
  /// An operation that was acknowledged was done at that moment: who asks from now on sees that or
  /// something later.
  void acknowledge(const identity& id, moment when) {
    auto& least = acknowledged_[id];
    least = std::max(least, when);
  }

  void begin_something() {
    clock_->advance(1ms * static_cast<int>(below(3)));
    switch (below(12)) {
      case 0:
      case 1:
      case 2:
        return put();
      case 3:
        return erase();
      case 4:
        return below(6) == 0 ? expire() : elsewhere();
      default:
        return find();
    }
  }

  struct asking {
    identity id;
    moment least = 0;  // what had been acknowledged when it began
    std::chrono::steady_clock::time_point time{};
    timestamp wall{};
    detail::store::memory_tier::pending_read pending{};
    std::optional<entry> answer{};
  };
  void find() {
    ++done["find"];
    auto asked = std::make_shared<asking>();
    asked->id = some_identity();
    watch(asked->id);
    asked->least = acknowledged_[asked->id];
    asked->time = clock_->steady();
    asked->wall = clock_->now();
    if (auto held = front_.find(asked->id.where(), asked->id.key); held && held->fresh) {
      ++done["fresh"];
      return judge(*asked, held->value, "in front");
    }
    asked->pending = front_.begin_read(asked->id.where(), asked->id.key);
    executor_.post([this, asked] {
      asked->answer = durable_.find(asked->id.where(), asked->id.key);
      executor_.post([this, asked] {
        if (bug_ == planted::backfill_unguarded)
          asked->pending = front_.begin_read(asked->id.where(), asked->id.key);
        ++done[front_.end_read(asked->pending, asked->id.where(), asked->id.key, asked->answer)
                   ? "backfilled"
                   : "not backfilled"];
        judge(*asked, asked->answer, "durable");
      });
    });
  }
  /// The answer must be something that the durable store had, at or after the last write that was
  /// acknowledged before we asked, and at or after everything that another process wrote longer
  /// than the freshness ago.
  void judge(const asking& asked, const std::optional<entry>& answer, const char* from) {
    const auto& states = history_.at(asked.id);
    moment least = asked.least;
    for (const state& each : states) {
      if (asked.time - each.time > freshness) least = std::max(least, each.since);
    }
    for (std::size_t i = states.size(); i-- > 0;) {
      if (states[i].value == answer) return;
      if (states[i].since <= least) break;
    }
    for (const state& each : ignored_[asked.id]) {
      if (each.value == answer && each.since >= asked.least &&
          asked.wall - answer->as_of <= freshness)
        return;
    }
    const auto named = [](const std::optional<entry>& e) {
      return e ? "version " + e->payload.value_or("tombstone") + " as of " +
                     std::to_string(e->as_of.time_since_epoch().count() % 100'000'000)
               : "nothing";
    };
    broken_ = asked.id.realm + "/" + asked.id.key + ": " + named(answer) + ", " + from + ", at " +
              std::to_string(asked.wall.time_since_epoch().count() % 100'000'000) +
              ", is older than what was acknowledged at step " + std::to_string(asked.least) +
              "; the durable store had";
    for (const state& each : states)
      broken_.append("\n  from step ")
          .append(std::to_string(each.since))
          .append(": ")
          .append(named(each.value));
  }

  void put() {
    ++done["put"];
    auto entries = std::make_shared<std::vector<entry>>();
    const bool fails = below(8) == 0;
    const bool in_doubt = fails && below(2) == 0;
    for (std::size_t i = below(4) == 0 ? 3 : 1; i-- > 0;) {
      entries->push_back(some_entry());
      // To put what is there already is safe, and happens: an erase of that very version may be
      // under way.
      if (const auto held = durable_.find(place(entries->back()), entries->back().key);
          held && below(5) == 0)
        entries->back() = *held;
      if (in_doubt) entries->back().payload = unknown + *entries->back().payload;
      watch({.name = entries->back().name,
             .realm = entries->back().realm,
             .key = entries->back().key});
    }
    auto writing = std::make_shared<std::unique_ptr<detail::store::memory_tier::pending_put>>();
    if (bug_ != planted::put_unguarded)
      *writing = std::make_unique<detail::store::memory_tier::pending_put>(front_, *entries);
    if (bug_ == planted::front_first) (*writing)->commit();
    executor_.post([this, entries, writing, fails, in_doubt] {
      if (!fails || in_doubt) durable_.put(*entries);
      note();
      for (const entry& each : *entries) remember_if_ignored(each);
      const moment when = now_;
      executor_.post([this, entries, writing, fails, when] {
        if (bug_ == planted::put_unguarded)
          *writing = std::make_unique<detail::store::memory_tier::pending_put>(front_, *entries);
        if (!fails && bug_ != planted::front_first) (*writing)->commit();
        writing->reset();
        if (fails) return;
        for (const entry& each : *entries)
          acknowledge({.name = each.name, .realm = each.realm, .key = each.key}, when);
      });
    });
  }

  /// The durable store has something newer of which nobody here knows: what was put may be seen all
  /// the same, for as long as it is fresh.
  void remember_if_ignored(const entry& e) {
    const auto kept = durable_.find(place(e), e.key);
    if (is_unknown(kept) && kept->as_of > e.as_of) {
      ignored_[{.name = e.name, .realm = e.realm, .key = e.key}].push_back(
          {.since = now_, .value = e});
    }
  }

  void erase() {
    ++done["erase"];
    auto id = std::make_shared<identity>(some_identity());
    watch(*id);
    const auto held = durable_.find(id->where(), id->key);
    const timestamp version = held ? held->as_of : clock_->now();
    auto erasing = std::make_shared<std::unique_ptr<detail::store::memory_tier::pending_erase>>();
    *erasing =
        std::make_unique<detail::store::memory_tier::pending_erase>(front_, id->where(), id->key);
    if (bug_ == planted::erase_too_early) {
      (*erasing)->commit();
      erasing->reset();
    }
    const bool fails = below(8) == 0;
    executor_.post([this, id, version, erasing, fails] {
      if (!fails || below(2) == 0) (void)durable_.erase(id->where(), id->key, version);
      note();
      const moment when = now_;
      executor_.post([this, id, erasing, fails, when] {
        if (!fails && *erasing) (*erasing)->commit();
        erasing->reset();
        if (!fails) acknowledge(*id, when);
      });
    });
  }

  void expire() {
    ++done["expire"];
    const auto before = clock_->now() + 100ms;
    auto expiring = std::make_shared<std::unique_ptr<detail::store::memory_tier::pending_expire>>();
    *expiring = std::make_unique<detail::store::memory_tier::pending_expire>(front_, before);
    if (bug_ == planted::expiry_too_early) expiring->reset();
    executor_.post([this, before, expiring] {
      (void)durable_.expire(before, 1000);
      note();
      const moment when = now_;
      // Acknowledged for what it removed. Where nobody knew of that, nobody may know what it had
      // replaced.
      std::vector<identity> removed;
      for (const auto& [id, states] : history_) {
        if (states.back().since != now_) continue;
        const auto& was = states[states.size() - 2].value;
        if (was && !is_unknown(was)) removed.push_back(id);
      }
      executor_.post([this, expiring, when, removed] {
        expiring->reset();
        for (const identity& each : removed) acknowledge(each, when);
      });
    });
  }

  /// Another process: nothing of it comes by here.
  void elsewhere() {
    ++done["elsewhere"];
    entry e = some_entry();
    e.payload = unknown + *e.payload;
    watch({.name = e.name, .realm = e.realm, .key = e.key});
    if (below(3) == 0) {
      if (const auto held = durable_.find(place(e), e.key))
        (void)durable_.erase(place(e), e.key, held->as_of);
    } else if (e.as_of <= clock_->now()) {
      durable_.put(e);
    }
    note();
  }

  std::mt19937_64 random_;
  planted bug_;
  std::shared_ptr<virtual_clock> clock_ = std::make_shared<virtual_clock>();
  manual_executor executor_{};
  model_store durable_{{.clock = clock_}};
  detail::store::memory_tier front_{{.max_entries = 5, .shards = 1}, freshness, clock_};
  moment now_ = 1;
  std::uint64_t payloads_ = 0;
  std::map<identity, std::vector<state>> history_{};
  std::map<identity, std::vector<state>> ignored_{};
  std::map<identity, moment> acknowledged_{};
  std::string broken_{};
};

constexpr std::size_t runs = 200;
constexpr std::size_t operations_of_a_run = 1'000;

TEST(MemoryTier, NeverShowsWhatIsOlderThanWhatWasAcknowledged) {
  const auto only = seed_from_environment();
  const std::uint64_t first = first_seed();
  std::cout << "seed " << first << "\n";
  std::map<std::string, std::size_t> done;
  for (std::size_t i = 0; i < (only ? 1 : runs); ++i) {
    world one(first + i, planted::nothing);
    ASSERT_EQ(one.run(operations_of_a_run), "") << repeated_by(first + i);
    for (const auto& [kind, count] : one.done) done[kind] += count;
  }
  if (only) return;
  for (const char* kind :
       {"find", "fresh", "backfilled", "not backfilled", "put", "erase", "expire", "elsewhere"}) {
    EXPECT_GE(done[kind], 500U) << kind << " was hardly tried";
  }
}

TEST(MemoryTier, AFrontThatIsUsedWronglyIsFoundOut) {
  for (const auto bug :
       {planted::backfill_unguarded, planted::put_unguarded, planted::erase_too_early,
        planted::expiry_too_early, planted::front_first}) {
    std::string broken;
    for (std::uint64_t seed = 1; seed <= 50 && broken.empty(); ++seed)
      broken = world(seed, bug).run(operations_of_a_run);
    EXPECT_NE(broken, "") << "planted bug " << static_cast<int>(bug);
  }
}

}  // namespace
}  // namespace holdfast::test
