// Runs the interleavings of the fast path and the slow path, one atomic operation at a time: all of
// those with at most two preemptions. It is the same code as in production, on atomics that hand
// over to another thread. Memory is sequentially consistent here; window.hpp argues for the memory
// orders, and TSan checks them.

#include "sequence/id_lease.hpp"

#include <gtest/gtest.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::test {
namespace {

/// Runs threads so that only one of them moves at a time. `decisions` says which thread moves next,
/// at each step where there is a choice.
class scheduler {
 public:
  explicit scheduler(std::vector<std::size_t> decisions) : decisions_(std::move(decisions)) {}

  static scheduler*& current() {
    static scheduler* running = nullptr;
    return running;
  }

  void run(const std::vector<std::function<void()>>& bodies) {
    current() = this;
    alive_.assign(bodies.size(), true);
    {
      std::vector<std::jthread> threads;
      threads.reserve(bodies.size());
      for (std::size_t i = 0; i < bodies.size(); ++i) {
        threads.emplace_back([&, i] {
          this_thread() = i;
          wait_for_turn();
          bodies[i]();
          const std::scoped_lock lock(mutex_);
          alive_[i] = false;
          choose_next(no_thread);
        });
      }
      const std::scoped_lock lock(mutex_);
      choose_next(no_thread);
    }
    current() = nullptr;
  }

  /// Called before each atomic operation. Does nothing outside of `run`.
  static void step() {
    if (scheduler* running = current(); running != nullptr && this_thread() != no_thread)
      running->yield();
  }

  /// A lock for the threads that this object runs. Taking it is one step.
  void lock() {
    for (;;) {
      yield();
      const std::scoped_lock guard(mutex_);
      if (!locked_) {
        locked_ = true;
        return;
      }
      blocked_.insert(this_thread());
    }
  }
  void unlock() {
    const std::scoped_lock guard(mutex_);
    locked_ = false;
    blocked_.clear();
  }

  /// How many threads could have moved, for each decision.
  [[nodiscard]] const std::vector<std::size_t>& choices() const { return choices_; }

 private:
  static constexpr std::size_t no_thread = SIZE_MAX;
  static constexpr int max_preemptions = 2;

  static std::size_t& this_thread() {
    thread_local std::size_t index = no_thread;
    return index;
  }

  void yield() {
    {
      const std::scoped_lock lock(mutex_);
      choose_next(this_thread());
      if (turn_ == this_thread()) return;
    }
    wait_for_turn();
  }

  void wait_for_turn() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return turn_ == this_thread(); });
  }

  /// The running thread continues unless a decision says otherwise. Such a preemption is counted;
  /// changing to another thread because the running one is blocked is not.
  void choose_next(std::size_t running) {
    std::vector<std::size_t> ready;
    const bool can_continue = running != no_thread && !blocked_.contains(running);
    if (can_continue) ready.push_back(running);
    for (std::size_t i = 0; i < alive_.size(); ++i) {
      if (i != running && alive_[i] && !blocked_.contains(i)) ready.push_back(i);
    }
    if (ready.empty()) return;
    if (can_continue && preemptions_ == max_preemptions) ready.resize(1);
    std::size_t choice = 0;
    if (ready.size() > 1) {
      const std::size_t index = choices_.size();
      if (index < decisions_.size()) choice = decisions_[index];
      choices_.push_back(ready.size());
    }
    if (can_continue && choice != 0) ++preemptions_;
    turn_ = ready[choice];
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<bool> alive_;
  std::set<std::size_t> blocked_;
  std::size_t turn_ = no_thread - 1;
  bool locked_ = false;
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
    scheduler::step();
    return value_;
  }
  void store(T value, std::memory_order) {
    scheduler::step();
    value_ = value;
  }
  T fetch_add(T difference, std::memory_order) {
    scheduler::step();
    return std::exchange(value_, value_ + difference);
  }
  bool compare_exchange_strong(T& expected, T desired, std::memory_order) {
    scheduler::step();
    if (value_ != expected) {
      expected = value_;
      return false;
    }
    value_ = desired;
    return true;
  }
  bool compare_exchange_weak(T& expected, T desired, std::memory_order order) {
    return compare_exchange_strong(expected, desired, order);
  }

 private:
  T value_;
};

using window = detail::sequence::basic_ticket_window<stepped>;
using lease = detail::sequence::basic_id_lease<stepped>;
/// First and last ordinal.
using block = std::pair<std::int64_t, std::int64_t>;

/// A small slow path: the blocks are ready, a lock guards the lease, and a thread that finds no
/// block puts its ticket back.
struct small_sequence {
  explicit small_sequence(std::vector<block> ready) : blocks(std::move(ready)) {
    for (const auto& [first, last] : blocks) {
      for (auto i = first; i <= last; ++i) all_ids.insert(i);
    }
  }

  /// Nothing: there is no block any more.
  std::optional<std::int64_t> next() {
    for (;;) {
      const auto drawn = tickets.draw();
      if (drawn.is_id) return tickets.id(drawn.ticket);
      scheduler& running = *scheduler::current();
      running.lock();
      std::optional<std::int64_t> id;
      const bool settled = settle(drawn.ticket, id);
      running.unlock();
      if (settled) return id;
    }
  }

