// Random calls, failures, clock jumps, store faults and restarts against a model that says what
// every answer must be: never wrong, never expired, never older than one already served, never
// another key's, tenant's or user's.
//
// HOLDFAST_SEED=n repeats a run; HOLDFAST_MODEL_STEPS=n makes it longer.

#include <holdfast/failover.hpp>

#include "support/faulty_store.hpp"
#include "support/manual_executor.hpp"
#include "support/model_store.hpp"
#include "support/seed.hpp"
#include "support/virtual_clock.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using std::chrono::microseconds;

struct outage : std::runtime_error {
  outage() : std::runtime_error("outage") {}
};
struct gone : std::runtime_error {
  gone() : std::runtime_error("gone") {}
};
struct denied : std::runtime_error {
  denied() : std::runtime_error("denied") {}
};

enum class mood { well, empty, outage, gone, denied };

/// What a caller asks, and who it is: whatever must never be mixed up.
// Effective name, tenant, user, code
using identity = std::tuple<std::string, std::string, std::string, std::string>;

/// The model of a row.
struct version {
  timestamp as_of{};
  timestamp expire_on{};
  std::optional<std::string> value{};
};

constexpr auto max_skew = 5min;
constexpr auto expiry_time = microseconds(1h);
constexpr auto soft_time = microseconds(10min);
const std::vector<std::string> point_names{"single", "list", "maybe", "soft"};

std::string effective_of(const std::string& point) {
  return point == "single" || point == "list" ? "shared" : point;
}

/// What must come of a call.
struct expected {
  enum class kind { live, stale, throws } outcome = kind::throws;
  std::optional<std::string> value{};
  timestamp as_of{};
};

class world {
 public:
  explicit world(std::uint64_t seed) : random_(seed) { restart(); }
  // A refresh still queued holds its engine, which holds the executor
  ~world() { (void)executor_->clear(); }
  world(const world&) = delete;
  world& operator=(const world&) = delete;

  void step() {
    switch (pick(20)) {
      case 0:
        return begin();
      case 1:
      case 2:
        return finish();
      case 3:
        return move_clock();
      case 4:
        mood_ = static_cast<mood>(pick(5));
        return;
      case 5:
        put_fails_ = pick(3) == 0;
        find_fails_ = pick(4) == 0;
        return;
      case 6:
        return run_refresh();
      case 7:
        if (pick(50) == 0) restart();
        return;
      default:
        return call();
    }
  }

  /// Number of times each case occurred: a case that never occurred is not tested.
  std::map<std::string, std::uint64_t> seen{};

 private:
  struct begun {
    pending<std::string> call;
    std::string point;
    identity who;
    timestamp now;
    timestamp as_of;
  };
  struct refresh {
    identity who;
    timestamp now;
    timestamp as_of;
  };

  std::size_t pick(std::size_t below) {
    return std::uniform_int_distribution<std::size_t>(0, below - 1)(random_);
  }

  void restart() {
    ++seen["restart"];
    begun_.clear();
    (void)executor_->clear();
    refreshes_.clear();
    points_.clear();
    engine_.reset();
    last_ = timestamp::min();
    served_.clear();
    shaky_->waiting = false;
    shaky_->before = [this](faulty_store::operation operation, std::span<const entry>) {
      if ((operation == faulty_store::operation::put && put_fails_) ||
          (operation == faulty_store::operation::find && find_fails_))
        throw error(errc::unavailable, "planned");
    };
    engine_ = std::make_unique<engine>(
        shaky_, engine_options{
                    .clock = clock_,
                    .threads = {.executor = executor_},
                    .storage = {.remembered = 4096, .max_skew = max_skew},
                    .caller = {.tenant = [this] { return tenant_; },
                               .vary = [this](std::string_view) { return std::optional(user_); }},
                    .linger = 0ms});
    for (const auto& name : point_names) {
      point_options options{.domain = effective_of(name),
                            .expiry = expiry_time,
                            .vary = {"user"},
                            .classify = failure_rules{}.invalidate<gone>().pass<denied>()};
      if (name == "soft") options.soft_expiry = soft_time;
      if (name == "maybe") {
        maybe_.emplace(engine_->protect(name, options,
                                        [this](const std::string&) { return upstream_maybe(); }));
      } else {
        points_.emplace(name, engine_->protect(name, options,
                                               [this](const std::string&) { return upstream(); }));
      }
    }
  }

