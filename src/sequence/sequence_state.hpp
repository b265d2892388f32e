#pragma once

/// \file
/// The state of an open sequence: the slow path of next(), taken once for each block, and the
/// answers of the refiller.

#include <holdfast/error.hpp>
#include <holdfast/sequence.hpp>
#include <holdfast/version.hpp>

#include "sequence/block_sizing.hpp"
#include "sequence/id_lease.hpp"
#include "sequence/id_range.hpp"
#include "sequence/instruments.hpp"
#include "sequence/refiller.hpp"
#include "sequence/source.hpp"
#include "sequence/wiped_on_fork.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace HOLDFAST_NAMESPACE::detail::sequence {

/// What does not change while a sequence is open.
struct sequence_config {
  std::string name;
  sequence_options options;
  id_range range;
  /// As definition_of(options).
  std::string definition;
};

/// What a caller asks for.
struct draw_request {
  using time_point = std::chrono::steady_clock::time_point;

  std::uint64_t count = 1;
  /// Without a deadline the call does not wait.
  std::optional<time_point> deadline{};
  /// Accept fewer ids if the lease has fewer.
  bool partial = false;
};

/// `count` ids that begin with `first`.
struct drawn_ids {
  std::int64_t first = 0;
  std::uint64_t count = 0;
};

/// Shared by a `sequence`, its handles and the refiller. Made with make_process_bound.
/// Thread-safety: every function may be called from any thread. After fork, functions that can
/// throw throw errc::invalid_argument in the child.
class sequence_state final : public refill_client,
                             public std::enable_shared_from_this<sequence_state> {
 public:
  using time_point = draw_request::time_point;

  sequence_state(sequence_config config, std::shared_ptr<sequence::source> source);

  [[nodiscard]] bool inherited_by_fork() const noexcept { return source_->inherited_by_fork(); }
  void check_process() const { source_->check_process(); }
  [[nodiscard]] const sequence_config& config() const noexcept { return config_; }
  /// The tickets that next() can turn into ids without a lock.
  [[nodiscard]] ticket_window& window() const noexcept { return *window_; }
  /// The store, after its settings were checked. Throws as settings_check::run.
  [[nodiscard]] block_store& store() const;
  /// As store(), after the definition of the counter was compared with the options. Throws
  /// errc::invalid_argument if they differ.
  [[nodiscard]] block_store& defined_store() const;

  /// Draws ids. Returns nothing only if the request has no deadline and the lease is used up.
  /// Throws as sequence::next.
  std::optional<drawn_ids> draw(const draw_request& request);
  /// Continues a draw whose ticket lies outside the published window.
  std::optional<drawn_ids> draw_slowly(std::uint64_t ticket, const draw_request& request);
  /// The deadline of a call that begins now and waits as long as the options say.
  [[nodiscard]] time_point default_deadline() const;
  [[nodiscard]] error exhausted_error() const;

  void add_handle() noexcept { handle_count_.fetch_add(1, std::memory_order_relaxed); }
  void remove_handle() noexcept { handle_count_.fetch_sub(1, std::memory_order_relaxed); }
  /// How many ids one handle may take at once.
  [[nodiscard]] std::uint64_t handle_share() const noexcept;

  /// No block with ordinals up to this one may be used any more: the counter was raised. If the
  /// store grants one, it has lost that, and is told again. 0: the counter was reset.
  void set_floor(std::int64_t ordinal);

  /// The last id that this process has drawn, or nothing.
  [[nodiscard]] std::optional<std::int64_t> position() const;
  /// Discards the leased ids and the block that is being granted; the next draw requests a block.
  void invalidate();
  [[nodiscard]] sequence_stats stats() const;
  /// Stops drawing, and returns the unused ids to the store if the options say so; waits until the
  /// deadline for a block that is being granted.
  sequence_close_report close(time_point deadline);

  // Calls of the refiller
  [[nodiscard]] const std::string& name() const noexcept override { return config_.name; }
  [[nodiscard]] block_request next_request() override;
  void on_granted(block_grant grant, std::chrono::microseconds latency) noexcept override;
  [[nodiscard]] bool on_failed(const error& reason) noexcept override;

 private:
  struct pending_block {
    std::int64_t first;
    std::int64_t last;
    [[nodiscard]] std::uint64_t size() const {
      return static_cast<std::uint64_t>(last - first) + 1;
    }
  };
  enum class wait_result : std::uint8_t { leased, draw_again, late };

  // Called with mutex_ held:
  wait_result wait_for_lease(std::unique_lock<std::mutex>& lock, std::uint64_t ticket,
                             const draw_request& request, drawn_ids& ids);
  bool keep_leased_tickets(std::uint64_t ticket, drawn_ids& ids);
  bool install_pending();
  void prefetch(std::uint64_t ticket, std::uint64_t count);
  void request_block(std::uint64_t min_size);
  void add_block(const block_grant& grant);
  void enter_epoch(std::int64_t epoch);
  [[nodiscard]] bool repeats_earlier_ids(const block_grant& grant) const;
  [[nodiscard]] std::optional<low_water_report> check_low_water(std::int64_t last);
  [[nodiscard]] std::optional<std::int64_t> current_position() const;
  [[nodiscard]] std::uint64_t unused_id_count() const;
  void update_metrics();
  void update_shared_size() noexcept;
  void end_starvation();
  void throw_if_unusable() const;
  [[nodiscard]] error timeout_error() const;

  // Called without mutex_, because they call the store:
  [[nodiscard]] std::int64_t epoch_of(const block_grant& grant) const noexcept;
  [[nodiscard]] bool raise_lost_floor(const block_grant& grant) noexcept;
  [[nodiscard]] bool return_unused_ids(std::int64_t last_used, counter_state granted);

  const sequence_config config_;
  const std::shared_ptr<sequence::source> source_;
  const instruments metrics_;
  const wiped_on_fork<ticket_window> window_{};
  std::atomic<std::uint64_t> handle_count_{0};
  std::atomic<std::uint64_t> shared_size_{0};  // of a block that handles share; 0: no fast path

  mutable std::mutex mutex_{};
  std::condition_variable changed_{};
  id_lease lease_;
  block_sizing sizing_;
  // A granted block that does not continue the lease. It is used when the lease is used up.
  std::optional<pending_block> pending_{};
  bool request_pending_ = false;     // the refiller has a request of this sequence
  bool discard_next_grant_ = false;  // the block of that request is not wanted any more
  std::int64_t min_size_ = 0;        // of the next block, for a caller of next_n
  std::int64_t floor_ = 0;           // ordinals up to this one are not used
  // Since when callers wait for a block, and for how long they have waited in all.
  std::optional<time_point> starved_since_{};
  time_point::duration starved_{};
  // The next two are written by threads of the refiller only, one at a time.
  std::int64_t epoch_ = 0;            // of the counter; 0 while unknown
  std::int64_t highest_granted_ = 0;  // the last ordinal that was granted in this epoch
  bool closed_ = false;
  std::optional<error> fatal_error_{};  // every later draw throws this error
  std::optional<error> last_refill_error_{};
  std::uint64_t refill_failures_ = 0;
  std::uint64_t in_doubt_ = 0;
  std::uint64_t refills_ = 0;
  std::uint64_t stalls_ = 0;
  std::uint64_t redraws_ = 0;
  std::uint64_t reported_ids_ = 0;  // to the metrics
  bool low_water_reported_ = false;
  std::uint64_t remaining_;                          // ids that were not granted to any process
  std::optional<std::int64_t> previous_position_{};  // the last id of the previous block
};

}  // namespace HOLDFAST_NAMESPACE::detail::sequence
