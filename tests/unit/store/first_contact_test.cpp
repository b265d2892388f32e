// A store whose database cannot be reached yet.

#include "store/sql/first_contact.hpp"

#include <holdfast/store/memory.hpp>

#include "support/eventually.hpp"
#include "support/failure_of.hpp"
#include "support/gate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using detail::store::first_contact_options;
using detail::store::make_first_contact_store;
using steady = std::chrono::steady_clock;
using ::testing::HasSubstr;

const error server_down(errc::unavailable, "connection refused",
                        {.backend_code = "111", .transient = true});
const error wrong_password(errc::permission, "the password is wrong", {.backend_code = "28P01"});

/// A database that fails as it is told to, or hangs.
class FirstContact : public ::testing::Test {
 protected:
  ~FirstContact() override { hang_.open(); }

  [[nodiscard]] std::shared_ptr<store> start(first_contact_options options = {}) {
    const auto sink = [this](const log_record& record) {
      const std::scoped_lock lock(mutex_);
      records_.push_back(std::string(to_string(record.level)) + ": " + std::string(record.message));
    };
    options.open = [this] { return connect(); };
    options.log = std::make_shared<const logger>(sink);
    return make_first_contact_store(std::move(options));
  }
  void set_failure(std::optional<error> failure) {
    const std::scoped_lock lock(mutex_);
    failure_ = std::move(failure);
  }
  [[nodiscard]] std::vector<std::string> records() {
    const std::scoped_lock lock(mutex_);
    return records_;
  }
  /// Threads that connect.
  static int threads() {
    int count = 0;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
      std::string name;
      std::getline(std::ifstream(task.path() / "comm"), name);
      if (name == "hf-connect") ++count;
    }
    return count;
  }

  std::atomic<int> attempts_{0};
  std::atomic<bool> hangs_{false};
  gate hang_{};
  const std::shared_ptr<store> database_ = make_memory_store();

 private:
  std::shared_ptr<store> connect() {
    ++attempts_;
    if (hangs_) hang_.wait();
    const std::scoped_lock lock(mutex_);
    if (failure_) throw error(*failure_);
    return database_;
  }

  std::mutex mutex_{};
  std::optional<error> failure_{};
  std::vector<std::string> records_{};
};

entry an_entry() {
  const auto now = system_clock()->now();
  return {.name = "n",
          .key = "k",
          .as_of = now,
          .expire_on = now + 1h,
          .payload = "{}",
          .payload_class = "c"};
}

TEST_F(FirstContact, AnOperationWaitsForTheFirstAttempt) {
  hangs_ = true;
  const auto store = start();
  EXPECT_EQ(store->peer(), peer::none) << "known without the database";
  EXPECT_TRUE(store->waits());
  ASSERT_TRUE(eventually([&] { return hang_.waiting() == 1; }));
  std::atomic<bool> written{false};
  std::jthread caller([&] {
    store->put(an_entry());
    written = true;
  });
  EXPECT_FALSE(written);
  hang_.open();
  caller.join();
  EXPECT_TRUE(database_->find("n", "k"));
  EXPECT_TRUE(store->health().available);
  EXPECT_EQ(attempts_, 1);
  EXPECT_TRUE(records().empty()) << "the usual start is not mentioned";
  EXPECT_TRUE(eventually([] { return threads() == 0; }));
}

TEST_F(FirstContact, WhileItIsNotReachedOperationsFailAtOnceWithTheReason) {
  set_failure(server_down);
  const auto store = start();
  ASSERT_TRUE(eventually([&] { return attempts_ > 1; })) << "it is tried again";
  hangs_ = true;  // the next attempt
  ASSERT_TRUE(eventually([&] { return hang_.waiting() == 1; }));
  for (const auto& operation : std::initializer_list<std::function<void()>>{
           [&] { store->put(an_entry()); }, [&] { (void)store->find("n", "k"); },
           [&] { (void)store->find_all("n", 1); }, [&] { (void)store->count("n"); },
           [&] { (void)store->erase("n", "k", system_clock()->now()); },
           [&] { (void)store->expire(system_clock()->now(), 1); }}) {
    const auto e = failure_of(operation);  // would hang if it waited for the attempt
    EXPECT_EQ(e.code(), errc::unavailable);
    EXPECT_TRUE(e.transient()) << "a queue keeps the entry";
    EXPECT_FALSE(e.in_doubt());
    EXPECT_STREQ(e.what(), "the store has not been reached yet: connection refused");
    EXPECT_EQ(e.backend_code(), "111");
  }
  const auto health = store->health();
  EXPECT_FALSE(health.available);
  EXPECT_EQ(health.problem, "the store has not been reached yet: connection refused");

  set_failure(std::nullopt);
  hangs_ = false;
  hang_.open();
  EXPECT_TRUE(eventually([&] { return store->health().available; }));
  EXPECT_NO_THROW(store->put(an_entry()));
  EXPECT_THAT(records(),
              ::testing::ElementsAre("warning: the store has not been reached yet: connection "
                                     "refused; it is tried again in the background",
                                     "info: the store was reached"));
}