  std::string upstream() {
    switch (mood_) {
      case mood::outage:
        throw outage();
      case mood::gone:
        throw gone();
      case mood::denied:
        throw denied();
      default:
        return said_ = "answer " + std::to_string(++serial_);
    }
  }
  std::optional<std::string> upstream_maybe() {
    if (mood_ == mood::empty) return std::nullopt;
    return upstream();
  }

  // The model
  // ---------------------------------------------------------------------------------------------------------------------------

  timestamp stamp() {
    const auto now = clock_->now();
    if (last_ != timestamp::min() && last_ - now > max_skew) {
      served_.clear();
      ++seen["clock followed back"];
      return last_ = now;
    }
    return last_ = std::max(now, last_);
  }
  /// Stamped by a clock that was too far ahead.
  bool from_the_future(timestamp as_of) const { return as_of > clock_->now() + max_skew; }
  void served(const identity& who, timestamp as_of) {
    auto& newest = served_.try_emplace(who, as_of).first->second;
    newest = from_the_future(newest) ? as_of : std::max(newest, as_of);
  }
  void served_stored(const identity& who, timestamp as_of) {
    if (from_the_future(as_of)) ++seen["served from the future"];
    else served(who, as_of);
  }
  /// Newer wins, unless the existing row is from a future beyond max_skew. An expired row is not
  /// written.
  void write(const identity& who, timestamp now, timestamp as_of,
             std::optional<std::string> value) {
    // An answer that was not stored does not stand in the way of the stored one.
    if (put_fails_) return void(++seen["put failed"]);
    served(who, as_of);
    version written{
        .as_of = as_of, .expire_on = std::max(as_of, now + expiry_time), .value = std::move(value)};
    const auto real_now = clock_->now();
    if (written.expire_on < real_now) return void(++seen["expired before it was written"]);
    const auto row = rows_.find(who);
    if (row != rows_.end() && as_of < row->second.as_of && row->second.as_of <= real_now + max_skew)
      return void(++seen["older write lost"]);
    rows_[who] = std::move(written);
  }
  /// The older answer is wrong, even if the tombstone cannot be written.
  void invalidate(const identity& who, timestamp now, timestamp as_of) {
    served(who, as_of);
    write(who, now, as_of, std::nullopt);
  }
  /// What may be served for a failed call.
  const version* stored(const identity& who) {
    if (find_fails_) return ++seen["find failed"], nullptr;
    const auto row = rows_.find(who);
    if (row == rows_.end()) return nullptr;
    if (clock_->now() > row->second.expire_on) {
      ++seen["expired"];
      rows_.erase(row);
      return nullptr;
    }
    const auto newest = served_.find(who);
    if (newest != served_.end() && row->second.as_of < newest->second &&
        !from_the_future(newest->second))
      return ++seen["older than served"], nullptr;
    return &row->second;
  }
  expected recovery(const std::string& point, const identity& who) {
    const auto* row = stored(who);
    if (row == nullptr) return {};
    if (!row->value && point != "maybe") return ++seen["tombstone"], expected{};
    served_stored(who, row->as_of);
    if (row->expire_on == clock_->now()) ++seen["served at its last moment"];
    return {.outcome = expected::kind::stale, .value = row->value, .as_of = row->as_of};
  }

  // The steps
  // ---------------------------------------------------------------------------------------------------------------------------

  identity choose(const std::string& point) {
    tenant_ = pick(2) == 0 ? "acme" : "umbrella";
    user_ = pick(2) == 0 ? "alice" : "bob|x";
    return {effective_of(point), tenant_, user_, pick(2) == 0 ? "FR" : "D:E"};
  }

