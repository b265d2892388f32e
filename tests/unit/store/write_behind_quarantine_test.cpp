// Failures of which nobody knows whether a row or the store is at fault: a row that keeps failing
// is given up, an outage loses nothing, and the others do not wait.

#include "support/failure_of.hpp"
#include "support/gate.hpp"
#include "unit/store/write_behind_fixture.hpp"

#include <stdexcept>
#include <thread>

namespace holdfast::test {
namespace {

using operation = faulty_store::operation;

class WriteBehindQuarantine : public WriteBehindFixture {
 protected:
  WriteBehindQuarantine() {
    options_.on_failed = [this](const entry& e, const error& reason) {
      given_up_.push_back(e.key + ": " + reason.message());
    };
    before_ = [this](operation op, std::span<const entry> entries) {
      if (op != operation::put) return;
      for (const entry& each : entries) {
        if (everything_fails_ || each.payload == "poison") throw unknown();
      }
    };
  }
  /// As a driver reports a code that it does not know.
  static error unknown() { return {errc::unavailable, "the database says: HY000"}; }

  std::vector<std::string> given_up_{};
  bool everything_fails_ = false;
};

TEST_F(WriteBehindQuarantine, ARowThatKeepsFailingIsGivenUpAndTheOthersAreWritten) {
  std::vector<std::string> errors;
  options_.log = [&](const log_record& record) {
    if (record.level != log_level::error) return;
    for (const auto& field : record.fields)
      errors.push_back(std::string(field.name) + "=" + std::string(field.value));
  };
  const auto registry = make_prometheus_registry();
  options_.metrics = registry;
  for (int i = 0; i < 256; ++i) put(make("k" + std::to_string(i), 0ms, i == 77 ? "poison" : "v"));
  executor_->run_all();
  EXPECT_EQ(numbers().written, 255U) << "nothing waits for the row that fails";
  EXPECT_LE(sizes_.size(), 1U + 2 * 8);
  EXPECT_EQ(numbers().pending, 1U);
  EXPECT_EQ(payload("k77"), "poison") << "it is tried again, and served meanwhile";
  EXPECT_FALSE(numbers().stalled);
  executor_->advance(1s);
  EXPECT_EQ(given_up_, (std::vector<std::string>{"k77: the database says: HY000"}));
  EXPECT_EQ(errors,
            (std::vector<std::string>{"name=n", "key=k77", "problem=the database says: HY000"}));
  EXPECT_EQ(numbers().failed, 1U);
  EXPECT_EQ(numbers().quarantined, 1U);
  EXPECT_EQ(numbers().pending, 0U);
  EXPECT_LE(sizes_.size(), 1U + 2 * 8 + 2) << "three tries alone";
  EXPECT_EQ(payload("k77"), "(none)") << "what will never be stored is not served";
  const auto text = registry->text();
  EXPECT_NE(text.find("holdfast_write_behind_operations_total{result=\"quarantined\"} 1"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("holdfast_write_behind_operations_total{result=\"failed\"} 0"),
            std::string::npos)
      << text;
  const auto report = store().flush(now());
  EXPECT_EQ(report.failed, 1U);
  EXPECT_FALSE(report.complete());
}

TEST_F(WriteBehindQuarantine, WhatIsNoErrorOfOursIsAnUnknownFailure) {
  before_ = [](operation op, std::span<const entry> entries) {
    if (op != operation::put) return;
    for (const entry& each : entries) {
      if (each.payload == "a") throw std::runtime_error("a store of one's own");
      if (each.payload == "b") throw 7;
    }
  };
  put(make("a", 0ms, "a"));
  put(make("b", 0ms, "b"));
  put(make("c", 0ms, "c"));
  executor_->advance(1s);
  EXPECT_EQ(stored("c"), "c");
  EXPECT_EQ(numbers().quarantined, 2U);
  std::ranges::sort(given_up_);
  EXPECT_EQ(given_up_, (std::vector<std::string>{"a: a store of one's own",
                                                 "b: an exception that is not a std::exception"}));
}

TEST_F(WriteBehindQuarantine, AnOutageQuarantinesNothing) {
  for (const bool answers : {true, false}) {
    for (const std::size_t rows : {2U, 300U, 1200U}) {
      SCOPED_TRACE(std::to_string(rows) + (answers ? ", it can be read" : ", it cannot be read"));
      store_.reset();
      executor_->clear();
      sizes_.clear();
      below_->available = answers;
      everything_fails_ = true;
      for (std::size_t i = 0; i < rows; ++i) put(make("k" + std::to_string(i), 0ms, "v"));
      executor_->run_all();
      EXPECT_LE(sizes_.size(), 40U) << "some rows are tried alone, not all of them";
      executor_->advance(10min);
      EXPECT_LE(sizes_.size(), 6'000U) << "a store that fails is not asked all the time";
      EXPECT_EQ(numbers().pending, rows);
      EXPECT_EQ(numbers().failed, 0U);
      EXPECT_TRUE(numbers().stalled);
      everything_fails_ = false;
      below_->available = true;
      executor_->advance(1min);
      EXPECT_EQ(numbers().pending, 0U);
      EXPECT_EQ(numbers().written, rows);
      EXPECT_EQ(given_up_.size(), 0U);
    }
  }
}

TEST_F(WriteBehindQuarantine, AnOutageThatComesAndGoesQuarantinesNothing) {
  everything_fails_ = true;
  put(make("k", 0ms, "v"));
  executor_->run_all();
  everything_fails_ = false;
  put(make("l", 0ms, "v"));
  executor_->run_all();
  ASSERT_EQ(stored("l"), "v") << "it was written while the other one waited";
  everything_fails_ = true;
  below_->available = false;
  executor_->advance(10min);
  EXPECT_EQ(numbers().pending, 1U);
  everything_fails_ = false;
  below_->available = true;
  executor_->advance(10s);
  EXPECT_EQ(stored("k"), "v");
  EXPECT_EQ(numbers().failed, 0U);
}

TEST_F(WriteBehindQuarantine, OneThatIsAloneIsGivenUpOnlyAfterALongTime) {
  put(make("k", 0ms, "poison"));
  executor_->advance(29s);
  EXPECT_EQ(numbers().pending, 1U) << "it may be the store";
  below_->available = false;
  executor_->advance(10min);
  EXPECT_EQ(numbers().pending, 1U) << "it is the store";
  EXPECT_TRUE(numbers().stalled);
  below_->available = true;
  executor_->advance(3s);
  EXPECT_EQ(numbers().quarantined, 1U);
}

TEST_F(WriteBehindQuarantine, TwoThatAreAloneWait) {
  put(make("k", 0ms, "poison"));
  put(make("l", 0ms, "poison"));
  executor_->advance(10min);
  EXPECT_EQ(numbers().pending, 2U)
      << "two that fail, and none that is written: it may be an outage";
  put(make("m", 0ms, "v"));
  executor_->advance(100ms);
  EXPECT_EQ(stored("m"), "v");
  EXPECT_EQ(numbers().quarantined, 2U);
}

TEST_F(WriteBehindQuarantine, ManyOfThemInARowDoNotStopTheOthers) {
  for (int i = 0; i < 100; ++i) put(make("p" + std::to_string(i), 0ms, "poison"));
  for (int i = 0; i < 100; ++i) put(make("v" + std::to_string(i), 0ms, "v"));
  executor_->advance(1min);
  EXPECT_EQ(numbers().written, 100U);
  EXPECT_EQ(numbers().quarantined, 100U);
  EXPECT_EQ(given_up_.size(), 100U);
}

TEST_F(WriteBehindQuarantine, OthersPassItAtOnce) {
  put(make("k", 0ms, "poison"));
  executor_->run_all();
  put(make("l", 0ms, "v"));
  executor_->run_all();
  EXPECT_EQ(stored("l"), "v") << "without a pause";
}

TEST_F(WriteBehindQuarantine, ANewerPutTakesItsPlace) {
  put(make("k", 5ms, "poison"));
  executor_->run_all();
  put(make("k", 6ms, "older"));
  executor_->run_all();
  EXPECT_EQ(payload("k"), "poison");
  put(make("k", 0ms, "good"));
  executor_->run_all();
  EXPECT_EQ(stored("k"), "good");
  EXPECT_EQ(numbers().coalesced, 2U);
  executor_->advance(1min);
  EXPECT_EQ(numbers().failed, 0U);
  EXPECT_EQ(stored("k"), "good");
}

TEST_F(WriteBehindQuarantine, AnEraseWaitsForIt) {
  const auto one = make("k", 0ms, "poison");
  put(one);
  executor_->run_all();
  EXPECT_TRUE(store().erase("n", "k", one.as_of));
  executor_->run_all();
  EXPECT_EQ(payload("k"), "(none)");
  EXPECT_EQ(erases_, 0U);
  put(make("l", 0ms, "v"));
  executor_->advance(1s);
  EXPECT_EQ(erases_, 1U);
  EXPECT_EQ(numbers().quarantined, 1U);
  EXPECT_EQ(numbers().pending, 0U);
}

TEST_F(WriteBehindQuarantine, TheEraseThatItHasReplacedIsCarriedOut) {
  const auto erased = make("k", 1s, "old");
  put(erased);
  executor_->run_all();
  ASSERT_TRUE(store().erase("n", "k", erased.as_of));
  put(make("k", 0ms, "poison"));
  put(make("l", 0ms, "v"));
  executor_->advance(1s);
  EXPECT_EQ(numbers().quarantined, 1U);
  EXPECT_EQ(payload("k"), "(none)") << "its erase was acknowledged";
}

TEST_F(WriteBehindQuarantine, TheEraseThatItHasReplacedOutlivesItsReplacement) {
  const auto erased = make("k", 1s, "old");
  put(erased);
  executor_->run_all();
  ASSERT_TRUE(store().erase("n", "k", erased.as_of));
  put(make("k", 2ms, "poison"));
  executor_->run_all();
  put(make("k", 1ms, "poison"));  // takes the place of the first one, which is tried again
  executor_->run_all();
  EXPECT_EQ(numbers().pending, 1U);
  put(make("l", 0ms, "v"));
  executor_->advance(1s);
  EXPECT_EQ(numbers().quarantined, 1U);
  EXPECT_EQ(payload("k"), "(none)") << "its erase was acknowledged";
}

TEST_F(WriteBehindQuarantine, AnEraseIsGivenUpLikewise) {
  const auto one = make("k", 0ms, "v");
  put(one);
  executor_->run_all();
  before_ = [](operation op, auto) {
    if (op == operation::erase) throw unknown();
  };
  ASSERT_TRUE(store().erase("n", "k", one.as_of));
  executor_->run_all();
  EXPECT_EQ(payload("k"), "(none)");
  put(make("l", 0ms, "v"));
  executor_->advance(1s);
  EXPECT_EQ(numbers().quarantined, 1U);
  EXPECT_EQ(given_up_, (std::vector<std::string>{"k: the database says: HY000"}));
  EXPECT_EQ(payload("k"), "v");
}

TEST_F(WriteBehindQuarantine, OneThatExpiresMeanwhileIsNotTriedAgain) {
  auto brief = make("k", 0ms, "poison");
  brief.expire_on = clock_->now() + 1s;
  put(brief);
  executor_->advance(5s);
  EXPECT_EQ(numbers().pending, 0U);
  EXPECT_EQ(numbers().expired, 1U);
}

TEST_F(WriteBehindQuarantine, OneThatSucceedsLaterIsWritten) {
  put(make("k", 0ms, "poison"));
  put(make("l", 0ms, "v"));
  executor_->run_all();
  before_ = {};
  executor_->advance(100ms);
  EXPECT_EQ(stored("k"), "poison");
  EXPECT_EQ(numbers().pending, 0U);
  EXPECT_EQ(numbers().failed, 0U);
}

TEST_F(WriteBehindQuarantine, AFlushTriesItAtOnceAndTellsThatItIsNotDurable) {
  put(make("k", 0ms, "poison"));
  put(make("l", 0ms, "v"));
  executor_->run_all();
  const auto tried = sizes_.size();
  const auto report = store().flush(now());
  executor_->run_all();
  EXPECT_EQ(report.in_flight, 1U);
  EXPECT_EQ(sizes_.size(), tried + 1);
  executor_->advance(1s);
  EXPECT_EQ(store().flush(now()).failed, 1U);
  EXPECT_TRUE(store().flush(now()).complete());
}

TEST_F(WriteBehindQuarantine, AFlushEndsThoughNobodyRunsTasks) {
  options_.clock = system_clock();
  options_.executor = std::make_shared<refusing_executor>();
  options_.scan_flush = 30s;
  model_ = std::make_shared<model_store>();
  below_ = std::make_shared<faulty_store>(model_);
  below_->before = before_;
  const auto start = system_clock()->now();
  for (int i = 0; i < 100; ++i) {
    auto e = make("k" + std::to_string(i), 0ms, i == 50 ? "poison" : "v");
    e.as_of = start;
    e.expire_on = start + 1h;
    put(e);
  }
  const auto report = store().flush(std::chrono::steady_clock::now() + 30s);
  EXPECT_EQ(report.written, 99U);
  EXPECT_EQ(report.failed, 1U);
  EXPECT_EQ(report.unsaved + report.in_flight, 0U);
}

TEST_F(WriteBehindQuarantine, HealthTellsOfItForTenMinutes) {
  EXPECT_TRUE(store().health().healthy());
  put(make("k", 0ms, "poison"));
  put(make("l", 0ms, "v"));
  executor_->advance(1s);
  const auto health = store().health();
  EXPECT_TRUE(health.available) << "it answers";
  EXPECT_FALSE(health.healthy());
  EXPECT_NE(health.problem.find("1 operations were given up"), std::string::npos) << health.problem;
  EXPECT_EQ(health.failed, 1U);
  EXPECT_EQ(health.quarantined, 1U);
  clock_->advance(store_health::problem_lifetime);
  EXPECT_FALSE(store().health().healthy());
  clock_->advance(1s);
  EXPECT_TRUE(store().health().healthy()) << store().health().problem;
  EXPECT_EQ(store().health().quarantined, 1U) << "the number stays";
}

TEST_F(WriteBehindQuarantine, HealthTellsOfARefusedRow) {
  before_ = [](operation op, auto) {
    if (op == operation::put) throw error(errc::too_large, "the row is too long");
  };
  put(make("k"));
  executor_->run_all();
  EXPECT_FALSE(store().health().healthy());
  EXPECT_EQ(store().health().failed, 1U);
  EXPECT_EQ(store().health().quarantined, 0U);
}

TEST_F(WriteBehindQuarantine, HealthTellsOfARowThatIsTriedForLong) {
  put(make("k", 0ms, "poison"));
  put(make("l", 0ms, "poison"));
  executor_->advance(31s);
  EXPECT_EQ(store().health().unsaved, 2U);
  EXPECT_NE(store().health().problem.find("2 operations cannot be written"), std::string::npos)
      << store().health().problem;
}

TEST_F(WriteBehindQuarantine, HealthTellsOfAStoreThatDoesNotAnswer) {
  gate door;
  options_.executor = make_thread_pool({.threads = 1});
  before_ = [&](operation op, auto) {
    if (op == operation::put) door.wait();
  };
  put(make("k"));
  while (door.waiting() == 0) std::this_thread::yield();
  EXPECT_TRUE(store().health().healthy());
  clock_->advance(31s);
  EXPECT_TRUE(numbers().stalled);
  EXPECT_FALSE(store().health().healthy());
  door.open();
  EXPECT_TRUE(store().flush(now() + 1h).complete());
  EXPECT_TRUE(store().health().healthy()) << store().health().problem;
}

TEST_F(WriteBehindQuarantine, HealthTellsOfRowsThatCannotBeReadForTenMinutes) {
  below_->unreadable = 2;
  EXPECT_TRUE(store().health().available);
  EXPECT_FALSE(store().health().healthy());
  EXPECT_NE(store().health().problem.find("rows could not be read (2 times)"), std::string::npos)
      << store().health().problem;
  clock_->advance(store_health::problem_lifetime - 1s);
  below_->unreadable = 3;
  EXPECT_FALSE(store().health().healthy());
  clock_->advance(store_health::problem_lifetime);
  EXPECT_FALSE(store().health().healthy()) << "one more was met";
  clock_->advance(1s);
  EXPECT_TRUE(store().health().healthy()) << store().health().problem;
  EXPECT_EQ(store().health().unreadable, 3U);
}

TEST_F(WriteBehindQuarantine, TellsOfWhatIsDroppedFromAFullQueue) {
  std::vector<errc> codes;
  options_.on_failed = [&](const entry& e, const error& reason) {
    given_up_.push_back(e.key);
    codes.push_back(reason.code());
    EXPECT_TRUE(reason.transient());
    (void)numbers();  // without a lock
  };
  options_.max_entries = 2;
  options_.full = when_full::drop_oldest;
  put(make("a"));
  put(make("b"));
  put(make("c"));
  EXPECT_EQ(given_up_, (std::vector<std::string>{"a"}));
  EXPECT_TRUE(store().erase("n", "b", clock_->now()));
  EXPECT_EQ(given_up_, (std::vector<std::string>{"a", "b"}));
  before_ = [this](operation op, auto) {
    if (op == operation::put && given_up_.size() == 2) {
      const entry both[]{make("d"), make("e")};
      store().put(both);
    }
  };
  executor_->run_all();
  EXPECT_EQ(given_up_, (std::vector<std::string>{"a", "b", "b", "d", "e"}))
      << "the erase, and as all else is in flight, the new ones";
  EXPECT_EQ(codes, std::vector<errc>(5, errc::unavailable));
  EXPECT_EQ(numbers().dropped, 5U);
  EXPECT_EQ(numbers().failed, 0U);
}

TEST_F(WriteBehindQuarantine, RefusesToQuarantineAfterNoFailure) {
  options_.quarantine_after = 0;
  EXPECT_EQ(failure_of([&] { (void)store(); }).code(), errc::invalid_argument);
}

}  // namespace
}  // namespace holdfast::test
