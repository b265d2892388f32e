#pragma once

/// \file
/// The outbox: a durable queue of events. A published event is delivered at least once, in order
/// per key, with fencing.
///
///     auto outbox = holdfast::open("redis://127.0.0.1").outbox({.prefix = "{shop}"});
///     outbox.publish({.type = "ticket.created", .key = "ticket-7", .payload = body});
///
/// Class `worker` (worker.hpp) delivers events to handlers. Class `outbox_admin` (outbox/admin.hpp)
/// is for operators.

#include <holdfast/clock.hpp>
#include <holdfast/log.hpp>
#include <holdfast/metrics.hpp>
#include <holdfast/outbox/admin.hpp>
#include <holdfast/outbox/backend.hpp>
#include <holdfast/outbox/commit.hpp>
#include <holdfast/outbox/event.hpp>
#include <holdfast/outbox/operations.hpp>
#include <holdfast/outbox/options.hpp>
#include <holdfast/outbox/recurring.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE {

namespace join {
class transaction;
}  // namespace join

/// An outbox on a backend. Copies share it.
///
/// Thread-safety: every function may be called from any thread. It has no threads. After fork the
/// child must not use it.
/// Errors: holdfast::error. errc::invalid_argument for invalid arguments, before anything is sent;
/// otherwise the error of the backend. An error that is not in doubt has changed nothing.
class HOLDFAST_API outbox {
 public:
  /// Throws errc::invalid_argument if the options are invalid or not supported by the backend.
  explicit outbox(std::shared_ptr<outbox_backend> backend, outbox_options options = {},
                  log_sink log = {}, std::shared_ptr<metrics_sink> metrics = {});

  // ---- publish ----

  /// Publishes an event. Throws if it is refused or in doubt. The `path()` of the error is the id
  /// of the event: to repeat the call, use the same id.
  receipt publish(event event) const;
  receipt publish(event event, const durability& durability) const;
  /// Publishes many events, in steps of up to 1000 events and 4 MiB of one lane. If a step is
  /// refused, or its answer is lost, the receipts of its events say so, and the later events of the
  /// lane are refused. If an event is invalid, nothing is published, and the `path()` of the error
  /// is the index of the event: `[3]`.
  [[nodiscard]] std::vector<receipt> publish_all(std::vector<event> events) const;
  [[nodiscard]] std::vector<receipt> publish_all(std::vector<event> events,
                                                 const durability& durability) const;

  // ---- publish in a transaction of the caller, on SQL ----

  /// Publishes an event if and when the transaction of the caller commits. The adaptors of
  /// holdfast/join/ run it on the connection of the caller, whose database must have the tables of
  /// the outbox. Until the transaction ends, other publishers of the same key wait.
  ///
  /// Throws errc::unsupported_type if the outbox is not on SQL. Throws if the event is refused
  /// (quota).
  receipt publish(join::transaction& transaction, event event) const;
  [[nodiscard]] std::vector<receipt> publish_all(join::transaction& transaction,
                                                 std::vector<event> events) const;
  /// Returns whether to apply the effect of a claimed event in this transaction:
  ///
  /// - `done`: apply it and commit;
  /// - `applied`: it was applied before, do nothing;
  /// - `stale`: the claim was lost, roll back.
  ///
  /// Applied events are remembered for the dedup window. Until the transaction ends, the event
  /// cannot be claimed. On Galera it can when its lease ends; then one of two transactions with the
  /// same effect fails.
  [[nodiscard]] commit_status effect_once(join::transaction& transaction, fence token,
                                          const claimed_event& event) const;

  // ---- publish together with data of the caller, on Redis ----

  /// Checks conditions, writes keys and publishes events in one step; see commit.hpp. All of them
  /// must be in one lane: that of the event `once`, otherwise of the first event, otherwise of the
  /// first key. An event without key and id gets an id that belongs to the lane. Throws
  /// errc::invalid_argument if an event belongs to another lane.
  [[nodiscard]] committed commit(commit_request request) const;
  /// Returns the name of a Redis key for `commit`, in the lane of that ordering key.
  [[nodiscard]] std::string key_of(std::string_view ordering_key, std::string_view name) const;
  /// Returns the name of a Redis key for `effect_once`, in the lane of the claimed event. Use this
  /// one in handlers: the lane of an event without a key does not follow from its (empty) key.
  [[nodiscard]] std::string key_of(const claimed_event& event, std::string_view name) const;
  /// Applies the effect of a claimed event once: performs the writes and publishes the events,
  /// unless this was done before or the claim was lost. Writes and events must be in the lane of
  /// the claimed event.
  [[nodiscard]] committed effect_once(fence token, const claimed_event& event,
                                      std::vector<commit_write> writes,
                                      std::vector<holdfast::event> events = {}) const;

  // ---- tickets: events in the future that can be cancelled ----

