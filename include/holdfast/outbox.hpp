#pragma once

/// \file
/// The outbox: a durable queue of promises. What was published is delivered at least once, in order per key, with fencing.
///
///     auto outbox = holdfast::open("redis://127.0.0.1:6379").outbox({.prefix = "{identity:outbox}"});
///     outbox.publish({.type = "ticket.created", .key = "ticket-7", .payload = body});
///
/// A `worker` delivers; what is below is what it is made of.

#include <holdfast/clock.hpp>
#include <holdfast/log.hpp>
#include <holdfast/metrics.hpp>
#include <holdfast/outbox/backend.hpp>
#include <holdfast/outbox/commit.hpp>
#include <holdfast/outbox/event.hpp>
#include <holdfast/outbox/operations.hpp>
#include <holdfast/outbox/options.hpp>
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

/// An outbox over a backend. Copies share it.
///
/// Thread-safety: every function may be called from any thread. No threads of its own. After fork the child must not use it.
/// Errors: holdfast::error. errc::invalid_argument for what cannot be meant, before anything is sent; otherwise the backend's. One that is
/// not in doubt changed nothing.
class HOLDFAST_API outbox {
 public:
  /// Throws errc::invalid_argument for options that cannot hold, or that the backend cannot keep.
  explicit outbox(std::shared_ptr<outbox_backend> backend, outbox_options options = {}, log_sink log = {},
                  std::shared_ptr<metrics_sink> metrics = {});

  // ---- publish ----

  /// Keeps an event. In doubt, or refused, is an exception here, whose `path()` is the event's id: publish it again with that id.
  receipt publish(event what) const;
  receipt publish(event what, const durability& how) const;
  /// Keeps many, in one step per lane. A lane that refuses, or whose answer was lost, tells so in the receipts of its events.
  [[nodiscard]] std::vector<receipt> publish_all(std::vector<event> what) const;
  [[nodiscard]] std::vector<receipt> publish_all(std::vector<event> what, const durability& how) const;

  // ---- publish in the caller's own transaction, on SQL ----

  /// Keeps an event when the caller's transaction commits, and never had it when that rolls back: see holdfast/join/transaction.hpp, whose
  /// adaptors run it on the caller's own handle. The tables must be in the database of that handle. Throws errc::unsupported_type where the
  /// outbox is not on SQL; a refusal (quota) is an exception here. Until the transaction ends, others who publish for the same key wait.
  receipt publish(join::transaction& in, event what) const;
  [[nodiscard]] std::vector<receipt> publish_all(join::transaction& in, std::vector<event> what) const;
  /// Whether to apply the effect of a claimed event in this transaction: `done`: now, and commit; `applied`: it was, nothing is left to do;
  /// `stale`: the claim was lost, roll back. Remembered for the dedup window. Nobody else gets the event before the transaction ends.
  [[nodiscard]] commit_status effect_once(join::transaction& in, fence token, const claimed_event& what) const;

  // ---- deliver ----

  /// Events that are due, in a lane. Those that were handed out too often, or are too late, are parked instead.
  [[nodiscard]] claimed claim(const claim_request& request = {}) const;
  /// Prolongs leases, counted from now; for each event whether it is still held. For an event of a run, that of the whole run.
  [[nodiscard]] std::vector<bool> extend(fence token, std::span<const claimed_event> events, std::chrono::milliseconds lease) const;
  /// Tells what became of claimed events of one lane, in one step; those of a key in their order. `next` continues: the next run of each key
  /// whose run was acknowledged whole is claimed in the same step.
  settled settle(std::size_t lane, fence token, std::vector<settlement> what, const std::optional<run_request>& next = {}) const;
  /// Delivered: false when the lease was lost meanwhile, and it may be delivered again.
  bool ack(fence token, const claimed_event& what) const;
  /// Failed: again after the delay. An event of a run must be the first of it that is not settled.
  bool fail(fence token, const claimed_event& what, std::chrono::milliseconds delay, std::string_view why) const;
  /// Failed for good: kept aside.
  bool park(fence token, const claimed_event& what, park_policy policy, std::string_view why) const;

  /// After `settle` acknowledged an event whose payload lay elsewhere: tells the claim check that nobody needs it any more. `ack` does it.
  void drop_payload(const event& what) const noexcept;

