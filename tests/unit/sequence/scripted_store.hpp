#pragma once

#include <holdfast/error.hpp>
#include <holdfast/sequence/block_store.hpp>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::test {

/// Counters in memory behind a store that can be slow, stuck, broken and forgetful.
/// Thread-safety: every function may be called from any thread.
class scripted_store final : public block_store {
 public:
  std::vector<block_grant> allocate(std::span<const block_request> requests) override {
    std::unique_lock lock(mutex_);
    ++calls_;
    requests_ += requests.size();
    changed_.notify_all();
    changed_.wait(lock, [this] { return !stuck_; });
    if (failure_) {
      // In doubt: the blocks were granted, but the caller is not told.
      if (failure_->in_doubt()) (void)counters_->allocate(requests);
      throw error(*failure_);
    }
    const auto latency = latency_;
    lock.unlock();
    if (latency.count() != 0) std::this_thread::sleep_for(latency);
    auto grants = counters_->allocate(requests);
    if (on_peek_) {
      for (auto& grant : grants) grant.epoch = 0;
    }
    if (after_each_) after_each_(requests);
    return grants;
  }
  std::optional<counter_state> peek(std::string_view name) override {
    if (on_peek_) on_peek_();
    return counters_->peek(name);
  }
  counter_state ensure_at_least(std::string_view name, std::int64_t ordinal) override {
    return counters_->ensure_at_least(name, ordinal);
  }
  bool reset(std::string_view name, std::int64_t ordinal, counter_state expected) override {
    return counters_->reset(name, ordinal, expected);
  }
  bool give_back(std::string_view name, std::int64_t last_used, counter_state granted) override {
    if (on_give_back_) on_give_back_();
    return counters_->give_back(name, last_used, granted);
  }
  std::vector<named_counter> list(std::size_t limit, std::string_view after) override {
    return counters_->list(limit, after);
  }
  std::vector<std::string> unsafe_settings() override {
    const std::scoped_lock lock(mutex_);
    if (failure_) throw error(*failure_);
    return unsafe_settings_;
  }

  /// Calls to `allocate` wait until `release`.
  void stick() {
    const std::scoped_lock lock(mutex_);
    stuck_ = true;
  }
  void release() {
    const std::scoped_lock lock(mutex_);
    stuck_ = false;
    changed_.notify_all();
  }
  /// Waits until `allocate` was called `count` times.
  void await_calls(std::uint64_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return calls_ >= count; });
  }
  void fail_with(std::optional<error> failure) {
    const std::scoped_lock lock(mutex_);
    failure_ = std::move(failure);
  }
  void slow_down(std::chrono::microseconds latency) {
    const std::scoped_lock lock(mutex_);
    latency_ = latency;
  }
  void set_unsafe_settings(std::vector<std::string> reasons) {
    const std::scoped_lock lock(mutex_);
    unsafe_settings_ = std::move(reasons);
  }
  /// All counters start again.
  void forget() { counters_ = make_memory_block_store(); }
  /// Called after each grant, from the refiller's thread, to act as another process. Set it before
  /// the first grant.
  void after_each(std::function<void(std::span<const block_request>)> action) {
    after_each_ = std::move(action);
  }
  /// Grants come without their epoch, as MySQL's do. `on_peek` is called by `peek`. Set it before
  /// the first grant.
  void hide_epochs(std::function<void()> on_peek) { on_peek_ = std::move(on_peek); }
  void on_give_back(std::function<void()> action) { on_give_back_ = std::move(action); }

  [[nodiscard]] std::uint64_t calls() {
    const std::scoped_lock lock(mutex_);
    return calls_;
  }
  [[nodiscard]] std::uint64_t requests() {
    const std::scoped_lock lock(mutex_);
    return requests_;
  }
  [[nodiscard]] block_store& counters() { return *counters_; }

 private:
  std::shared_ptr<block_store> counters_ = make_memory_block_store();
  std::mutex mutex_{};
  std::condition_variable changed_{};
  bool stuck_ = false;
  std::chrono::microseconds latency_{0};
  std::optional<error> failure_{};
  std::vector<std::string> unsafe_settings_{};
  std::uint64_t calls_ = 0;
  std::uint64_t requests_ = 0;
  std::function<void(std::span<const block_request>)> after_each_{};
  std::function<void()> on_peek_{};
  std::function<void()> on_give_back_{};
};

}  // namespace holdfast::test
