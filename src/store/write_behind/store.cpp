#include "store/write_behind/store.hpp"

#include "base/duration_limit.hpp"
#include "store/checks.hpp"
#include "store/health_problems.hpp"
#include "store/write_behind/queue_intake.hpp"
#include "store/write_behind/queue_reader.hpp"
#include "store/write_behind/writer_loop.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace HOLDFAST_NAMESPACE {

namespace detail::store {

namespace {

class write_behind_store final : public write_behind {
  using time = queue_state::time;
  using guard = queue_state::guard;

 public:
  write_behind_store(std::shared_ptr<holdfast::store> next, write_behind_options options,
                     std::shared_ptr<const queue_rules> rules)
      : executor_(std::move(options.executor)),
        linger_(limit_duration(options.linger)),
        log_(options.log),
        loop_(std::make_shared<writer_loop>(std::move(next), std::move(options), std::move(rules),
                                            executor_)) {}
  write_behind_store(const write_behind_store&) = delete;
  write_behind_store& operator=(const write_behind_store&) = delete;
  ~write_behind_store() override {
    try {
      const auto report = close(state_.steady_now() + linger_);
      if (report.unsaved + report.in_flight == 0) return;
      const auto unsaved = std::to_string(report.unsaved);
      const auto in_flight = std::to_string(report.in_flight);
      log_.write(
          log_level::error,
          "a write-behind store was destroyed before all operations were written; close() "
          "it with a longer deadline",
          {{.name = "unsaved", .value = unsaved}, {.name = "in_flight", .value = in_flight}});
    } catch (...) {  // NOLINT(bugprone-empty-catch)
      // Out of memory: it cannot even be logged.
    }
  }

  void put(std::span<const entry> entries) override { intake_.put(entries); }
  std::optional<entry> find(place location, std::string_view key) override {
    return reader_.find(location, key);
  }
  remembered_entry find_in_memory(place location, std::string_view key) override {
    return reader_.find_in_memory(location, key);
  }
  std::vector<std::optional<entry>> find_many(place location,
                                              std::span<const std::string> keys) override {
    return reader_.find_many(location, keys);
  }
  entry_page find_all(place location, std::size_t limit, std::string_view after) override {
    check_name(location.name);
    flush_for_scan();
    return state_.next->find_all(location, limit, after);
  }
  bool erase(place location, std::string_view key, timestamp as_of) override {
    return intake_.erase(reader_, location, key, as_of);
  }
  std::size_t expire(timestamp before, std::size_t limit) override {
    flush_for_scan();
    return state_.next->expire(before, limit);
  }
  std::uint64_t count(place location) override {
    check_name(location.name);
    flush_for_scan();
    return state_.next->count(location);
  }
  expiry_profile expiring(place location, std::span<const timestamp> times) override {
    check_name(location.name);
    flush_for_scan();
    return state_.next->expiring(location, times);
  }
  [[nodiscard]] holdfast::peer peer() const noexcept override { return state_.next->peer(); }
  [[nodiscard]] bool waits() const noexcept override { return state_.next->waits(); }
  store_health health() noexcept override {
    auto result = state_.next->health();
    try {
      const auto current = numbers();
      const auto now = state_.steady_now();
      result.retried += current.retried;
      result.unsaved += current.pending;
      result.failed += current.failed;
      result.quarantined += current.quarantined;
      if (current.stalled) {
        add_problem(result, std::to_string(current.pending) +
                                " operations cannot be written; they wait in memory");
      }
      if (failed_.has_grown_lately(current.failed, now)) {
        add_problem(result, std::to_string(current.failed) +
                                " operations were given up and are not stored (" +
                                std::to_string(current.quarantined) +
                                " of them quarantined); the log has the keys");
      }
      report_unreadable(result, unreadable_, now);
    } catch (...) {  // NOLINT(bugprone-empty-catch)
      // Out of memory: report only the health of the store below.
    }
    return result;
  }

  [[nodiscard]] const holdfast::clock& clock() const noexcept override {
    return *state_.options.clock;
  }
  write_behind_report flush(time deadline) override {
    guard lock(state_.mutex);
    const auto report = flush_and_report(lock, deadline);
    lock.unlock();
    loop_->publish();
    return report;
  }
  write_behind_report close(time deadline) override {
    guard lock(state_.mutex);
    state_.closed = true;
    state_.room_available.notify_all();
    const auto report = flush_and_report(lock, deadline);
    state_.stopped = true;
    lock.unlock();
    loop_->publish();
    return report;
  }
  [[nodiscard]] write_behind_numbers numbers() const override {
    const guard lock(state_.mutex);
    return state_.numbers();
  }

 private:
  write_behind_report flush_and_report(guard& lock, time deadline) {
    const auto sequence = state_.pending.next_sequence();
    const auto written_before = state_.pending.written();
    loop_->wait_until_saved(lock, sequence, deadline);
    return state_.pending.make_report(sequence, written_before);
  }

  /// Throws errc::timeout if the queued operations cannot be written in time.
  void flush_for_scan() {
    guard lock(state_.mutex);
    const auto deadline = state_.steady_now() + state_.options.scan_flush;
    if (loop_->wait_until_saved(lock, state_.pending.next_sequence(), deadline)) return;
    throw error(errc::timeout,
                "the queued operations could not be written in time, so the stored entries cannot "
                "be listed or counted",
                {.transient = true});
  }

  // Destroyed after loop_: the writer may still run on it.
  std::shared_ptr<executor> executor_;
  std::chrono::milliseconds linger_;
  logger log_;
  std::shared_ptr<writer_loop> loop_;
  queue_state& state_ = loop_->state();
  queue_reader reader_{state_};
  queue_intake intake_{*loop_};
  observed_counter failed_{};
  observed_counter unreadable_{};
};

}  // namespace

std::shared_ptr<write_behind> make_write_behind(std::shared_ptr<holdfast::store> next,
                                                write_behind_options options,
                                                std::shared_ptr<const queue_rules> rules) {
  return std::make_shared<write_behind_store>(std::move(next), std::move(options),
                                              std::move(rules));
}

}  // namespace detail::store

std::shared_ptr<write_behind> make_write_behind(std::shared_ptr<store> next,
                                                write_behind_options options) {
  // When the store is destroyed, its writer has nothing left to do or hangs in the store below. In
  // the latter case the thread is detached after a short wait.
  if (!options.executor)
    options.executor = make_thread_pool({.threads = 1,
                                         .name = "write-behind",
                                         .linger = std::chrono::milliseconds(200),
                                         .log = options.log});
  return detail::store::make_write_behind(std::move(next), std::move(options),
                                          std::make_shared<detail::store::queue_rules>());
}

}  // namespace HOLDFAST_NAMESPACE
