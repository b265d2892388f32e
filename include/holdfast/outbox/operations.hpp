#pragma once

/// \file
/// What is asked of an outbox, and what it answers. Durations are measured by the store's clock; moments are the store's.

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

/// What became of an event that was published.
enum class publish_status : std::uint8_t {
  added,      ///< it is kept
  duplicate,  ///< its id is kept already, or was delivered within the dedup window: as good as added
  in_doubt,   ///< it may be kept, or not safely enough: publish it again with the same id
  refused     ///< it is not kept; `problem` says why
};
/// `added`, `duplicate`, `in_doubt`, `refused`.
[[nodiscard]] HOLDFAST_API std::string_view to_string(publish_status status) noexcept;

struct receipt {
  std::string id{};
  publish_status status = publish_status::added;
  std::optional<error> problem{};  ///< of one in doubt or refused

  [[nodiscard]] bool safe() const noexcept { return status == publish_status::added || status == publish_status::duplicate; }
};

/// How much may wait in each lane before `publish` is refused (errc::too_large, transient). 0: no limit.
struct outbox_quota {
  std::uint64_t events = 0;             ///< kept, parked ones included
  std::uint64_t bytes = 0;              ///< of their entries
  std::chrono::milliseconds overdue{};  ///< how long the longest waiting event may have been due
};

/// What a backend has to know to publish.
struct publish_terms {
  durability how{};
  outbox_quota quota{};
  std::chrono::milliseconds dedup_window{};  ///< ids are remembered so long after their delivery
  std::size_t dedup_limit = 0;               ///< but no more than so many in each lane
};

// ---- claim ----

/// How many events to take, and for how long.
struct claim_request {
  std::size_t lane = 0;
  std::size_t most = 100;                                      ///< keys and events without one; at most 1000
  std::size_t run = 1;                                         ///< events of one key, in their order; at most 1000
  std::size_t bytes = std::size_t{4} << 20U;                   ///< no more than this, unless the first event alone is larger
  std::chrono::milliseconds lease = std::chrono::seconds(30);  ///< nobody else gets them meanwhile
  std::string owner{};                                         ///< of the lane's lock: claims only while it is held. Empty: without lock
};

/// An event on its way to a handler.
struct claimed_event {
  holdfast::event event{};
  std::size_t lane = 0;
  std::uint32_t deliveries = 1;  ///< times that it was handed out, this one included; more than attempts + 1: somebody died with it
  std::uint32_t attempts = 0;    ///< times that a handler reported a failure
  std::uint32_t replays = 0;     ///< times that it was brought back from the parked ones
  timestamp created_at{};        ///< when it was published
  std::int64_t sequence = 0;     ///< grows within a lane, and within a key in the order of publishing
  std::string last_error{};      ///< of the last failure that was reported
};

enum class claim_status : std::uint8_t {
  some,    ///< there are events
  empty,   ///< nothing is due
  paused,  ///< the outbox is paused
  fenced   ///< the lock is not held by that owner (any more): stop, and acquire it again
};

struct claimed {
  claim_status status = claim_status::empty;
  std::size_t lane = 0;
  holdfast::fence fence = 0;  ///< of all events in it: the token that settle and extend ask for
  /// Runs of a key stand together, in order. An event that was delivered before comes alone, so that one that kills its handler is found.
  std::vector<claimed_event> events{};
  /// Id and key of an event that cannot be delivered now, and stands behind others of its run: release it when those are acknowledged, or its
  /// key waits until the lease ends. A worker does.
  std::vector<std::pair<std::string, std::string>> left_out{};
  /// Id of each event that was parked instead, and why: too late, handed out too often, or nobody can read it.
  std::vector<std::pair<std::string, std::string>> parked{};
  std::optional<std::chrono::milliseconds> next{};  ///< until something may become due; nothing: when something is published
  timestamp now{};                                  ///< of the store
};

// ---- settle ----

/// What happens to the other events of a key when one of them is parked.
enum class park_policy : std::uint8_t {
  skip,   ///< the key goes on with the next one
  block,  ///< the key waits until the parked event is replayed or discarded
  park    ///< those that wait behind it are parked, too; what is published later goes on
};
[[nodiscard]] HOLDFAST_API std::string_view to_string(park_policy policy) noexcept;

/// What became of a claimed event.
struct settlement {
  enum class kind : std::uint8_t {
    ack,      ///< delivered: forget it
    retry,    ///< failed: again after `delay`
    park,     ///< failed for good: keep it aside
    release,  ///< not tried: give it back
  };
  std::string id{};
  std::string key{};  ///< the event's
  kind what = kind::ack;
  std::chrono::milliseconds delay{};  ///< of a retry
  bool counts = true;   ///< a retry counts as an attempt; false: throttled, not the event's fault: neither attempt nor delivery is counted
  std::string error{};  ///< of retry and park: why; cut to 1 KiB
  park_policy policy = park_policy::skip;
};

struct settled {
  std::vector<bool> done{};         ///< for each settlement; false: stale, the lease was lost, and nothing was changed
  std::vector<std::string> more{};  ///< keys whose followers are still to be parked (park_policy::park): call park_followers
  claimed next{};                   ///< the next runs of the keys whose last event was acknowledged, if that was asked for
};

