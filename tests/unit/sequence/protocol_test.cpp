// Walks through the interleavings of the hot path and the slow way, one atomic operation at a time, all of those with at most two
// preemptions: the same code that runs in production, on atomics that hand over to another thread. Sequentially consistent: the order of memory is argued for in window.hpp, and run under TSan.

#include "sequence/lease.hpp"

#include <gtest/gtest.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::test {
namespace {

/// Runs threads so that exactly one moves at a time; at each step somebody decides who.
class stage {
 public:
  explicit stage(std::vector<std::size_t> decisions) : decisions_(std::move(decisions)) {}

  static stage*& current() {
    static stage* on = nullptr;
    return on;
  }

  void run(const std::vector<std::function<void()>>& parts) {
    current() = this;
    alive_.assign(parts.size(), true);
    {
      std::vector<std::jthread> threads;
      threads.reserve(parts.size());
      for (std::size_t i = 0; i < parts.size(); ++i) {
        threads.emplace_back([&, i] {
          me() = i;
          wait_for_turn();
          parts[i]();
          const std::scoped_lock lock(mutex_);
          alive_[i] = false;
          pass_on(nobody);
        });
      }
      const std::scoped_lock lock(mutex_);
      pass_on(nobody);
    }
    current() = nullptr;
  }

  /// Before each step of a thread that is on a stage.
  static void step() {
    if (stage* on = current(); on != nullptr && me() != nobody) on->yield();
  }

  /// A lock on this stage: taken in one step, by whoever finds it free.
  void lock() {
    for (;;) {
      yield();
      const std::scoped_lock guard(mutex_);
      if (!held_) {
        held_ = true;
        return;
      }
      blocked_.insert(me());
    }
  }
  void unlock() {
    const std::scoped_lock guard(mutex_);
    held_ = false;
    blocked_.clear();
  }

  /// How many could have moved at each decision.
  [[nodiscard]] const std::vector<std::size_t>& choices() const { return choices_; }

 private:
  static constexpr std::size_t nobody = SIZE_MAX;
  static std::size_t& me() {
    thread_local std::size_t mine = nobody;
    return mine;
  }

  void yield() {
    {
      const std::scoped_lock lock(mutex_);
      pass_on(me());
      if (turn_ == me()) return;
    }
    wait_for_turn();
  }

  void wait_for_turn() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return turn_ == me(); });
  }

  /// The one that moves goes on, unless a decision says otherwise; that is a preemption, and there are few. Who cannot go on costs nothing.
  void pass_on(std::size_t mover) {
    std::vector<std::size_t> able;
    const bool goes_on = mover != nobody && !blocked_.contains(mover);
    if (goes_on) able.push_back(mover);
    for (std::size_t i = 0; i < alive_.size(); ++i) {
      if (i != mover && alive_[i] && !blocked_.contains(i)) able.push_back(i);
    }
    if (able.empty()) return;
    if (goes_on && preemptions_ == most_preemptions) able.resize(1);
    std::size_t which = 0;
    if (able.size() > 1) {
      const std::size_t at = choices_.size();
      if (at < decisions_.size()) which = decisions_[at];
      choices_.push_back(able.size());
    }
    if (goes_on && which != 0) ++preemptions_;
    turn_ = able[which];
    changed_.notify_all();
  }

  static constexpr int most_preemptions = 2;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<bool> alive_;
  std::set<std::size_t> blocked_;
  std::size_t turn_ = nobody - 1;
  bool held_ = false;
  int preemptions_ = 0;
  const std::vector<std::size_t> decisions_;
  std::vector<std::size_t> choices_;
};

/// An atomic whose every operation is a step.
template <class T>
class stepped {
 public:
  stepped(T value = {}) : value_(value) {}  // NOLINT(google-explicit-constructor): as std::atomic
  T load(std::memory_order) const {
    stage::step();
    return value_;
  }
  void store(T value, std::memory_order) {
    stage::step();
    value_ = value;
  }
  T fetch_add(T by, std::memory_order) {
    stage::step();
    return std::exchange(value_, value_ + by);
  }
  bool compare_exchange_strong(T& expected, T wanted, std::memory_order) {
    stage::step();
    if (value_ != expected) {
      expected = value_;
      return false;
    }
    value_ = wanted;
    return true;
  }
  bool compare_exchange_weak(T& expected, T wanted, std::memory_order order) { return compare_exchange_strong(expected, wanted, order); }

 private:
  T value_;
};

using window = detail::basic_sequence_window<stepped>;
using stepped_lease = detail::basic_lease<stepped>;

/// The slow way in little: blocks are ready, a lock guards them, and whoever finds none gives its ticket up.
struct world {
  explicit world(std::vector<std::pair<std::int64_t, std::int64_t>> ready) : blocks(std::move(ready)) {
    for (const auto& [first, last] : blocks) {
      for (auto i = first; i <= last; ++i) owned.insert(i);
    }
  }