  /// Returns false if the thread must draw again.
  bool settle(std::uint64_t ticket, std::optional<std::int64_t>& id) {
    for (;;) {
      switch (leased.position_of(ticket, 1)) {
        case lease::position::leased:
          id = leased.ordinal(ticket);
          if (leased.in_margin(ticket, 1)) leased.publish(0);
          return true;
        case lease::position::passed:
          return false;
        case lease::position::beyond:
          break;
      }
      if (installed == blocks.size() || closed || (installed != 0 && only_refiller)) {
        leased.put_back(ticket, 1);
        return true;
      }
      install_next();
    }
  }

  void install_next() {
    const auto [first, last] = blocks[installed++];
    if (leased.is_continued_by(first)) leased.extend(last, 1);
    else leased.replace(first, last, 1);
  }

  /// The refiller's thread: a block comes while others draw.
  void refill() {
    scheduler& running = *scheduler::current();
    running.lock();
    if (installed < blocks.size() && leased.is_continued_by(blocks[installed].first))
      install_next();
    running.unlock();
  }

  void close() {
    scheduler& running = *scheduler::current();
    running.lock();
    closed = true;
    const auto first = leased.take_remaining();
    for (auto i = first; i < leased.ordinal(leased.end()); ++i) unused.push_back(i);
    leased.publish(0);
    running.unlock();
  }

  window tickets{};
  lease leased{tickets, true};
  std::vector<block> blocks;
  std::size_t installed = 0;
  bool closed = false;
  /// Only the refiller installs blocks, after the first one.
  bool only_refiller = false;
  std::set<std::int64_t> all_ids{};
  std::vector<std::int64_t> unused{};
};

struct scenario {
  std::vector<block> blocks{};
  std::size_t drawing_threads = 2;
  int ids_per_thread = 1;
  bool refills = false;
  bool closes = false;
  bool only_refiller = false;
};

/// No id comes twice, every id was leased, and the ids of one thread grow.
void check_ids(const small_sequence& sequence,
               const std::vector<std::vector<std::int64_t>>& ids_of_threads) {
  std::multiset<std::int64_t> all(sequence.unused.begin(), sequence.unused.end());
  for (const auto& ids : ids_of_threads) {
    std::int64_t previous = 0;
    for (const auto id : ids) {
      ASSERT_GT(id, previous) << "ids of one thread must grow";
      previous = id;
      all.insert(id);
    }
  }
  for (const auto id : all) {
    ASSERT_EQ(all.count(id), 1U) << "the id " << id << " came twice";
    ASSERT_TRUE(sequence.all_ids.contains(id)) << "the id " << id << " was never leased";
  }
}

/// Tries every decision, depth first.
void explore(const scenario& scenario) {
  std::vector<std::size_t> decisions;
  std::size_t runs = 0;
  for (;; ++runs) {
    small_sequence sequence(scenario.blocks);
    sequence.only_refiller = scenario.only_refiller;
    std::vector<std::vector<std::int64_t>> ids_of_threads(scenario.drawing_threads);
    std::vector<std::function<void()>> bodies;
    for (auto& ids : ids_of_threads) {
      bodies.emplace_back([&] {
        for (int i = 0; i < scenario.ids_per_thread; ++i) {
          if (const auto id = sequence.next()) ids.push_back(*id);
        }
      });
    }
    if (scenario.refills) bodies.emplace_back([&] { sequence.refill(); });
    if (scenario.closes) bodies.emplace_back([&] { sequence.close(); });
    scheduler schedule(decisions);
    schedule.run(bodies);
    SCOPED_TRACE("run " + std::to_string(runs));
    check_ids(sequence, ids_of_threads);
    if (::testing::Test::HasFatalFailure()) return;

    // The next branch: the last decision that has another choice.
    const auto& choices = schedule.choices();
    decisions.resize(choices.size(), 0);
    while (!decisions.empty() && decisions.back() + 1 >= choices[decisions.size() - 1])
      decisions.pop_back();
    if (decisions.empty()) break;
    ++decisions.back();
  }
  EXPECT_GT(runs, 100U) << "too few interleavings for a test";
  ::testing::Test::RecordProperty("interleavings", static_cast<int>(runs));
}

TEST(SequenceProtocol, ABlockThatContinuesTheLeaseExtendsIt) {
  explore({.blocks = {{1, 2}, {3, 4}}, .ids_per_thread = 2});
}
TEST(SequenceProtocol, AnotherProcessHasTheBlocksBetween) {
  explore({.blocks = {{1, 2}, {11, 12}}, .ids_per_thread = 2});
}
TEST(SequenceProtocol, ABlockComesWhileThreadsDraw) {
  explore({.blocks = {{1, 1}, {2, 3}}, .refills = true});
}
TEST(SequenceProtocol, TheRemainingIdsAreTakenWhileThreadsDraw) {
  explore({.blocks = {{1, 3}, {4, 5}}, .closes = true});
}
TEST(SequenceProtocol, TicketsThatArePutBackAreNotIds) {
  explore({.blocks = {{1, 1}}, .drawing_threads = 3});
}
TEST(SequenceProtocol, TicketsThatArePutBackAreDrawnAgainOnce) {
  explore(
      {.blocks = {{1, 1}, {2, 5}}, .ids_per_thread = 3, .refills = true, .only_refiller = true});
}

}  // namespace
}  // namespace holdfast::test
