#pragma once

/// \file
/// Requests and results of an outbox. All durations are measured by the clock of the store, and all
/// timestamps are taken from it.

#include <holdfast/clock.hpp>
#include <holdfast/error.hpp>
#include <holdfast/outbox/event.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE {

// ---- publish ----

enum class publish_status : std::uint8_t {
  /// The event is kept.
  added,
  /// The outbox keeps an event with this id, or delivered it within the dedup window. As good as
  /// `added`.
  duplicate,
  /// The event may be kept, or is kept less safely than requested. Publish it again with the same
  /// id.
  in_doubt,
  /// The event is not kept; `problem` says why.
  refused
};
/// `added`, `duplicate`, `in_doubt`, `refused`.
[[nodiscard]] HOLDFAST_API std::string_view to_string(publish_status status) noexcept;

/// The result of publishing one event.
struct receipt {
  std::string id{};
  publish_status status = publish_status::added;
  /// Set if the status is `in_doubt` or `refused`.
  std::optional<error> problem{};

  [[nodiscard]] bool safe() const noexcept {
    return status == publish_status::added || status == publish_status::duplicate;
  }
};

/// Limits of one lane. When one is reached, `publish` is refused (errc::too_large, transient). 0:
/// no limit.
struct outbox_quota {
  /// Number of events, parked events included.
  std::uint64_t events = 0;
  /// Size of their entries in bytes.
  std::uint64_t bytes = 0;
  /// How long the oldest due event may wait.
  std::chrono::milliseconds overdue{};
};

/// What a backend needs to know to publish.
struct publish_terms {
  holdfast::durability durability{};
  outbox_quota quota{};
  /// How long the ids of delivered events are remembered.
  std::chrono::milliseconds dedup_window{};
  /// How many of them are remembered in each lane. 0: no limit.
  std::size_t dedup_limit = 0;
};

// ---- claim ----

struct claim_request {
  std::size_t lane = 0;
  /// Maximum number of keys and of events without a key, together. At most 1000.
  std::size_t most = 100;
  /// Maximum number of events of one key. At most 1000.
  std::size_t run = 1;
  /// Maximum size of all events. The first event is returned even if it is larger.
  std::size_t bytes = std::size_t{4} << 20U;
  /// How long the events are reserved for the caller.
  std::chrono::milliseconds lease = std::chrono::seconds(30);
  /// Claims only if this owner holds the lock of the lane. Empty: claims without a lock.
  std::string owner{};
};

/// An event that was claimed for delivery.
struct claimed_event {
  holdfast::event event{};
  std::size_t lane = 0;
  /// How often it was claimed, this time included. More than `attempts + 1` means that a worker
  /// ended without settling it.
  std::uint32_t deliveries = 1;
  /// How often a handler reported a failure.
  std::uint32_t attempts = 0;
  /// How often it was replayed after it had been parked.
  std::uint32_t replays = 0;
  /// Time of publishing.
  timestamp created_at{};
  /// Grows within a lane. Within a key it follows the order of publishing.
  std::int64_t sequence = 0;
  /// The last failure that was reported.
  std::string last_error{};
};

enum class claim_status : std::uint8_t {
  some,    ///< there are events
  empty,   ///< no event is due
  paused,  ///< the outbox is paused
  fenced   ///< the owner does not hold the lock: stop, and acquire it again
};
/// The name of the enumerator, for example `some`. Does not change between versions.
[[nodiscard]] HOLDFAST_API std::string_view to_string(claim_status status) noexcept;

struct claimed {
  claim_status status = claim_status::empty;
  std::size_t lane = 0;
  /// Fence of all events of this claim. `settle` and `extend` require it.
  holdfast::fence fence = 0;
  /// The events of a key are adjacent and in order. An event that was claimed before comes alone,
  /// so that an event that kills its handler can be identified.
  std::vector<claimed_event> events{};
  /// Id and key of events that cannot be delivered yet and follow other events of their run.
  /// Release them when those are acknowledged; otherwise their key waits until the lease ends.
  /// `worker` does this.
  std::vector<std::pair<std::string, std::string>> left_out{};
  /// Id of each event that was parked instead, and the reason: it is too old, was claimed too
  /// often, or cannot be read.
  std::vector<std::pair<std::string, std::string>> parked{};
  /// Time until an event may become due. Empty: not before something is published.
  std::optional<std::chrono::milliseconds> next{};
  /// Time of the store.
  timestamp now{};
};

