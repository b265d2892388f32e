#pragma once

/// \file
/// Incidents: times in which something was wrong, each with a timeline.
///
///   quiet      no incident is open
///   suspected  a subject has been bad for less than `open_after`
///   open       a subject was bad for `open_after`. All that happens goes into one timeline
///   closed     nothing was bad for `close_after`; the incident is kept
///
/// One incident is open at a time: a store that fails, points that answer from memory and an outbox
/// that is overdue usually have one cause.

#include <holdfast/clock.hpp>
#include <holdfast/version.hpp>

#include "serve/auth/audit.hpp"
#include "serve/auth/state_database.hpp"
#include "serve/live/event_sink.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// Something that is wrong now.
struct incident_condition {
  std::string kind{};     ///< `point`, `store` or `outbox`
  std::string subject{};  ///< its name
  std::string text{};     ///< a sentence: `countries answers from the store`
};

struct incident_entry {
  timestamp moment{};
  /// `begin`, `end`, `action` or `note`
  std::string kind{};
  std::string subject{};  ///< `point countries`, or who acted or wrote
  std::string text{};
};

struct incident {
  std::string id{};  ///< `2026-11-15-01`: the day, and a number
  timestamp opened{};
  std::optional<timestamp> closed{};
  std::vector<std::string> subjects{};  ///< `point countries`
  std::vector<incident_entry> timeline{};
  std::uint64_t left_out = 0;  ///< entries beyond the limit
};

struct incident_options {
  std::chrono::seconds open_after{30};
  std::chrono::seconds close_after{300};
  std::size_t kept = 1'000;
  std::size_t max_entries = 500;
  std::size_t max_note = 4'000;  ///< bytes
};

/// Thread-safety: may be called from any thread.
class incident_log {
 public:
  /// Reads the incidents of the state database. Both may be null, and must outlive the log.
  explicit incident_log(state_database* database = nullptr, event_sink* events = nullptr,
                        incident_options options = {});

  /// `conditions` are all that hold now. Called about once a second.
  void observe(timestamp now, const std::vector<incident_condition>& conditions);
  /// Adds an action of an operator to the timeline of the open incident, if there is one.
  void record_action(const audit_entry& action);
  /// Throws errc::not_found, errc::invalid_argument if the note is empty, too long or not UTF-8,
  /// and errc::too_large if the incident has too many entries.
  incident add_note(std::string_view id, std::string_view author, std::string_view text,
                    timestamp now);

  /// At most `limit` incidents, the newest first, older than `before` (an id) if that is not empty.
  [[nodiscard]] std::vector<incident> list(std::size_t limit, std::string_view before = {}) const;
  [[nodiscard]] std::optional<incident> find(std::string_view id) const;
  /// Ids of open incidents.
  [[nodiscard]] std::vector<std::string> open() const;
  /// Times that the state database failed.
  [[nodiscard]] std::uint64_t failures() const;

 private:
  struct subject_state {
    timestamp bad_since{};
    timestamp last_bad{};
    std::string text{};
    bool reported = false;  // the timeline of the open incident has its begin
    bool restored = false;  // it was bad before a restart, and not since
  };

  void load();
  void begin_observing(timestamp now);
  void open_incident(timestamp moment);
  void add_entry(incident& target, incident_entry entry) const;
  void save(const incident& changed);
  void store(const incident& changed, std::string_view json);
  [[nodiscard]] incident* find_open();

  state_database* const database_;
  event_sink* const events_;
  const incident_options options_;
  mutable std::mutex mutex_{};
  std::deque<incident> incidents_{};                 // the oldest first
  std::map<std::string, subject_state> subjects_{};  // those that are bad
  timestamp last_bad_{};
  timestamp first_observed_{};
  std::uint64_t failures_ = 0;
};

[[nodiscard]] std::string to_json(const incident& value);
[[nodiscard]] std::string to_markdown(const incident& value);

}  // namespace HOLDFAST_NAMESPACE::detail::serve
