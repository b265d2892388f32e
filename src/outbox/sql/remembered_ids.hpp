#pragma once

/// \file
/// Ids that the outbox remembers for the dedup window. They are rows of the table of events in the
/// state `remembered`:
///
/// | ID | meaning |
/// | --- | --- |
/// | an event id | the event was delivered |
/// | `t:` and a ticket | the ticket fired |
/// | `e:` and an event id | the effect of the event was applied. AT is `with_event` as long as the event exists; then its window starts |

#include <holdfast/outbox/operations.hpp>

#include "outbox/sql/event_table.hpp"

#include <atomic>

namespace HOLDFAST_NAMESPACE::detail::outbox {

[[nodiscard]] inline std::string ticket_mark(std::string_view ticket) {
  return "t:" + std::string(ticket);
}
[[nodiscard]] inline std::string effect_mark(std::string_view id) { return "e:" + std::string(id); }

/// What is known of the effect of an event.
struct effect_state {
  std::optional<std::int64_t> applied_at{};  ///< AT of its mark
  bool event_exists = false;
};

struct remembered_statements {
  named_statement find, find_effect, upsert, insert, renew, start_windows, forget, surplus;
  /// Deletes the oldest rows. MariaDB and MySQL need two steps: select_oldest, then a deletion.
  std::optional<named_statement> erase_oldest, select_oldest;
};
[[nodiscard]] remembered_statements make_remembered_statements(const statement_builder& builder);

/// Thread-safety: every function may be called from any thread.
class remembered_ids {
 public:
  remembered_ids(const statement_builder& builder, const event_table& events, std::size_t lanes);

  /// Since when the id is remembered.
  std::optional<std::int64_t> find(const lane_session& session, std::string_view id) const;
  effect_state find_effect(const lane_session& session, std::string_view event_id) const;
  /// The events do not exist any more: starts the windows of the marks of their effects.
  void start_effect_windows(const lane_session& session, std::span<const std::string> event_ids,
                            std::int64_t now_ms) const;
  /// Remembers ids from now on, also those that were remembered before.
  void remember(const lane_session& session, std::span<const std::string> ids,
                std::int64_t now_ms) const;
  /// Returns false if the id is remembered already. Of two transactions that try at the same time,
  /// one waits until the other ends. `since` is a time, or with_event.
  [[nodiscard]] bool remember_new(const lane_session& session, std::string_view id,
                                  std::int64_t since) const;
  /// Changes the time of an id that has been remembered since `until` or longer. Returns false if
  /// there is no such id. Waits as remember_new.
  [[nodiscard]] bool renew(const lane_session& session, std::string_view id, std::int64_t since,
                           std::int64_t until) const;
  /// Forgets those of these ids that have been remembered since `until` or longer. An id that
  /// was published again meanwhile stays.
  void forget(const lane_session& session, std::span<const std::string> ids,
              std::int64_t until) const;
  /// Forgets ids that are older than the dedup window or exceed the dedup limit, but no mark of an
  /// event that exists. `added` is the number of ids that the caller has just added.
  void trim(const lane_session& session, std::int64_t now_ms, const publish_terms& terms,
            std::size_t added) const;

 private:
  /// Returns the number of ids that it forgot, at most max_events_per_call.
  std::uint64_t forget_oldest(const lane_session& session, std::int64_t until) const;
  /// Forgets ids that are older than the dedup window.
  void forget_expired(const lane_session& session, std::int64_t now_ms, std::int64_t until) const;

  const event_table& events_;
  lock_scope locks_;
  remembered_statements statements_;
  mutable std::vector<std::atomic<std::size_t>> added_since_count_;  ///< of each lane
  mutable std::vector<std::atomic<std::int64_t>> next_expiry_;       ///< of each lane, on Galera
};

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