// ---- settle ----

/// What happens to the other events of a key when one of them is parked.
enum class park_policy : std::uint8_t {
  skip,   ///< the key continues with the next event
  block,  ///< the key waits until the parked event is replayed or discarded
  park    ///< the events that wait behind it are parked as well; later ones are delivered
};
[[nodiscard]] HOLDFAST_API std::string_view to_string(park_policy policy) noexcept;

/// What to do with a claimed event.
struct settlement {
  enum class kind : std::uint8_t {
    ack,      ///< delivered: remove it
    retry,    ///< failed: deliver it again after `delay`
    park,     ///< failed for good: park it
    release,  ///< not tried: make it due again
  };
  std::string id{};
  /// Key of the event.
  std::string key{};
  kind action = kind::ack;
  /// For `retry`.
  std::chrono::milliseconds delay{};
  /// For `retry`: false if the failure is not the fault of the event (throttled). Then neither the
  /// attempt nor the delivery is counted.
  bool counts = true;
  /// For `retry` and `park`: the reason. Cut to 1 KiB.
  std::string error{};
  /// For `park`.
  park_policy policy = park_policy::skip;
};
/// The name of the enumerator, for example `ack`. Does not change between versions.
[[nodiscard]] HOLDFAST_API std::string_view to_string(settlement::kind kind) noexcept;

struct settled {
  /// For each settlement: false if the lease was lost, so that nothing was changed.
  std::vector<bool> done{};
  /// Keys with followers that are not parked yet (park_policy::park). Backends only: class `outbox`
  /// calls park_followers for them.
  std::vector<std::string> keys_to_park{};
  /// The next runs of the keys whose run was acknowledged completely, if requested.
  claimed next{};
};

/// Asks `outbox::settle` to claim the next run of each key.
struct run_request {
  /// Maximum number of events of one key. At most 1000.
  std::size_t run = 50;
  /// Maximum size of all events.
  std::size_t bytes = std::size_t{4} << 20U;
  std::chrono::milliseconds lease = std::chrono::seconds(30);
  /// As in claim_request.
  std::string owner{};
};

// ---- lock ----

struct lock_grant {
  /// The caller holds the lock.
  bool held = false;
  /// Fence of the holder. Larger than that of all earlier holders.
  holdfast::fence fence = 0;
  /// Owner that holds the lock.
  std::string holder{};
  /// Time until the lock expires.
  std::chrono::milliseconds remaining{};
};

// ---- tickets ----

struct scheduled {
  timestamp expires_at{};
  /// The time for which the ticket was scheduled before, if it was.
  std::optional<timestamp> before{};
};

enum class cancel_status : std::uint8_t {
  cancelled,
  fired,   ///< too late: it has become its event (known for the dedup window)
  unknown  ///< there is no such ticket
};
[[nodiscard]] HOLDFAST_API std::string_view to_string(cancel_status status) noexcept;

struct drained {
  /// Number of tickets that became events.
  std::size_t tickets = 0;
  /// Number of events that were published for recurring events.
  std::size_t recurring = 0;
  /// Time until the next ticket expires or the next recurring event is due. Empty: there are none.
  std::optional<std::chrono::milliseconds> next{};
  /// Some expired tickets wait for a transaction that is publishing for their keys.
  bool held_up = false;
};

// ---- inspect ----

enum class event_state : std::uint8_t {
  due,        ///< can be claimed now
  waiting,    ///< its time has not come: delayed, or to be retried
  claimed,    ///< reserved by a worker until its lease ends
  following,  ///< waits behind an earlier event of its key
  parked,     ///< set aside; its key continues
  blocking,   ///< set aside; its key waits for it
  stuck       ///< the first of its key, but no claim finds it: repair the outbox (`check(true)`)
};
[[nodiscard]] HOLDFAST_API std::string_view to_string(event_state state) noexcept;