  template <class Call>
  void check(const std::string& point, const identity& who, timestamp as_of, timestamp now,
             Call make) {
    expected want;
    const bool empty = mood_ == mood::empty && point == "maybe";
    const auto before = serial_;
    std::optional<answer<std::string>> got;
    std::exception_ptr thrown;
    const mood behaviour = mood_;
    // The model first: it must not learn from the engine.
    if (behaviour == mood::well || behaviour == mood::empty) {
      want = {
          .outcome = expected::kind::live,
          .value = empty ? std::nullopt : std::optional("answer " + std::to_string(serial_ + 1)),
          .as_of = as_of};
      write(who, now, as_of, want.value);
    } else if (behaviour == mood::gone) {
      invalidate(who, now, as_of);
    } else if (behaviour == mood::outage) {
      want = recovery(point, who);
    }
    try {
      got.emplace(make());
    } catch (...) {
      thrown = std::current_exception();
    }
    compare(point, who, want, got, thrown);
    if (want.outcome == expected::kind::live && !empty) {
      ASSERT_EQ(serial_, before + 1);
    }
  }

  void compare(const std::string& point, const identity& who, const expected& want,
               const std::optional<answer<std::string>>& got, const std::exception_ptr& thrown) {
    const auto name =
        point + " for " + std::get<1>(who) + "/" + std::get<2>(who) + "/" + std::get<3>(who);
    if (want.outcome == expected::kind::throws) {
      ++seen["thrown"];
      ASSERT_FALSE(got) << name << ": nothing may be served, but was: " << got->value_or("(empty)");
      const auto type = cause(cause_code::failed, thrown).type();
      ASSERT_NE(type.find(mood_ == mood::gone     ? "gone"
                          : mood_ == mood::denied ? "denied"
                                                  : "outage"),
                std::string::npos)
          << type;
      return;
    }
    ASSERT_TRUE(got) << name << ": an answer was there to be given; thrown: "
                     << cause(cause_code::failed, thrown).type();
    ++seen[want.outcome == expected::kind::live ? "live"
           : want.value                         ? "stale"
                                                : "stale and empty"];
    ASSERT_EQ(got->live(), want.outcome == expected::kind::live) << name;
    ASSERT_EQ(got->optional(), want.value) << name;
    ASSERT_EQ(got->as_of(), want.as_of) << name;
    ASSERT_GE(got->expires(), got->stale() ? clock_->now() : got->as_of()) << name;
  }

  void call() {
    const auto& point = point_names[pick(point_names.size())];
    const auto who = choose(point);
    const auto now = clock_->now();
    const auto as_of = stamp();
    const auto& code = std::get<3>(who);
    if (point == "soft") {
      if (call_soft(who, now, as_of)) return;
      return check(point, who, as_of, now, [&] { return points_.at(point)(code); });
    }
    if (point == "maybe") return check(point, who, as_of, now, [&] { return (*maybe_)(code); });
    check(point, who, as_of, now, [&] { return points_.at(point)(code); });
  }

  /// Checks an answer that is served from the store without a call. Returns whether it was.
  bool call_soft(const identity& who, timestamp now, timestamp as_of) {
    const auto* row = stored(who);
    if (row == nullptr || !row->value) return false;
    served_stored(who, row->as_of);
    const expected want{.outcome = expected::kind::stale, .value = row->value, .as_of = row->as_of};
    const bool young = !from_the_future(row->as_of) && now - row->as_of <= soft_time;
    const auto same = [&](const refresh& each) { return each.who == who; };
    if (!young && std::none_of(refreshes_.begin(), refreshes_.end(), same)) {
      refreshes_.push_back({.who = who, .now = now, .as_of = as_of});
      ++seen["refresh"];
    }
    std::optional<answer<std::string>> got;
    std::exception_ptr thrown;
    try {
      got.emplace(points_.at("soft")(std::get<3>(who)));
    } catch (...) {
      thrown = std::current_exception();
    }
    compare("soft", who, want, got, thrown);
    if (got) {
      EXPECT_EQ(got->cause().code(), young ? cause_code::fresh : cause_code::refreshing);
    }
    return true;
  }

  void run_refresh() {
    if (refreshes_.empty()) {
      ASSERT_EQ(executor_->size(), 0U);
      return;
    }
    const auto one = refreshes_.front();
    refreshes_.pop_front();
    ++seen["refresh ran"];
    if (mood_ == mood::well || mood_ == mood::empty)
      write(one.who, one.now, one.as_of, "answer " + std::to_string(serial_ + 1));
    else if (mood_ == mood::gone) invalidate(one.who, one.now, one.as_of);
    ASSERT_TRUE(executor_->run_one());
  }

