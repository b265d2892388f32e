#pragma once

/// \file
/// The interface between an outbox and the store below it. To support another database, implement
/// it and run the contract suite (tests/contract/outbox_contract.hpp).

#include <holdfast/error.hpp>
#include <holdfast/outbox/commit.hpp>
#include <holdfast/outbox/operations.hpp>
#include <holdfast/outbox/recurring.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE {

/// The lock of each lane: at most one owner at a time, with an expiry.
class HOLDFAST_API outbox_lane_locks {
 public:
  /// Acquires the lock if it is free. If this owner holds it, renews it with the same fence.
  [[nodiscard]] virtual lock_grant lock(std::size_t lane, std::string_view owner,
                                        std::chrono::milliseconds ttl) = 0;
  /// Renews the lock only if this owner holds it.
  [[nodiscard]] virtual lock_grant renew(std::size_t lane, std::string_view owner,
                                         std::chrono::milliseconds ttl) = 0;
  /// Returns false if this owner did not hold the lock.
  virtual bool unlock(std::size_t lane, std::string_view owner) = 0;
  /// Records that this worker lives for `ttl`; 0: that it has ended. Returns the names of all
  /// workers that live, in order. They share the lanes evenly. A backend that does not know its
  /// workers returns only this one; then the first worker holds all lanes.
  [[nodiscard]] virtual std::vector<std::string> announce(std::string_view worker,
                                                          std::chrono::milliseconds ttl);

 protected:
  ~outbox_lane_locks() = default;
};

/// Wakes workers when there may be something to claim.
class HOLDFAST_API outbox_lane_signals {
 public:
  /// Waits until there may be something to claim in the lane, at most for `longest`. Returns true
  /// if it was signalled. May return early; never misses a signal.
  virtual bool wait(std::size_t lane, std::chrono::milliseconds longest) = 0;
  /// Wakes one waiting thread. A worker that stops uses it to wake its own.
  virtual void wake(std::size_t lane) = 0;

 protected:
  ~outbox_lane_signals() = default;
};

/// Stores the events of an outbox. Every operation is one atomic step on one lane. Class `outbox`
/// validates all arguments first: ids are present and well-formed, events belong to their lane,
/// limits hold.
///
/// Thread-safety: every function may be called from any thread.
/// Errors: holdfast::error. An error that is not in doubt has changed nothing. After an error in
/// doubt, publish, settle, extend, schedule, cancel and the lock functions may be repeated. Events
/// of a claim in doubt become due again when the lease ends.
class HOLDFAST_API outbox_backend : public outbox_lane_locks, public outbox_lane_signals {
 public:
  virtual ~outbox_backend();

  [[nodiscard]] virtual std::size_t lanes() const noexcept = 0;
  /// Returns the prefix that is in use; empty for a backend without one. May ask the store, if the
  /// options did not name a prefix; throws what that throws.
  [[nodiscard]] virtual std::string prefix();
  /// Throws errc::invalid_argument if no store of this kind can provide this durability. Does not
  /// ask the store: an outbox can be opened while its store cannot be reached.
  virtual void check_supported(const durability& durability) const;
  /// Throws errc::invalid_argument if the store cannot provide this durability. The message says
  /// what to change. Called before the first operation that needs it; may ask the store.
  virtual void require(const durability& durability) = 0;
  /// Returns what this durability does not survive on this store although a user may expect it, as
  /// a sentence for the log; empty: nothing. Called after `require`. Does not ask the store.
  [[nodiscard]] virtual std::string caution(const durability& durability) const;
  /// Returns the last error of the connection to the store, or nothing if it is available.
  [[nodiscard]] virtual std::optional<error> health() noexcept { return std::nullopt; }

  // ---- publish ----

  /// Returns one receipt per event. The events are all kept or all refused. `in_doubt` and
  /// `refused` are receipts, not exceptions.
  [[nodiscard]] virtual std::vector<receipt> publish(std::size_t lane,
                                                     std::span<const event> events,
                                                     const publish_terms& terms) = 0;

  // ---- deliver ----