  /// Schedules a ticket: when it expires, it becomes the event, once. Scheduling it again replaces
  /// its time and its event. The key of the event must stay the same, because it determines the
  /// lane: with another key there may be two tickets, and both fire. The id of the event must be
  /// empty; it will be expiry_event_id. Without a key the event is in the lane of the ticket, not
  /// of this id: do not publish the id yourself.
  scheduled schedule(std::string_view ticket, timestamp expires_at, const event& becomes) const;
  scheduled schedule(std::string_view ticket, std::chrono::milliseconds after,
                     const event& becomes) const;
  /// Cancels a ticket. `event_key` is the key of its event.
  [[nodiscard]] cancel_status cancel(std::string_view ticket,
                                     std::string_view event_key = {}) const;

  // ---- recurring events ----

  /// Defines a recurring event: whenever the cron expression matches, a worker publishes `event`,
  /// once for each due time, however many workers and processes run. Call it at every start: the
  /// same definition changes nothing, another one replaces the definition, and a warning is logged.
  /// The expression has five fields (minute, hour, day of month, month, day of week) or six, with
  /// the second as the first one. The id and the delay of the event must be empty.
  ///
  ///     outbox.recur("nightly", "0 3 * * *", {.zone = "Europe/Paris"}, {.type = "report.due"});
  ///
  /// With several lanes, a recurring event is in the lane of the key of its event, or of its name
  /// without a key. Replacing the key may move it to another lane, which takes two steps: repeat
  /// the call if it fails.
  recur_status recur(std::string_view name, std::string_view cron, recurrence_options options,
                     event event) const;
  /// Ends a recurring event. Events that were published stay. Returns false if there was none.
  [[nodiscard]] bool cancel_recurring(std::string_view name) const;

  // ---- deliver; class `worker` does all of this ----

  /// Claims due events of a lane. Parks events instead that were claimed too often or are too old.
  [[nodiscard]] claimed claim(const claim_request& request = {}) const;
  /// Extends the leases of claimed events to `lease` from now. Returns for each event whether it is
  /// still held. The events of a run share one lease.
  [[nodiscard]] std::vector<bool> extend(fence token, std::span<const claimed_event> events,
                                         std::chrono::milliseconds lease) const;
  /// Settles claimed events of one lane in one step. Settlements of a key must be in the order of
  /// its events. With `next`, the same step claims the next run of each key whose run was
  /// acknowledged completely.
  settled settle(std::size_t lane, fence token, std::vector<settlement> settlements,
                 const std::optional<run_request>& next = {}) const;
  /// Settles one event as delivered. Returns false if the lease was lost: the event may be
  /// delivered again.
  bool ack(fence token, const claimed_event& event) const;
  /// Settles one event as failed; it is delivered again after `delay`. An event of a run must be
  /// the first of the run that is not settled.
  bool fail(fence token, const claimed_event& event, std::chrono::milliseconds delay,
            std::string_view reason) const;
  /// Settles one event as failed for good.
  bool park(fence token, const claimed_event& event, park_policy policy,
            std::string_view reason) const;
  /// Drops the payload of an event that `settle` acknowledged from the claim check. `ack` does this
  /// by itself.
  void drop_payload(const event& event) const noexcept;

  /// Turns expired tickets of a lane into events, and publishes recurring events that are due.
  [[nodiscard]] drained drain(std::size_t lane, std::size_t most = 100) const;
  /// Acquires the lock of a lane for `ttl`. The owner is a unique name, for example a UUID.
  [[nodiscard]] lock_grant lock(std::size_t lane, std::string_view owner,
                                std::chrono::milliseconds ttl = std::chrono::seconds(10)) const;
  [[nodiscard]] lock_grant renew(std::size_t lane, std::string_view owner,
                                 std::chrono::milliseconds ttl = std::chrono::seconds(10)) const;
  /// Returns false if this owner did not hold the lock.
  bool unlock(std::size_t lane, std::string_view owner) const;
  /// Waits until there may be something to claim; see outbox_lane_signals::wait.
  bool wait(std::size_t lane, std::chrono::milliseconds longest) const;
  void wake(std::size_t lane) const;

  // ---- inspect ----

  [[nodiscard]] std::optional<outbox_record> find(std::string_view id) const;
  [[nodiscard]] outbox_admin admin() const noexcept;
  [[nodiscard]] std::size_t lanes() const noexcept;
  /// Returns the lane of an ordering key, or of the id of an event without a key.
  [[nodiscard]] std::size_t lane_of(std::string_view key_or_id) const noexcept;
  [[nodiscard]] const outbox_options& options() const noexcept;
  [[nodiscard]] const std::shared_ptr<outbox_backend>& backend() const noexcept;
  /// The metrics of the database that the outbox was opened on. Never null.
  [[nodiscard]] const std::shared_ptr<isolated_metrics>& metrics() const noexcept;

 private:
  [[nodiscard]] committed commit_in(std::size_t lane, commit_request request) const;

  std::shared_ptr<const detail::outbox::outbox_state> state_;
};

}  // namespace HOLDFAST_NAMESPACE
