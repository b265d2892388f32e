#pragma once

/// \file
/// One lane of an outbox in memory: its events, and how they change from one state to the next. The
/// states are described in docs/outbox-states.md.

#include <holdfast/error.hpp>
#include <holdfast/outbox/operations.hpp>
#include <holdfast/outbox/recurring.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::outbox {

/// Members ordered by score, then by name, as in a sorted set of Redis.
class sorted_set {
 public:
  using ordered_members = std::set<std::pair<std::int64_t, std::string>>;

  void put(const std::string& member, std::int64_t score);
  bool erase(std::string_view member);
  [[nodiscard]] std::optional<std::int64_t> score(std::string_view member) const;
  [[nodiscard]] std::optional<std::int64_t> first_score() const;
  [[nodiscard]] const ordered_members& members() const noexcept { return members_; }
  [[nodiscard]] std::size_t size() const noexcept { return members_.size(); }

 private:
  ordered_members members_{};
  std::map<std::string, std::int64_t, std::less<>> scores_{};
};

/// What the reply of a claim may still hold.
struct claim_budget {
  std::size_t events = 0, bytes = 0;
};

/// Times are milliseconds since 1970. Not synchronized: the backend holds a mutex.
struct memory_lane {
  struct stored_event {
    holdfast::event event{};
    std::int64_t created = 0;
    std::int64_t sequence = 0;
    std::uint64_t bytes = 0;
  };
  /// The head of each key has one, and every event that was claimed before.
  struct claim_record {
    /// Of the claim that holds the event; 0: not claimed
    fence token = 0;
    std::uint32_t deliveries = 0, attempts = 0, replays = 0;
    /// Number of events of the key that the token covers, this one included
    std::size_t run = 0;
    std::string key{};
    /// Token of the settlement that parked the event with park_policy::park, while followers are
    /// still to be parked; otherwise 0. Such an event stays pending, so that the next claim
    /// continues. A settlement that comes again with this token gets the same reply.
    fence parked_by = 0;
  };
  struct follower {
    std::int64_t due = 0;
    std::string id{};
  };
  struct lock_state {
    std::string owner{};
    holdfast::fence fence = 0;
    std::int64_t until = 0;
  };
  /// What all events of one claim have in common.
  struct claim_terms {
    fence token = 0;
    std::int64_t now = 0;
    std::chrono::milliseconds lease{};
    std::size_t run = 0;
  };
  using hash = std::map<std::string, std::string, std::less<>>;
  /// A key of the caller; see commit_request.
  using datum = std::variant<std::string, hash>;
  template <class T>
  using by_name = std::map<std::string, T, std::less<>>;

  static constexpr std::int64_t unexpiring = 9'000'000'000'000'000;

  std::size_t number = 0;
  by_name<stored_event> entries{};
  /// Ids by the time when they may be claimed; of claimed events the end of their lease
  sorted_set pending{};
  /// Ordering key -> id of its first event
  by_name<std::string> heads{};
  /// Ordering key -> the events behind its head, by sequence
  by_name<std::map<std::int64_t, follower>> followers{};
  by_name<claim_record> claims{};
  by_name<std::string> errors{};
  /// Ids by the time when they were parked
  sorted_set parked{};
  /// By time: ids that were delivered, `e:` and an id whose effect was applied, `t:` and a ticket
  /// that fired. While the event of an effect exists, its mark has the time `unexpiring`.
  sorted_set done{};
  /// Tickets by the time when they expire
  sorted_set expiry_due{};
  by_name<event> tickets{};
  by_name<stored_recurrence> recurring{};
  std::optional<lock_state> lock{};
  fence last_token = 0, last_fence = 0;
  std::int64_t sequence = 0;
  std::uint64_t bytes = 0;
  /// The latest time of a publishing, to a tenth of a second
  std::int64_t latest_publishing = 0;
  bool paused = false;
  bool wake_requested = false;
  outbox_stats counters{};
  by_name<datum> data{};

  /// Larger than every token before, and not behind the clock.
  fence next_token(timestamp now);
  [[nodiscard]] bool holds_lock(std::string_view owner, std::int64_t now) const;
  [[nodiscard]] bool is_head(const std::string& id, const std::string& key) const;
  [[nodiscard]] std::optional<std::chrono::milliseconds> time_until_due(std::int64_t now) const;

  // publish
  /// Whether `member` was added to `done` within the dedup window.
  [[nodiscard]] bool is_remembered(const std::string& member, const publish_terms& terms,
                                   std::int64_t now) const;
  /// The error if a quota would be exceeded.
  [[nodiscard]] std::optional<error> over_quota(std::size_t new_events, std::uint64_t new_bytes,
                                                const outbox_quota& quota, std::int64_t now) const;
  /// Returns false for a duplicate.
  bool add(const event& event, std::int64_t due, const publish_terms& terms, std::int64_t now);
  /// Adds all events or, if a quota would be exceeded, none.
  std::vector<receipt> add_all(std::span<const event> events, const publish_terms& terms,
                               std::int64_t now);

  // deliver
  /// If the clock was ahead and was set back: events that were published meanwhile without a delay
  /// are due now.
  void release_from_the_future(std::int64_t now);
  /// Claims an event and the run behind it. An event without an entry is removed instead.
  void hand_out(const std::string& id, const claim_terms& terms, claim_budget& budget,
                claimed& result);
  /// The claim with this token that covers the event; null if the lease was lost. An event of a key
  /// is covered by the claim of its head. With `whole_run` it may stand behind the head; otherwise
  /// it must be the head.
  [[nodiscard]] claim_record* held_claim(const std::string& id, const std::string& key, fence token,
                                         bool whole_run);
  /// If the effect of the event was applied, the dedup window of its mark starts.
  void remove(const std::string& id, std::int64_t now);
  /// Removes an event. If it is the head of its key, the next event of the key becomes the head.
  void remove_and_promote(const std::string& id, std::int64_t now);
  /// The first follower of a key becomes its head. If `run` is not 0, the new head is claimed: the
  /// token covers it and run - 1 events behind it until `deadline`. Otherwise it gets its own time.
  void promote_follower(const std::string& key, std::size_t run, fence token, std::int64_t deadline,
                        std::int64_t now);
  /// Parks up to `most` followers of a key whose head was parked with park_policy::park. Returns
  /// how many remain. When none remains, the key has no head any more.
  std::size_t park_followers_of(const std::string& key, std::size_t most, std::int64_t now);
  /// Forgets what is older than the dedup window or beyond the limit (0: no limit), a bounded
  /// number in a call. Marks of effects whose events exist do not count, and stay.
  void trim_done(const publish_terms& terms, std::int64_t now);

  // inspect
  [[nodiscard]] claimed_event describe(const stored_event& stored, const claim_record* claim) const;
  [[nodiscard]] outbox_record record_of(const stored_event& stored, std::int64_t now) const;

 private:
  /// Whether the event was published without a delay, if this was its time then.
  [[nodiscard]] bool is_without_delay(const std::string& id, std::int64_t due) const;
  [[nodiscard]] const claim_record* find_claim(const std::string& id) const;
};

[[nodiscard]] inline timestamp timestamp_at(std::int64_t ms) {
  return timestamp(std::chrono::milliseconds(ms));
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