/// What the continuation of a run may take; see outbox::settle.
struct run_request {
  std::size_t run = 50;                       ///< events of each key; at most 1000
  std::size_t bytes = std::size_t{4} << 20U;  ///< in all
  std::chrono::milliseconds lease = std::chrono::seconds(30);
  std::string owner{};  ///< as in claim_request
};

// ---- lock ----

struct lock_grant {
  bool held = false;                      ///< by the one who asked
  holdfast::fence fence = 0;              ///< of the holder; larger than every one before
  std::string holder{};                   ///< who has it
  std::chrono::milliseconds remaining{};  ///< until it ends by itself
};

// ---- expiry ----

struct scheduled {
  timestamp expires_at{};
  std::optional<timestamp> before{};  ///< the ticket was scheduled for then; now it is not any more
};

enum class cancel_status : std::uint8_t {
  cancelled,
  fired,   ///< too late: it has become its event already (known for the length of the dedup window)
  unknown  ///< there is no such ticket
};
[[nodiscard]] HOLDFAST_API std::string_view to_string(cancel_status status) noexcept;

struct drained {
  std::size_t tickets = 0;                          ///< that became their events
  std::optional<std::chrono::milliseconds> next{};  ///< until the next one expires; nothing: there is none
  bool held_up = false;                             ///< some have expired, and wait for a transaction that publishes for their keys
};

// ---- look ----

/// Where an event is.
enum class event_state : std::uint8_t {
  due,        ///< may be claimed now
  waiting,    ///< until its time has come: delayed, or to be tried again
  claimed,    ///< handed out; its lease runs
  following,  ///< behind an earlier event of its key
  parked,     ///< kept aside; its key goes on
  blocking    ///< kept aside; its key waits for it
};
[[nodiscard]] HOLDFAST_API std::string_view to_string(event_state state) noexcept;

struct outbox_record {
  claimed_event what{};  ///< `deliveries` so far
  event_state state = event_state::due;
  std::optional<timestamp> until{};  ///< waiting and following: its time. Claimed: the end of the lease. Parked and blocking: since when
  std::string behind{};              ///< following: the event that its key is at
  holdfast::fence fence = 0;         ///< of the last claim
};

/// What to look at.
enum class scan_what : std::uint8_t { all, parked, tickets };

struct scan_page {
  std::vector<outbox_record> records{};  ///< of tickets: the event to become, `until` its time, `what.event.id` the ticket
  std::string after{};                   ///< ask on with this; empty: that was all
};

struct outbox_stats {
  std::uint64_t events = 0;     ///< kept, in whatever state
  std::uint64_t pending = 0;    ///< of those: due, waiting or claimed
  std::uint64_t following = 0;  ///< behind another one of their key
  std::uint64_t parked = 0;
  std::uint64_t tickets = 0;     ///< that have not expired
  std::uint64_t remembered = 0;  ///< ids in the dedup window; SQL counts up to 100,000 in a lane
  std::uint64_t bytes = 0;       ///< of the entries
  bool paused = false;
  /// SQL: more than 10,000 in a lane are parked or have a key. `parked` and `pending` are at least these, `following` is the rest.
  bool at_least = false;
  std::chrono::milliseconds overdue{};  ///< how long the longest waiting event or ticket has been due; 0: none is
  // Since the outbox was made:
  std::uint64_t published = 0;
  std::uint64_t duplicates = 0;
  std::uint64_t claims = 0;  ///< events handed out
  std::uint64_t acked = 0;
  std::uint64_t retried = 0;
  std::uint64_t parkings = 0;
  std::uint64_t stale = 0;    ///< settlements refused since their lease was lost
  std::uint64_t fired = 0;    ///< tickets that became events
  std::uint64_t orphans = 0;  ///< ids without an entry that a claim met and removed

  outbox_stats& operator+=(const outbox_stats& other) noexcept;
  bool operator==(const outbox_stats&) const = default;
};

/// What a check of the structures found (and repaired, when asked to).
struct check_report {
  std::uint64_t events = 0;         ///< looked at
  std::uint64_t without_entry = 0;  ///< ids that wait, follow or are parked, but there is nothing to deliver. Repair removes them
  std::uint64_t without_place = 0;  ///< entries that nothing leads to. Repair makes them due
  std::uint64_t without_head = 0;   ///< keys whose events wait behind nothing. Repair makes the first one due
  std::int64_t bytes_off = 0;       ///< the count of bytes differs from what is there by this. Repair sets it

  /// Claims and counters that hold what no outbox writes there, and counts of events and tickets that are off. Repair derives them from
  /// what is there; a token or fence never goes back.
  std::uint64_t bad_fields = 0;

  [[nodiscard]] bool well() const noexcept {
    return without_entry == 0 && without_place == 0 && without_head == 0 && bytes_off == 0 && bad_fields == 0;
  }
  check_report& operator+=(const check_report& other) noexcept;
};

}  // namespace HOLDFAST_NAMESPACE