TEST_F(FirstContact, WhatIsWrongForGoodIsAnErrorAndIsTriedAgain) {
  set_failure(wrong_password);
  const auto store = start();
  const auto e = failure_of([&] { (void)store->find("n", "k"); });
  EXPECT_EQ(e.code(), wrong_password.code());
  EXPECT_TRUE(e.transient()) << "a queue keeps the entry";
  EXPECT_THAT(store->health().problem, HasSubstr("the password is wrong"));
  EXPECT_THAT(records(), ::testing::ElementsAre("error: the store cannot be used: the password is "
                                                "wrong; it is tried again until that is repaired"));
  set_failure(std::nullopt);
  EXPECT_TRUE(eventually([&] { return store->health().available; }));
}

TEST_F(FirstContact, AFileIsOpenedByTheConstructor) {
  const auto store = start({.is_file = true});
  EXPECT_EQ(attempts_, 1);
  EXPECT_EQ(threads(), 0);
  EXPECT_NO_THROW(store->put(an_entry()));
}

TEST_F(FirstContact, AFileThatCannotBeOpenedDoesNotStopTheStart) {
  set_failure(error(errc::permission, "the database file cannot be opened"));
  const auto store = start({.is_file = true});
  EXPECT_THAT(failure_of([&] { (void)store->find("n", "k"); }).what(),
              HasSubstr("cannot be opened"));
  // The pauses for a server would not allow so many within the time that a test may take.
  EXPECT_TRUE(eventually([&] { return attempts_ >= 8; }, 60s));
  set_failure(std::nullopt);
  EXPECT_TRUE(eventually([&] { return store->health().available; }));
}

TEST_F(FirstContact, DestructionDoesNotWaitForAnAttemptThatHangs) {
  hangs_ = true;
  auto store = start();
  ASSERT_TRUE(eventually([&] { return hang_.waiting() == 1; }));
  const auto began = steady::now();
  store.reset();
  EXPECT_LT(steady::now() - began, 30s) << "it would hang for ever";
  set_failure(server_down);
  hang_.open();
  EXPECT_TRUE(eventually([] { return threads() == 0; }));
  EXPECT_TRUE(records().empty()) << "the log of the application may be gone";
}

TEST_F(FirstContact, DestructionEndsAPause) {
  set_failure(wrong_password);
  {
    const auto store = start();
    ASSERT_TRUE(eventually([&] { return attempts_ == 1; }));
  }
  EXPECT_TRUE(eventually([] { return threads() == 0; }));
}

TEST_F(FirstContact, ExceptionsOfADriverAreReasonsToo) {
  first_contact_options options{.log = std::make_shared<const logger>()};
  options.open = []() -> std::shared_ptr<store> { throw std::runtime_error("out of luck"); };
  const auto first = make_first_contact_store(options);
  EXPECT_THAT(failure_of([&] { (void)first->find("n", "k"); }).what(), HasSubstr("out of luck"));
  options.open = []() -> std::shared_ptr<store> { throw 7; };
  const auto second = make_first_contact_store(options);
  EXPECT_THAT(failure_of([&] { (void)second->find("n", "k"); }).what(), HasSubstr("unknown type"));
  options.open = [] { return std::shared_ptr<store>(); };
  const auto third = make_first_contact_store(options);
  EXPECT_THAT(failure_of([&] { (void)third->find("n", "k"); }).what(), HasSubstr("null"));
}

}  // namespace
}  // namespace holdfast::test