/// A kept event, as an operator sees it.
struct outbox_record {
  /// The event and its history. `deliveries` counts the claims so far.
  claimed_event details{};
  event_state state = event_state::due;
  /// Waiting and following: when it becomes due. Claimed: end of the lease. Parked and blocking:
  /// when it was parked.
  std::optional<timestamp> until{};
  /// Following: id of the event that is delivered first.
  std::string behind{};
  /// Fence of the last claim.
  holdfast::fence fence = 0;
};

/// Selects the records of a scan.
enum class scan_what : std::uint8_t { all, parked, tickets };
/// The name of the enumerator, for example `all`. Does not change between versions.
[[nodiscard]] HOLDFAST_API std::string_view to_string(scan_what selection) noexcept;

struct scan_page {
  /// For a ticket: `details.event` is the event it becomes, `details.event.id` the name of the
  /// ticket, `until` the time it expires.
  std::vector<outbox_record> records{};
  /// Pass this to the next call. Empty: this was the last page.
  std::string after{};
};

struct outbox_stats {
  /// Number of events in any state.
  std::uint64_t events = 0;
  /// Of those: due, waiting or claimed.
  std::uint64_t pending = 0;
  /// Of those: behind an earlier event of their key.
  std::uint64_t following = 0;
  /// Of those: parked or blocking.
  std::uint64_t parked = 0;
  /// SQL: keys whose first event no claim finds (event_state::stuck). Counts at most 10,000 events
  /// of a lane.
  std::uint64_t stuck = 0;
  /// Tickets that have not expired.
  std::uint64_t tickets = 0;
  /// Ids in the dedup window. SQL counts at most 100,000 per lane.
  std::uint64_t remembered = 0;
  /// Size of the entries.
  std::uint64_t bytes = 0;
  bool paused = false;
  /// SQL: a lane has more than 10,000 events that are parked or have a key. Then `parked` and
  /// `pending` are lower bounds, and `following` is the rest.
  bool at_least = false;
  /// How long the oldest due event or ticket has been due. 0: none is due.
  std::chrono::milliseconds overdue{};
  // Totals since the outbox was created:
  std::uint64_t published = 0;
  std::uint64_t duplicates = 0;
  /// Events that were claimed.
  std::uint64_t claims = 0;
  std::uint64_t acked = 0;
  std::uint64_t retried = 0;
  std::uint64_t parkings = 0;
  /// Settlements that were refused because the lease was lost.
  std::uint64_t stale = 0;
  /// Tickets that became events.
  std::uint64_t fired = 0;
  /// Ids without an entry that a claim found and removed.
  std::uint64_t orphans = 0;

  HOLDFAST_API outbox_stats& operator+=(const outbox_stats& other) noexcept;
  bool operator==(const outbox_stats&) const = default;
};

/// Inconsistencies that a check found, and repaired if requested.
struct check_report {
  /// Number of events that were checked.
  std::uint64_t events = 0;
  /// Ids that are queued or parked, but have no entry. Repair removes them.
  std::uint64_t without_entry = 0;
  /// Entries that are neither queued nor parked. Repair makes them due.
  std::uint64_t without_place = 0;
  /// Keys whose events wait, but none of them is first. Repair makes the first one due.
  std::uint64_t without_head = 0;
  /// Difference between the counted bytes and the actual bytes. Repair corrects the count.
  std::int64_t bytes_off = 0;
  /// Claims and counters with a value that an outbox does not write, and wrong counts of events and
  /// tickets. Repair derives them from the stored events. A token or fence never decreases.
  std::uint64_t bad_fields = 0;

  [[nodiscard]] bool well() const noexcept {
    return without_entry == 0 && without_place == 0 && without_head == 0 && bytes_off == 0 &&
           bad_fields == 0;
  }
  HOLDFAST_API check_report& operator+=(const check_report& other) noexcept;
};

}  // namespace HOLDFAST_NAMESPACE
