#pragma once

#include <holdfast/clock.hpp>
#include <holdfast/error.hpp>
#include <holdfast/log.hpp>
#include <holdfast/metrics.hpp>
#include <holdfast/sequence.hpp>
#include <holdfast/version.hpp>

#include "sequence/block_sizing.hpp"
#include "sequence/id_range.hpp"
#include "sequence/lease.hpp"
#include "sequence/refiller.hpp"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail {

/// What does not change: shared by a process and its children.
struct sequence_config {
  std::string name;
  sequence_options options;
  id_range range;
};

/// What a sequence says at its end.
[[nodiscard]] error exhausted(std::string_view name);

/// The numbers of one sequence, for a sink.
struct sequence_instruments {
  sequence_instruments(metrics_sink& into, std::string_view name);

  std::shared_ptr<metrics::counter> ids;
  std::shared_ptr<metrics::counter> refills;
  std::shared_ptr<metrics::counter> failures;
  std::shared_ptr<metrics::counter> stalls;
  std::shared_ptr<metrics::counter> redraws;
  std::shared_ptr<metrics::histogram> refill_seconds;
  std::shared_ptr<metrics::gauge> at_risk;
  std::shared_ptr<metrics::gauge> left;
};

/// The look at a store's settings, once. The refiller's thread may outlive the source, so this belongs to both.
/// Thread-safety: every function may be called from any thread.
class settings_check {
 public:
  settings_check(std::shared_ptr<block_store> store, std::shared_ptr<const logger> log, bool allow_unsafe)
      : store_(std::move(store)), log_(std::move(log)), allow_unsafe_(allow_unsafe) {}

  /// Throws errc::unsupported_type when they could make the store forget blocks, and what asking throws.
  void run();

 private:
  const std::shared_ptr<block_store> store_;
  const std::shared_ptr<const logger> log_;
  const bool allow_unsafe_;
  std::mutex mutex_{};
  bool done_ = false;
};

/// A store, its refiller, and what is around them: one for each process.
/// Thread-safety: every function may be called from any thread.
class source_core : public std::enable_shared_from_this<source_core> {
 public:
  source_core(std::shared_ptr<block_store> on, const sequence_environment& around);

  const std::shared_ptr<block_store> store;
  const std::shared_ptr<const holdfast::clock> clock;
  const std::shared_ptr<const logger> log;
  const std::shared_ptr<settings_check> settings;
  refiller refills;
};

/// A sequence in one process: the slow way, taken once for each block.
/// Thread-safety: every function may be called from any thread.
class sequence_core final : public refill_client, public std::enable_shared_from_this<sequence_core> {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  sequence_core(std::shared_ptr<const sequence_config> config, std::shared_ptr<source_core> source, std::shared_ptr<sequence_window> window,
                std::shared_ptr<const sequence_instruments> numbers, bool hot);

  enum class answer : std::uint8_t { owned, redraw, later };
  /// What becomes of tickets that the hot path was not sure of. `owned`: `first` is the id of the first. `later`: the time is up, and nobody was willing to wait.
  /// `partial`: fewer will do, and `count` says how many. Throws as sequence::next.
  answer settle(std::uint64_t mine, std::uint64_t& count, std::optional<time_point> deadline, bool partial, std::int64_t& first);

  /// What a handle may take at once when there are so many.
  [[nodiscard]] std::uint64_t share(std::uint64_t handles) const;

  [[nodiscard]] std::optional<std::int64_t> position() const;
  void invalidate();
  [[nodiscard]] sequence_stats stats() const;
  sequence_close_report close(time_point deadline);
  [[nodiscard]] block_store& store() const noexcept { return *source_->store; }

  [[nodiscard]] const std::string& name() const noexcept override { return config_->name; }
  [[nodiscard]] block_request wanted() override;
  void granted(block_grant what, std::chrono::microseconds took) noexcept override;
  [[nodiscard]] bool failed(const error& why) noexcept override;

 private:
  struct span {
    std::int64_t first;
    std::int64_t last;
  };

  void prefetch(std::uint64_t mine, std::uint64_t count);
  void request(std::uint64_t at_least);
  void accept(const block_grant& what);
  void install(span block);
  void refuse(const error& why);
  [[nodiscard]] std::int64_t epoch_of(const block_grant& what) const noexcept;
  [[nodiscard]] bool went_back(const block_grant& what, std::int64_t epoch);
  void watch_the_end(std::int64_t last, std::optional<low_water_report>& report);
  void tell_numbers();
  [[nodiscard]] error out_of_time() const;

  const std::shared_ptr<const sequence_config> config_;
  const std::shared_ptr<source_core> source_;
  const std::shared_ptr<sequence_window> window_;  // the refiller may bring a block when nobody else is left
  const std::shared_ptr<const sequence_instruments> numbers_;

  mutable std::mutex mutex_{};
  std::condition_variable changed_{};
  lease lease_;
  block_sizing sizing_;
  std::optional<span> next_{};  // granted, and not next to the lease: for when that is used up
  bool requested_ = false;      // the refiller knows
  bool discard_ = false;        // what it brings is not wanted any more
  std::int64_t at_least_ = 0;   // for somebody who wants many at once
  std::int64_t epoch_ = 0;      // of the counter; 0 while unknown. Only the refiller's thread writes this and the next
  std::int64_t highest_ = 0;    // ordinal that was granted in this epoch
  bool closed_ = false;
  std::optional<error> poison_{};   // the store granted twice: nothing more, ever
  std::optional<error> failure_{};  // of the last refill
  std::uint64_t failures_ = 0;
  std::uint64_t in_doubt_ = 0;
  std::uint64_t refills_ = 0;
  std::uint64_t stalls_ = 0;
  std::uint64_t redraws_ = 0;
  std::uint64_t told_ids_ = 0;  // to the metrics
  bool low_water_told_ = false;
  std::uint64_t left_;                         // ids that nobody was granted
  std::optional<std::int64_t> last_before_{};  // the last id of the block before
};

}  // namespace HOLDFAST_NAMESPACE::detail