  void begin() {
    if (begun_.size() >= 8) return;
    const auto& point = point_names[pick(2)];
    const auto who = choose(point);
    const auto now = clock_->now();
    const auto as_of = stamp();
    begun_.push_back({.call = points_.at(point).begin(std::get<3>(who)),
                      .point = point,
                      .who = who,
                      .now = now,
                      .as_of = as_of});
    ASSERT_EQ(begun_.back().call.as_of(), as_of);
  }

  void finish() {
    if (begun_.empty()) return;
    const auto position = begun_.begin() + static_cast<std::ptrdiff_t>(pick(begun_.size()));
    auto one = std::move(*position);
    begun_.erase(position);
    if (pick(6) == 0) return;  // dropped
    ++seen["split phase"];
    check(one.point, one.who, one.as_of, one.now, [&] {
      try {
        return one.call.succeed(upstream());
      } catch (const std::runtime_error&) {
        return one.call.fail(std::current_exception());
      }
    });
  }

  /// To the last moment at which a row may be served, or just beyond.
  void move_to_an_expiry() {
    if (rows_.empty()) return;
    const auto& row =
        std::next(rows_.begin(), static_cast<std::ptrdiff_t>(pick(rows_.size())))->second;
    const auto remaining = row.expire_on - clock_->now();
    if (remaining <= 0us) return;
    clock_->advance(remaining + microseconds(pick(2)));
    ++seen["at an expiry"];
  }

  void move_clock() {
    switch (pick(12)) {
      case 0:
        return clock_->jump(-microseconds(pick(4 * 60'000'000)));
      case 1:
        return clock_->jump(microseconds(pick(4 * 60'000'000)));
      case 2:
        if (pick(4) == 0) clock_->jump(-3h);
        return;
      case 3:
        if (pick(4) == 0) clock_->advance(2h);
        return;
      case 4:
        return move_to_an_expiry();
      default:
        return clock_->advance(microseconds(pick(6 * 60'000'000)));
    }
  }

  std::mt19937_64 random_;
  std::shared_ptr<virtual_clock> clock_ = std::make_shared<virtual_clock>();
  std::shared_ptr<manual_executor> executor_ = std::make_shared<manual_executor>(clock_);
  std::shared_ptr<model_store> store_ =
      std::make_shared<model_store>(model_store_options{.max_skew = max_skew, .clock = clock_});
  std::shared_ptr<faulty_store> shaky_ = std::make_shared<faulty_store>(store_);
  std::unique_ptr<engine> engine_{};
  std::map<std::string, point<std::string(const std::string&)>> points_{};
  std::optional<point<std::optional<std::string>(const std::string&)>> maybe_{};
  std::vector<begun> begun_{};

  mood mood_ = mood::well;
  bool put_fails_ = false;
  bool find_fails_ = false;
  std::string tenant_{};
  std::string user_{};
  std::uint64_t serial_ = 0;
  std::string said_{};

  timestamp last_ = timestamp::min();
  std::map<identity, version> rows_{};
  std::map<identity, timestamp> served_{};
  std::deque<refresh> refreshes_{};
};

std::uint64_t steps_of_a_run() {
  const char* const variable =
      std::getenv("HOLDFAST_MODEL_STEPS");  // NOLINT(concurrency-mt-unsafe)
  return variable == nullptr ? 120'000 : std::strtoull(variable, nullptr, 10);
}

TEST(FailoverModel, EveryAnswerIsWhatTheModelSays) {
  const auto seed = first_seed();
  const auto steps = steps_of_a_run();
  SCOPED_TRACE(repeated_by(seed));
  std::cout << "HOLDFAST_SEED=" << seed << " HOLDFAST_MODEL_STEPS=" << steps << "\n";
  world all(seed);
  for (std::uint64_t step = 0; step < steps; ++step) {
    all.step();
    ASSERT_FALSE(::testing::Test::HasFailure()) << "at step " << step;
  }
  for (const char* each :
       {"live", "stale", "stale and empty", "thrown", "tombstone", "expired", "older than served",
        "older write lost", "put failed", "find failed", "refresh", "refresh ran", "split phase",
        "clock followed back", "restart", "at an expiry", "served at its last moment",
        "served from the future"}) {
    EXPECT_GT(all.seen[each], 0U) << "the run never met: " << each;
  }
}

}  // namespace
}  // namespace holdfast::test