  std::int64_t next() {
    for (;;) {
      const auto mine = shared.draw();
      if (mine.sure) return shared.id(mine.ticket);
      stage& on = *stage::current();
      on.lock();
      std::int64_t id = 0;
      const auto verdict = settle(mine.ticket, id);
      on.unlock();
      if (verdict == 'y') return id;
      if (verdict == 'n') return 0;
    }
  }

  char settle(std::uint64_t mine, std::int64_t& id) {
    for (;;) {
      switch (held.look(mine, 1)) {
        case stepped_lease::verdict::owned:
          id = held.ordinal(mine);
          if (held.past_soft(mine, 1)) held.publish(0);
          return 'y';
        case stepped_lease::verdict::redraw:
          return 'r';
        case stepped_lease::verdict::beyond:
          break;
      }
      if (!bring()) {
        held.give_up(mine, 1);
        return 'n';
      }
    }
  }

  bool bring() {
    if (brought == blocks.size() || closed || (brought != 0 && only_refiller)) return false;
    return take_next();
  }

  bool take_next() {
    const auto [first, last] = blocks[brought++];
    if (held.follows(first)) held.extend(last, 1);
    else held.replace(first, last, 1);
    return true;
  }

  /// The refiller's thread: a block comes while others draw.
  void refill() {
    stage& on = *stage::current();
    on.lock();
    if (brought < blocks.size() && held.follows(blocks[brought].first)) take_next();
    on.unlock();
  }

  void close() {
    stage& on = *stage::current();
    on.lock();
    closed = true;
    const auto from = held.take_rest();
    for (auto i = from; i < held.ordinal(held.high()); ++i) rest.push_back(i);
    held.publish(0);
    on.unlock();
  }

  window shared{};
  stepped_lease held{shared, true};
  std::vector<std::pair<std::int64_t, std::int64_t>> blocks;
  std::size_t brought = 0;
  bool closed = false;
  bool only_refiller = false;  // who finds nothing gives up
  std::set<std::int64_t> owned{};
  std::vector<std::int64_t> rest{};
};

/// Tries every decision, depth first. Each run must satisfy the check.
void explore(const std::vector<std::pair<std::int64_t, std::int64_t>>& blocks, int drawers, int each, bool refills, bool closes,
             bool only_refiller = false) {
  std::vector<std::size_t> decisions;
  std::size_t runs = 0;
  for (;; ++runs) {
    world at(blocks);
    at.only_refiller = only_refiller;
    std::vector<std::vector<std::int64_t>> drawn(static_cast<std::size_t>(drawers));
    std::vector<std::function<void()>> parts;
    parts.reserve(drawn.size() + 2);
    for (auto& mine : drawn) {
      parts.emplace_back([&at, &mine, each] {
        for (int k = 0; k < each; ++k) mine.push_back(at.next());
      });
    }
    if (refills) parts.emplace_back([&at] { at.refill(); });
    if (closes) parts.emplace_back([&at] { at.close(); });
    stage on(decisions);
    on.run(parts);

    std::multiset<std::int64_t> all(at.rest.begin(), at.rest.end());
    for (const auto& mine : drawn) {
      std::int64_t before = 0;
      for (const auto id : mine) {
        if (id == 0) continue;
        ASSERT_GT(id, before) << "ids of one thread grow; run " << runs;
        before = id;
        all.insert(id);
      }
    }
    for (const auto id : all) {
      ASSERT_EQ(all.count(id), 1U) << "the id " << id << " came twice; run " << runs;
      ASSERT_TRUE(at.owned.contains(id)) << "the id " << id << " was never leased; run " << runs;
    }
    // The next branch: the last decision that has another choice.
    const auto& choices = on.choices();
    decisions.resize(choices.size(), 0);
    while (!decisions.empty() && decisions.back() + 1 >= choices[decisions.size() - 1]) decisions.pop_back();
    if (decisions.empty()) break;
    ++decisions.back();
  }
  EXPECT_GT(runs, 100U) << "so few interleavings are no test";
  ::testing::Test::RecordProperty("interleavings", static_cast<int>(runs));
}

TEST(SequenceProtocol, ABlockThatFollowsIsTakenInPlace) { explore({{1, 2}, {3, 4}}, 2, 2, false, false); }
TEST(SequenceProtocol, AnotherProcessHadTheBlocksBetween) { explore({{1, 2}, {11, 12}}, 2, 2, false, false); }
TEST(SequenceProtocol, ABlockComesWhileOthersDraw) { explore({{1, 1}, {2, 3}}, 2, 1, true, false); }
TEST(SequenceProtocol, TheRestIsTakenWhileOthersDraw) { explore({{1, 3}, {4, 5}}, 2, 1, false, true); }
TEST(SequenceProtocol, TicketsGivenUpAreNobodys) { explore({{1, 1}}, 3, 1, false, false); }
TEST(SequenceProtocol, TicketsGivenUpAreDrawnAgainByOneOnly) { explore({{1, 1}, {2, 5}}, 2, 3, true, false, true); }

}  // namespace
}  // namespace holdfast::test
