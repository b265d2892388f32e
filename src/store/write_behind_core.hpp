#pragma once

#include <holdfast/store/write_behind.hpp>

#include "store/write_behind_held.hpp"
#include "store/write_behind_log.hpp"

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <span>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::behind {

/// The queue and its writer. The store that users hold and the tasks of the executor share it, so that a store below that hangs outlives
/// its user. "The writer" is a role, not a thread: whoever runs drain() and finds nobody writing has it for one batch.
///
/// An operation is in one of three places, always visible to reads: queued (log_), in flight (flights_), or held (unchanged, to be written
/// later). Per key the order is: held, in flight, queued.
///
/// Not final, with two rules that can be overridden, because a test must show that it notices when one of them is broken.
class core : public std::enable_shared_from_this<core> {
 public:
  using time = std::chrono::steady_clock::time_point;

  core(std::shared_ptr<store> next, write_behind_options options);
  core(const core&) = delete;
  core& operator=(const core&) = delete;
  virtual ~core();

  void put(std::span<const entry> given);
  [[nodiscard]] std::optional<entry> find(place where, std::string_view key);
  bool erase(place where, std::string_view key, timestamp as_of);
  /// Throws errc::timeout when what is queued cannot be written in time.
  void flush_for_scan();
  write_behind_report flush(time deadline);
  write_behind_report close(time deadline);
  [[nodiscard]] write_behind_numbers numbers() const;
  [[nodiscard]] store& next() const noexcept { return *next_; }
  [[nodiscard]] const holdfast::clock& clock() const noexcept { return *options_.clock; }
  [[nodiscard]] time deadline_after(std::chrono::milliseconds wait) const noexcept { return options_.clock->steady() + wait; }

  /// Writes one batch, unless somebody else does, and sees to it that the rest is written. `timer`: the number of the timer that runs it.
  void drain(std::uint64_t timer = 0) noexcept;
  /// A task that was to call drain() will never run.
  void task_lost() noexcept;

 protected:
  /// Would the store replace the one by the other?
  [[nodiscard]] virtual bool replaces(const entry& newer, const entry& there, timestamp horizon) const noexcept;
  /// Do reads see what is in flight?
  [[nodiscard]] virtual bool reads_in_flight() const noexcept;

 private:
  using kind = operation::kind;
  using guard = std::unique_lock<std::mutex>;

  /// An operation in flight; its entry has the same index in entries_.
  struct flight {
    kind does = kind::none;
    bool done = false;
    bool released = false;  // was held: not to be held again
    bool clears = false;    // see operation
    bool followed = false;  // by another of the same key in this batch
    unsigned level = 0;     // how many of the same key come before it in this batch
    std::uint64_t sequence = 0;
    std::size_t hash = 0;
    std::size_t bytes = 0;
    std::size_t digest = 0;
    time since{};
  };
  /// A timer of the executor that has not run yet.
  struct armed_timer {
    time when{};
    std::uint64_t number = 0;
  };
  /// What a read has to apply to what the store has.
  struct change {
    kind does;
    entry what;
  };
  struct pending_changes {
    std::vector<change> changes{};  // in their order
    bool has_erase = false;
    std::uint64_t erased = 0;  // see there
  };

  // intake
  [[nodiscard]] operation made(const entry& from) const;
  void put_all(std::span<operation> ones, std::span<const entry> given, timestamp horizon);
  void stamp();
  void enqueue(operation&& one, timestamp horizon);
  bool merge(operation& last, operation& one, timestamp horizon) noexcept;
  [[nodiscard]] bool would_merge(const operation& one) noexcept;
  [[nodiscard]] bool fits(std::size_t places, std::size_t bytes) const noexcept;
  [[nodiscard]] bool fit(std::span<const operation> ones) noexcept;
  enum class room : std::uint8_t { made, not_needed };
  room make_room(guard& lock, std::span<operation> ones, std::span<const entry> given, timestamp horizon);
  void wait_for_room(guard& lock, std::span<const operation> ones);
  room write_through(guard& lock, std::span<const operation> ones, std::span<const entry> given, timestamp horizon);
  room drop_oldest(std::span<const operation> ones) noexcept;
  [[nodiscard]] bool pending_elsewhere(const operation& one) noexcept;
  [[nodiscard]] pending_changes pending_of(place where, std::string_view key);
  void apply(const change& one, std::optional<entry>& there, timestamp horizon) const;
  [[nodiscard]] std::optional<entry> look(place where, std::string_view key, std::optional<timestamp> wanted);
  void check_open() const;

  // waiting
  /// Until when to wait, on our clock and on the machine's: ours may stand still.
  struct time_limit {
    time deadline{};
    time machine_deadline{};
  };
  [[nodiscard]] time_limit limit_of(time deadline) const noexcept;
  bool wait_a_little(guard& lock, std::condition_variable& on, const time_limit& limit);
  template <class Condition>
  bool wait(guard& lock, std::condition_variable& on, time deadline, Condition condition);
  [[nodiscard]] bool saved(std::uint64_t before) const noexcept;
  void see_to_a_writer(guard& lock, time deadline);
  void drain_apart(time deadline);
  bool settle(guard& lock, std::uint64_t before, time deadline);
  write_behind_report settle_and_report(guard& lock, time deadline);

  // the writer
  bool take(time now);
  void append(operation&& one, bool released, bool look_back);
  void arrange();
  [[nodiscard]] bool may_hold(std::size_t at, timestamp now, time steady) const noexcept;
  void hold(std::size_t at, time due);
  void reorder();
  [[nodiscard]] bool stopped() const;
  bool write_flight();
  bool write_run(std::size_t first, std::size_t last);
  void written(std::size_t first, std::size_t last);
  bool carry_out(std::size_t at);
  void lapse(const entry& what);
  bool give_up(std::size_t at, const error& why);
  void supersede(const flight& one, const entry& what) noexcept;
  void fail(std::size_t at, const error& why) noexcept;
  void back_off(const char* why) noexcept;
  void retire(guard& lock) noexcept;
  void go_on(guard& lock) noexcept;
  bool wake() noexcept;
  [[nodiscard]] executor::task task(std::uint64_t timer = 0);
  void publish() noexcept;
  [[nodiscard]] write_behind_numbers numbers_now() const;

  const std::shared_ptr<store> next_;
  const write_behind_options options_;
  const std::weak_ptr<executor> executor_;  // weak: the executor may hold our tasks
  const logger log_to_;

  mutable std::mutex mutex_{};
  std::condition_variable room_{};   // for puts that wait
  std::condition_variable saved_{};  // for flushes
  std::size_t waiting_for_room_ = 0;
  std::size_t flushing_ = 0;

  mutable operation_log log_{};
  held_operations held_{};
  last_written last_written_;
  std::vector<flight> flights_{};
  std::vector<entry> entries_{};  // contiguous, as store::put wants them; unchanged while in flight
  std::vector<entry> spent_{};    // the writer's: its memory is used again
  std::size_t flying_ = 0;        // of the flights: those not done
  std::size_t flying_bytes_ = 0;
  std::uint64_t flush_target_ = 0;  // operations before this one are not held

  std::uint64_t erased_ = 0;  // erases carried out

  time since_{};                   // what is queued now is unsaved since then, at the latest
  bool awake_ = false;             // somebody is writing, or will
  bool writing_ = false;           // the role of the writer is taken
  bool apart_ = false;             // a thread of our own writes, since the executor refuses tasks
  bool closed_ = false;            // no more puts
  bool stopped_ = false;           // no more writes
  unsigned tries_ = 0;             // of this batch that failed
  time not_before_ = time::min();  // the next try
  std::optional<time> failing_since_{};
  std::optional<armed_timer> timer_{};  // for what is held
  std::optional<armed_timer> retry_{};  // for the next try, or for a look whether it is time
  std::uint64_t timers_armed_ = 0;
  std::minstd_rand random_;

  write_behind_numbers numbers_{};
  std::uint64_t unreported_failed_ = 0;
  std::uint64_t unreported_dropped_ = 0;

  struct meters {
    std::array<std::shared_ptr<metrics::counter>, 8> results{};
    std::shared_ptr<metrics::gauge> pending{};
    std::shared_ptr<metrics::gauge> bytes{};
    std::shared_ptr<metrics::gauge> oldest{};
  } meters_{};
  write_behind_numbers published_{};
};

/// The store that users hold, over a core (of a test, perhaps).
[[nodiscard]] std::shared_ptr<write_behind> make_write_behind(std::shared_ptr<core> made, std::shared_ptr<executor> runs,
                                                              std::chrono::milliseconds linger, log_sink log);

}  // namespace HOLDFAST_NAMESPACE::behind