  // ---- parked events, pause ----

  /// How many of these were parked, and are to be delivered again.
  std::size_t replay(std::span<const std::string> ids) const;
  /// How many of these were parked, and are forgotten.
  std::size_t discard(std::span<const std::string> ids) const;
  /// Nobody gets events any more until `resume`; publishing goes on.
  void pause() const;
  void resume() const;

  // ---- expiry ----

  /// At that time the ticket becomes the event, once. A ticket that is scheduled already gets the new time and event; its key must stay the
  /// same, since it tells the lane (with another one there may be two tickets, and both fire). The event's id is made of ticket and time
  /// (expiry_event_id); it must be empty here.
  scheduled schedule(std::string_view ticket, timestamp expires_at, const event& becomes) const;
  scheduled schedule(std::string_view ticket, std::chrono::milliseconds after, const event& becomes) const;
  [[nodiscard]] cancel_status cancel(std::string_view ticket, std::string_view event_key = {}) const;
  /// Turns expired tickets of a lane into events. A worker does it by itself.
  [[nodiscard]] drained drain(std::size_t lane, std::size_t most = 100) const;

  // ---- the single writer ----

  /// The lock of a lane, for this owner (a name that nobody else has: a UUID), ending by itself after `ttl`.
  [[nodiscard]] lock_grant lock(std::size_t lane, std::string_view owner, std::chrono::milliseconds ttl = std::chrono::seconds(10)) const;
  [[nodiscard]] lock_grant renew(std::size_t lane, std::string_view owner, std::chrono::milliseconds ttl = std::chrono::seconds(10)) const;
  /// False: it was not held.
  bool unlock(std::size_t lane, std::string_view owner) const;

  // ---- together with the caller's data, on Redis ----

  /// Conditions, writes and events in one step, in the lane of the events (or of `once_key`, or 0). See commit.hpp.
  [[nodiscard]] committed commit(commit_request request) const;
  /// A key in the slot of that ordering key's lane, for commit: its prefix, `:data:`, the name.
  [[nodiscard]] std::string key_of(std::string_view ordering_key, std::string_view name) const;
  /// The effect of a claimed event, applied once: the writes happen unless they did before, and only while the claim is held.
  [[nodiscard]] committed effect_once(fence token, const claimed_event& what, std::vector<commit_write> writes,
                                      std::vector<event> events = {}) const;

  // ---- look ----

  [[nodiscard]] std::size_t lanes() const noexcept;
  /// Of this ordering key; of an event without one: of its id.
  [[nodiscard]] std::size_t lane_of(std::string_view key_or_id) const noexcept;
  /// Of all lanes together, or of one.
  [[nodiscard]] outbox_stats stats() const;
  [[nodiscard]] outbox_stats stats(std::size_t lane) const;
  [[nodiscard]] std::optional<outbox_record> find(std::string_view id) const;
  /// Why an event is not delivered (or that it will be), in one sentence.
  [[nodiscard]] std::string explain(std::string_view id) const;
  /// A page of what is there, lane by lane; go on with `after` until that is empty.
  [[nodiscard]] scan_page scan(scan_what what = scan_what::all, std::string_view after = {}, std::size_t most = 100) const;
  /// Compares the structures of the store with each other.
  check_report check(bool repair = false) const;

  /// Waits until there may be something to claim in that lane; see outbox_backend::wait.
  bool wait(std::size_t lane, std::chrono::milliseconds longest) const;
  void wake(std::size_t lane) const;
  [[nodiscard]] std::optional<error> health() const noexcept;

  [[nodiscard]] const outbox_options& options() const noexcept;
  [[nodiscard]] const std::shared_ptr<outbox_backend>& backend() const noexcept;
  /// Of the database it was opened on; never null.
  [[nodiscard]] const std::shared_ptr<isolated_metrics>& metrics() const noexcept;

 private:
  /// Leaves what may be delivered; parks what was handed out too often, or is too late.
  [[nodiscard]] claimed sift(claimed result) const;
  scheduled schedule(std::string_view ticket, std::optional<timestamp> at, std::chrono::milliseconds after, const event& becomes) const;

  struct state;
  std::shared_ptr<const state> state_;
};

}  // namespace HOLDFAST_NAMESPACE
