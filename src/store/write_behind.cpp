#include <holdfast/store/write_behind.hpp>

#include "base/deadline.hpp"
#include "store/checks.hpp"
#include "store/write_behind_core.hpp"

#include <array>
#include <string>
#include <utility>

namespace HOLDFAST_NAMESPACE {

namespace behind {

namespace {

class write_behind_store final : public write_behind {
 public:
  write_behind_store(std::shared_ptr<core> made, std::shared_ptr<executor> runs, std::chrono::milliseconds linger, log_sink log)
      : executor_(std::move(runs)), core_(std::move(made)), linger_(linger), log_(std::move(log)) {}
  write_behind_store(const write_behind_store&) = delete;
  write_behind_store& operator=(const write_behind_store&) = delete;
  ~write_behind_store() override {
    try {
      const auto left = core_->close(core_->deadline_after(linger_));
      if (left.unsaved + left.in_flight == 0) return;
      const auto unsaved = std::to_string(left.unsaved);
      const auto in_flight = std::to_string(left.in_flight);
      log_.write(log_level::error, "a write-behind store ended before all was written; close() it with a longer deadline",
                 {{.name = "unsaved", .value = unsaved}, {.name = "in_flight", .value = in_flight}});
    } catch (...) {  // NOLINT(bugprone-empty-catch)
      // There is nobody to tell, and no memory to tell it with.
    }
  }

  void put(std::span<const entry> entries) override { core_->put(entries); }
  std::optional<entry> find(place where, std::string_view key) override { return core_->find(where, key); }
  entry_page find_all(place where, std::size_t limit, std::string_view after) override {
    check_name(where.name);
    core_->flush_for_scan();
    return core_->next().find_all(where, limit, after);
  }
  bool erase(place where, std::string_view key, timestamp as_of) override { return core_->erase(where, key, as_of); }
  std::size_t expire(timestamp before, std::size_t limit) override {
    core_->flush_for_scan();
    return core_->next().expire(before, limit);
  }
  std::uint64_t count(place where) override {
    check_name(where.name);
    core_->flush_for_scan();
    return core_->next().count(where);
  }
  [[nodiscard]] holdfast::peer peer() const noexcept override { return core_->next().peer(); }
  [[nodiscard]] bool waits() const noexcept override { return core_->next().waits(); }
  store_health health() noexcept override {
    auto result = core_->next().health();
    try {
      const auto now = core_->numbers();
      result.retried += now.retried;
      if (now.stalled && result.problem.empty()) {
        result.problem = std::to_string(now.pending) + " operations cannot be written; they wait in memory";
      }
    } catch (...) {  // NOLINT(bugprone-empty-catch)
      // What the store below says must do.
    }
    return result;
  }

  [[nodiscard]] const holdfast::clock& clock() const noexcept override { return core_->clock(); }
  write_behind_report flush(std::chrono::steady_clock::time_point deadline) override { return core_->flush(deadline); }
  write_behind_report close(std::chrono::steady_clock::time_point deadline) override { return core_->close(deadline); }
  [[nodiscard]] write_behind_numbers numbers() const override { return core_->numbers(); }

