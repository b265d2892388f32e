#pragma once

/// \file
/// A stack of store decorators against a simple map: random operations, faults and crashes, on the
/// manual executor and a virtual clock.

#include <holdfast/store.hpp>
#include <holdfast/store/write_behind.hpp>

#include "support/faulty_store.hpp"
#include "support/manual_executor.hpp"
#include "support/model_store.hpp"
#include "support/virtual_clock.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

namespace holdfast::test {

/// What a stack is made of: the store at the bottom outlives crashes, everything above it does not.
struct model_world {
  std::shared_ptr<virtual_clock> clock = std::make_shared<virtual_clock>();
  std::shared_ptr<manual_executor> executor = std::make_shared<manual_executor>(clock);
  std::shared_ptr<store> bottom =
      std::make_shared<model_store>(model_store_options{.clock = clock});
  std::shared_ptr<faulty_store> faulty = std::make_shared<faulty_store>(bottom);
};

/// A stack under test. `top` is asked; `behind` is told to flush.
struct model_stack {
  std::shared_ptr<store> top{};
  std::shared_ptr<write_behind> behind{};
  /// Of the memory in front; 0: there is none, so reads never give what was replaced
  std::chrono::microseconds freshness{};
  /// The store at the bottom as another machine sees it; null: as it is
  std::shared_ptr<store> durable{};
};
using make_stack = std::function<model_stack(const model_world&, const write_behind_options&)>;

/// Which rule was broken, and where.
class broken_rule : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// One run of so many steps. The same seed is the same run.
///
/// Of each key the model knows every state that the rules allow: usually one; two when an entry has
/// expired, since it may be gone then; and all since the last acknowledged flush when the process
/// crashed or the queue dropped or quarantined something.
///
/// Memory in front does not see what another machine writes. What a `find` may give instead, and
/// how long, is counted exactly:
///
/// - The version that was there when the other machine's write took place (W): until W + freshness.
/// It was read at W at the latest.
/// - A version that this process put although the other machine's was newer: until its own as_of +
/// freshness.
/// - A version from the queue, because the store could not be read at that moment (G): until G +
/// freshness.
///
/// None of them comes back after this process has put or found a newer version of the key, or
/// erased it.
class model_run {
 public:
  model_run(std::uint64_t seed, make_stack make);
  /// Throws broken_rule.
  void steps(std::size_t count);

  /// How often each kind of step was taken
  [[nodiscard]] const std::map<std::string, std::size_t>& done() const { return done_; }

 private:
  using identity = std::tuple<std::string, std::string, std::string>;  // realm, name, key
  using state = std::optional<entry>;
  struct outdated_version {
    entry value;
    /// The last moment at which a find may give it. Memory may have it for longer, not as current.
    timestamp last_served;
  };
  struct states {
    std::vector<state> now{state{}};  ///< what a read may give
    /// What may be durable: every state since the last acknowledged flush
    std::vector<state> since{state{}};
    /// All that was put since then, also what was older than what was there
    std::vector<state> offered{};
    /// The newest version of another machine, or of this one before it crashed
    timestamp foreign{};
    /// The newest version that this process has put or found since it last erased the key
    timestamp newest_known{};
    std::vector<outdated_version> outdated{};  ///< what memory in front may give all the same
  };

  std::uint64_t random(std::uint64_t below) { return random_() % below; }
  bool chance(unsigned percent) { return random(100) < percent; }
  [[nodiscard]] identity any_key();
  [[nodiscard]] entry any_entry(const identity& of, timestamp as_of);
  [[nodiscard]] entry any_entry();
  [[nodiscard]] timestamp any_time() {
    return world_.clock->now() - std::chrono::milliseconds(random(20));
  }

  void open();
  void step();
  void check_numbers();
  void put(const std::vector<entry>& what);
  void erase(const identity& which);
  void find(const identity& which);
  void expire();
  void recall(const identity& which);
  void scan();
  void flush();
  void crash();
  void elsewhere();
  void on_store(faulty_store::operation what, bool happened);
  void look(const identity& which);
  void interfere();

  void change(const identity& which, const std::function<void(state&)>& how);
  void put_into(const entry& e);
  void close_over_expiry(std::vector<state>& of) const;
  void loosen_when_lost();
  [[nodiscard]] static bool contains(const std::vector<state>& in, const state& what);
  static void add(std::vector<state>& to, const state& what);
  void expect(const identity& which, const state& got, const char* where);
  void expect_found(const identity& which, const state& got, const char* where);
  void may_be_in_front(states& of, const entry& value, timestamp since) const;
  [[noreturn]] void fail(const std::string& what) const;

  std::uint64_t seed_;
  std::mt19937_64 random_;
  make_stack make_;
  model_world world_{};
  write_behind_options options_{};
  model_stack stack_{};
  std::map<identity, states> model_{};
  std::map<std::string, std::size_t> done_{};
  std::size_t step_ = 0;
  unsigned fault_percent_ = 0;
  unsigned unknown_percent_ = 0;         // of the faults of writes: it is not known what failed
  bool quiet_ = false;                   // no faults, no looking in between
  bool find_failed_ = false;             // in the store, during the last find
  std::vector<identity> in_progress_{};  // being put: not acknowledged, but perhaps visible already
  std::optional<identity> finding_{};
  std::size_t interfered_ = 0;
  std::uint64_t lost_ = 0;  // dropped or quarantined
  int version_ = 0;
};

}  // namespace holdfast::test