  [[nodiscard]] virtual claimed claim(const claim_request& request) = 0;
  /// Extends the leases of these events to `lease` from now. The lease of a run can be extended
  /// through any of its events. Returns for each event whether its lease is still held.
  [[nodiscard]] virtual std::vector<bool> extend(std::size_t lane, fence token,
                                                 std::span<const settlement> events,
                                                 std::chrono::milliseconds lease) = 0;
  /// Applies the settlements in this order. Within a key it must be the order of the run. With
  /// `next`, also claims the next run of each key whose run was acknowledged completely.
  [[nodiscard]] virtual settled settle(std::size_t lane, fence token,
                                       std::span<const settlement> settlements,
                                       const std::optional<run_request>& next,
                                       const publish_terms& terms) = 0;
  /// Parks up to `most` events that wait behind a parked event. When none remains, the key
  /// continues. Returns how many remain (a lower bound).
  virtual std::size_t park_followers(std::size_t lane, std::string_view key, std::size_t most) = 0;

  // ---- tickets ----

  /// The ticket expires at `due`, or after `delay` by the clock of the store.
  [[nodiscard]] virtual scheduled schedule(std::size_t lane, std::string_view ticket,
                                           std::optional<timestamp> due,
                                           std::chrono::milliseconds delay, const event& becomes,
                                           const publish_terms& terms) = 0;
  [[nodiscard]] virtual cancel_status cancel(std::size_t lane, std::string_view ticket) = 0;
  /// Turns up to `most` expired tickets into events.
  [[nodiscard]] virtual drained drain(std::size_t lane, std::size_t most,
                                      const publish_terms& terms) = 0;

  // ---- recurring events ----

  /// Returns recurring events of a lane, in one step. A backend without them returns none.
  [[nodiscard]] virtual recurrence_page read_recurrences(std::size_t lane,
                                                         const recurrence_query& query);
  /// Changes one recurring event and publishes events, in one step, if the stored text is the
  /// expected one. Quotas do not apply. Throws errc::too_large if the lane has
  /// `max_recurrences` already, and errc::unsupported_type if the backend has none.
  [[nodiscard]] virtual update_status update_recurrence(std::size_t lane,
                                                        const recurrence_update& update,
                                                        const publish_terms& terms);
  /// Number of recurring events of a lane at most.
  static constexpr std::size_t max_recurrences = 1000;

  // ---- commit; only for stores that keep data of the caller ----

  /// Returns the prefix of the keys that `commit` may write in this lane. Empty: `commit` is not
  /// supported.
  [[nodiscard]] virtual std::string key_prefix(std::size_t lane) const;
  /// Throws errc::unsupported_type if it is not supported.
  [[nodiscard]] virtual committed commit(std::size_t lane, const commit_request& request,
                                         const publish_terms& terms);

  // ---- administration ----

  /// Makes parked events due again. A blocking event keeps its position; others go behind the
  /// events that their key has now. Returns for each id whether it was parked.
  [[nodiscard]] virtual std::vector<bool> replay(std::size_t lane,
                                                 std::span<const std::string> ids) = 0;
  /// Deletes parked events. Returns for each id whether it was parked.
  [[nodiscard]] virtual std::vector<bool> discard(std::size_t lane,
                                                  std::span<const std::string> ids) = 0;
  /// While a lane is paused, `claim` returns no events. Publishing continues.
  virtual void pause(std::size_t lane, bool paused) = 0;
  [[nodiscard]] virtual outbox_stats stats(std::size_t lane) = 0;
  [[nodiscard]] virtual std::optional<outbox_record> find(std::size_t lane,
                                                          std::string_view id) = 0;
  /// Returns a page of records. `after` comes from the previous page; empty: the first page. A
  /// record that exists during the whole scan is returned at least once.
  [[nodiscard]] virtual scan_page scan(std::size_t lane, scan_what selection,
                                       std::string_view after, std::size_t most) = 0;
  /// Compares the data structures of the lane with each other, and repairs them if requested.
  [[nodiscard]] virtual check_report check(std::size_t lane, bool repair) = 0;
};

}  // namespace HOLDFAST_NAMESPACE
