#pragma once

#include <holdfast/store/write_behind.hpp>

#include "support/faulty_store.hpp"
#include "support/manual_executor.hpp"
#include "support/model_store.hpp"
#include "support/virtual_clock.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::test {

using namespace std::chrono_literals;

/// As one that was closed.
struct refusing_executor final : executor {
  bool post(task) override { return false; }
  bool post_after(std::chrono::steady_clock::duration, task) override { return false; }
};

/// A write-behind store over a model, where nothing happens unless the test says so.
class WriteBehindFixture : public ::testing::Test {
 protected:
  WriteBehindFixture() {
    below_->before = [this](faulty_store::operation op, std::span<const entry> entries) {
      if (op == faulty_store::operation::put) sizes_.push_back(entries.size());
      if (op == faulty_store::operation::erase) ++erases_;
      if (before_) before_(op, entries);
    };
    options_.clock = clock_;
    options_.executor = executor_;
    options_.refresh_after = 0ms;
    options_.scan_flush = 0ms;
    options_.linger = 0ms;
  }
  ~WriteBehindFixture() override {
    if (!store_) return;
    const auto now = numbers();
    EXPECT_EQ(now.queued,
              now.coalesced + now.written + now.skipped + now.dropped + now.failed + now.pending);
  }

  write_behind& store() {
    if (!store_) store_ = make_write_behind(below_, options_);
    return *store_;
  }
  write_behind_numbers numbers() { return store().numbers(); }

  /// An entry of the name `n`; its version is so many milliseconds before now.
  [[nodiscard]] entry make(std::string key, std::chrono::milliseconds ago = 0ms,
                           std::string payload = "{}") const {
    return {.name = "n",
            .key = std::move(key),
            .as_of = clock_->now() - ago,
            .expire_on = clock_->now() + 1h,
            .payload = std::move(payload),
            .payload_class = "c"};
  }
  void put(const entry& e) { store().put({&e, 1}); }
  [[nodiscard]] static std::string payload_in(holdfast::store& source, std::string_view key) {
    const auto result = source.find("n", key);
    return !result ? "(none)" : result->tombstone() ? "(tombstone)" : *result->payload;
  }
  [[nodiscard]] std::string payload(std::string_view key) { return payload_in(store(), key); }
  [[nodiscard]] std::string stored(std::string_view key) { return payload_in(*model_, key); }
  [[nodiscard]] std::chrono::steady_clock::time_point now() const { return clock_->steady(); }

  std::shared_ptr<virtual_clock> clock_ = std::make_shared<virtual_clock>();
  std::shared_ptr<manual_executor> executor_ = std::make_shared<manual_executor>(clock_);
  std::shared_ptr<holdfast::store> model_ =
      std::make_shared<model_store>(model_store_options{.clock = clock_});
  std::shared_ptr<faulty_store> below_ = std::make_shared<faulty_store>(model_);
  faulty_store::hook before_{};
  std::vector<std::size_t> sizes_{};  // of the puts that reached the store below
  std::size_t erases_ = 0;
  write_behind_options options_{};
  std::shared_ptr<write_behind> store_{};
};

}  // namespace holdfast::test
