#pragma once

/// \file
/// What an outbox stands on. Write one for a database that Holdfast does not know, and run the contract suite
/// (tests/contract/outbox_contract.hpp) on it.

#include <holdfast/error.hpp>
#include <holdfast/outbox/commit.hpp>
#include <holdfast/outbox/operations.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE {

/// Every operation is one atomic step on one lane. The class `outbox` has checked what it hands down: ids are there and well-formed, events
/// are in their lane, limits hold.
///
/// Thread-safety: every function may be called from any thread.
/// Errors: holdfast::error. One that is not in doubt changed nothing; after one in doubt: publish, settle, extend, schedule, cancel and the
/// lock may be repeated; what a claim took comes back when its lease ends.
class HOLDFAST_API outbox_backend {
 public:
  virtual ~outbox_backend();

  [[nodiscard]] virtual std::size_t lanes() const noexcept = 0;
  /// With which a key must begin to be written by `commit` in that lane; empty where commit is not known.
  [[nodiscard]] virtual std::string key_prefix(std::size_t lane) const = 0;
  /// Throws errc::invalid_argument when what is below cannot keep what was asked, and says what to change.
  virtual void require(const durability& how) = 0;

  /// One receipt for each event; the events of the lane are all kept or all refused. In doubt and refused are receipts, not exceptions.
  [[nodiscard]] virtual std::vector<receipt> publish(std::size_t lane, std::span<const event> events, const publish_terms& terms) = 0;

  [[nodiscard]] virtual claimed claim(const claim_request& request) = 0;
  /// The leases of these events (of runs: any of them) end so much later from now. For each: false when it was lost.
  [[nodiscard]] virtual std::vector<bool> extend(std::size_t lane, fence token, std::span<const settlement> events,
                                                 std::chrono::milliseconds lease) = 0;
  /// Settles in this order; within a key the order must be that of the run. `next`: then claims the next run of each key whose run was
  /// acknowledged whole. `terms` for the dedup window.
  [[nodiscard]] virtual settled settle(std::size_t lane, fence token, std::span<const settlement> what,
                                       const std::optional<run_request>& next, const publish_terms& terms) = 0;
  /// Parks up to so many events that wait behind a blocking one; when none is left, the key is free. Gives how many are left (at least).
  virtual std::size_t park_followers(std::size_t lane, std::string_view key, std::size_t most) = 0;

  /// Parked events are to be delivered again (a blocking one in its place, others behind what their key has now), or forgotten. For each id:
  /// whether it was parked.
  [[nodiscard]] virtual std::vector<bool> replay(std::size_t lane, std::span<const std::string> ids) = 0;
  [[nodiscard]] virtual std::vector<bool> discard(std::size_t lane, std::span<const std::string> ids) = 0;
  /// A paused lane gives out nothing; publishing goes on.
  virtual void pause(std::size_t lane, bool paused) = 0;

  /// `at`, or `delay` from now by the store's clock.
  [[nodiscard]] virtual scheduled schedule(std::size_t lane, std::string_view ticket, std::optional<timestamp> at,
                                           std::chrono::milliseconds delay, const event& becomes, const publish_terms& terms) = 0;
  [[nodiscard]] virtual cancel_status cancel(std::size_t lane, std::string_view ticket) = 0;
  /// Turns up to so many expired tickets into their events.
  [[nodiscard]] virtual drained drain(std::size_t lane, std::size_t most, const publish_terms& terms) = 0;

  /// Takes the lock if it is free or held by this owner (then it is renewed, with the same fence).
  [[nodiscard]] virtual lock_grant lock(std::size_t lane, std::string_view owner, std::chrono::milliseconds ttl) = 0;
  /// Only if this owner holds it.
  [[nodiscard]] virtual lock_grant renew(std::size_t lane, std::string_view owner, std::chrono::milliseconds ttl) = 0;
  /// False: this owner did not hold it.
  virtual bool unlock(std::size_t lane, std::string_view owner) = 0;

  /// Throws errc::unsupported_type where the data of the caller does not live beside the outbox (SQL: publish in your transaction instead).
  [[nodiscard]] virtual committed commit(std::size_t lane, const commit_request& request, const publish_terms& terms) = 0;

  [[nodiscard]] virtual outbox_stats stats(std::size_t lane) = 0;
  [[nodiscard]] virtual std::optional<outbox_record> find(std::size_t lane, std::string_view id) = 0;
  /// `after`: from the page before; empty: from the beginning. What is there all the time is seen at least once.
  [[nodiscard]] virtual scan_page scan(std::size_t lane, scan_what what, std::string_view after, std::size_t most) = 0;
  [[nodiscard]] virtual check_report check(std::size_t lane, bool repair) = 0;

  /// Waits until something may be there to be claimed, at most so long. True: look; false: nobody said so. Never wakes late, may wake early.
  virtual bool wait(std::size_t lane, std::chrono::milliseconds longest) = 0;
  /// Lets one of those who wait look (the one in this process, if it is the only one): for the end of a worker.
  virtual void wake(std::size_t lane) = 0;

  /// Nothing when it answers; otherwise why not.
  [[nodiscard]] virtual std::optional<error> health() noexcept = 0;
};

}  // namespace HOLDFAST_NAMESPACE