 private:
  std::shared_ptr<executor> executor_;
  std::shared_ptr<core> core_;
  std::chrono::milliseconds linger_;
  logger log_;
};

constexpr std::array<std::string_view, 8> results{"queued",  "coalesced", "written", "skipped",
                                                  "dropped", "failed",    "refused", "written_through"};

std::array<std::uint64_t, 8> counts_of(const write_behind_numbers& of) {
  return {of.queued, of.coalesced, of.written, of.skipped, of.dropped, of.failed, of.refused, of.written_through};
}

void check(const std::shared_ptr<store>& next, const write_behind_options& options) {
  const auto refuse = [](bool bad, const char* what, const char* why) {
    if (bad) throw error(errc::invalid_argument, why, {.path = what});
  };
  refuse(!next, "next", "write-behind needs a store to write to");
  refuse(options.max_entries == 0, "max_entries", "the queue has no room; give it at least one entry");
  refuse(options.max_bytes < 4096, "max_bytes", "the queue has no room; give it at least 4096 bytes");
  refuse(options.batch_entries == 0, "batch_entries", "a batch has at least one entry");
  refuse(options.retry_first.count() <= 0, "retry_first", "a pause between tries must be longer than nothing");
  refuse(options.retry_longest < options.retry_first, "retry_longest", "the longest pause must not be shorter than the first");
  refuse(options.refresh_after.count() < 0, "refresh_after", "the time must not be negative");
  check_skew(options.max_skew);
}

}  // namespace

core::core(std::shared_ptr<store> next, write_behind_options options)
    : next_(std::move(next)),
      options_([&] {
        check(next_, options);
        if (!options.clock) options.clock = system_clock();
        for (auto* const each : {&options.block_for, &options.refresh_after, &options.retry_first, &options.retry_longest,
                                 &options.stalled_after, &options.scan_flush}) {
          *each = std::min<std::chrono::milliseconds>(*each, longest_wait);
        }
        options.batch_entries = std::min(options.batch_entries, std::max<std::size_t>(1, options.max_entries / 2));
        return std::move(options);
      }()),
      executor_(options_.executor),
      log_to_(options_.log, {.clock = options_.clock}),
      last_written_(options_.remembered),
      random_(options_.jitter_seed != 0 ? static_cast<std::minstd_rand::result_type>(options_.jitter_seed) : std::random_device{}()) {
  if (!options_.metrics) return;
  const auto sink = isolate(options_.metrics);
  for (std::size_t i = 0; i < results.size(); ++i) {
    meters_.results[i] = sink->counter("holdfast_write_behind_operations_total", {{.name = "result", .value = results[i]}},
                                       "Operations of write-behind stores, by what became of them");
  }
  meters_.pending = sink->gauge("holdfast_write_behind_pending", {}, "Operations that wait or are on their way");
  meters_.bytes = sink->gauge("holdfast_write_behind_pending_bytes", {}, "Memory of the operations that wait or are on their way");
  meters_.oldest = sink->gauge("holdfast_write_behind_oldest_seconds", {}, "Age of the operation that is pending longest");
}

core::~core() = default;

void core::publish() noexcept {
  if (!meters_.pending) return;
  try {
    std::array<std::uint64_t, 8> before{};
    write_behind_numbers now;
    {
      const guard lock(mutex_);
      before = counts_of(published_);
      now = numbers_now();
      published_ = now;
    }
    const auto after = counts_of(now);
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (after[i] != before[i]) meters_.results[i]->add(after[i] - before[i]);
    }
    meters_.pending->set(static_cast<double>(now.pending));
    meters_.bytes->set(static_cast<double>(now.pending_bytes));
    meters_.oldest->set(std::chrono::duration<double>(now.oldest).count());
  } catch (...) {  // NOLINT(bugprone-empty-catch)
    // Numbers for others never disturb the writer.
  }
}

std::shared_ptr<write_behind> make_write_behind(std::shared_ptr<core> made, std::shared_ptr<executor> runs,
                                                std::chrono::milliseconds linger, log_sink log) {
  return std::make_shared<write_behind_store>(std::move(made), std::move(runs), std::min<std::chrono::milliseconds>(linger, longest_wait),
                                              std::move(log));
}

}  // namespace behind

std::shared_ptr<write_behind> make_write_behind(std::shared_ptr<store> next, write_behind_options options) {
  // When the store ends its writer has nothing left to do, or hangs in the store below: then its thread is let go.
  if (!options.executor)
    options.executor =
        make_thread_pool({.threads = 1, .name = "write-behind", .linger = std::chrono::milliseconds(200), .log = options.log});
  auto runs = options.executor;
  const auto linger = options.linger;
  auto log = options.log;
  auto core = std::make_shared<behind::core>(std::move(next), std::move(options));
  return behind::make_write_behind(std::move(core), std::move(runs), linger, std::move(log));
}

}  // namespace HOLDFAST_NAMESPACE
