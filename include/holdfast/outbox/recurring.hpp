#pragma once

/// \file
/// Recurring events: an event for each time that a cron expression matches. See
/// docs/outbox-schedules.md.

#include <holdfast/clock.hpp>
#include <holdfast/outbox/event.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE {

/// What happens at a due time while the event of the due time before is not delivered yet.
enum class overlap_policy : std::uint8_t {
  queue,  ///< the event is published; it waits like any other event
  skip    ///< nothing is published for this due time. A parked event does not count as undelivered
};
[[nodiscard]] HOLDFAST_API std::string_view to_string(overlap_policy policy) noexcept;

/// What happens with due times that passed while no worker ran.
enum class catch_up_policy : std::uint8_t {
  none,  ///< nothing is published for them
  last,  ///< one event is published, for the latest of them
  all    ///< an event is published for each, for the latest `catch_up_limit` at most
};
[[nodiscard]] HOLDFAST_API std::string_view to_string(catch_up_policy policy) noexcept;

struct recurrence_options {
  /// Name of a time zone of the system, such as `Europe/Paris`. Empty: UTC.
  std::string zone{};
  overlap_policy overlap = overlap_policy::queue;
  catch_up_policy catch_up = catch_up_policy::last;
  /// For catch_up_policy::all. From 1 to 1000.
  std::size_t catch_up_limit = 100;
  /// A due time that passed longer ago was missed: the catch-up policy decides about it. Raise it
  /// if workers are often busy or away for longer.
  std::chrono::milliseconds tolerance = std::chrono::minutes(1);

  bool operator==(const recurrence_options&) const = default;
};

enum class recur_status : std::uint8_t {
  added,      ///< there was no recurring event of this name
  unchanged,  ///< it had this definition already
  changed     ///< it had another definition
};
[[nodiscard]] HOLDFAST_API std::string_view to_string(recur_status status) noexcept;

/// A recurring event, as an operator sees it.
struct recurrence {
  std::string name{};
  /// The cron expression.
  std::string cron{};
  recurrence_options options{};
  /// The event without id. Each published event gets an id that depends on the name and the due
  /// time, and the headers `Holdfast-Recurrence` (the name) and `Holdfast-Due` (the due time).
  holdfast::event event{};
  /// The next due time. Empty: the expression does not match any more.
  std::optional<timestamp> next{};
  /// The due time of the last published event, if there is one, and its id.
  std::optional<timestamp> last{};
  std::string last_id{};
  /// Number of events that were published.
  std::uint64_t published = 0;
  /// Number of due times for which nothing was published, because of a policy. A lower bound.
  std::uint64_t skipped = 0;
  /// Why this program cannot publish its events: the stored definition is damaged or of a later
  /// version, or the time zone is unknown on this machine. Empty: it can.
  std::string problem{};
};

// ---- the interface of backends ----

/// A recurring event, as a backend stores it. Only class `outbox` knows what `text` means.
struct stored_recurrence {
  std::string name{};
  /// When a worker has to read it.
  timestamp due{};
  std::string text{};
};

/// Selects the recurring events of a lane.
struct recurrence_query {
  enum class kind : std::uint8_t {
    name,  ///< the one with this name
    due,   ///< those that are due, or due later than `horizon` from now, the earliest first
    all    ///< all with a name after `name`, by name
  };
  kind selection = kind::due;
  std::string name{};
  std::chrono::milliseconds horizon{};
  std::size_t most = 100;
};
/// The name of the enumerator, for example `name`. Does not change between versions.
[[nodiscard]] HOLDFAST_API std::string_view to_string(recurrence_query::kind kind) noexcept;

struct recurrence_page {
  std::vector<stored_recurrence> recurrences{};
  /// Time of the store.
  timestamp now{};
  /// Time until the first one of the lane is due. Empty: the lane has none.
  std::optional<std::chrono::milliseconds> next{};
};

/// Replaces, adds or removes a recurring event and publishes events, in one step.
struct recurrence_update {
  std::string name{};
  /// The stored text must be this one. Empty: there must be none.
  std::optional<std::string> expected{};
  /// Empty: remove it.
  std::optional<stored_recurrence> replacement{};
  std::vector<event> events{};
};

enum class update_status : std::uint8_t {
  done,      ///< also if this update was made before
  conflict,  ///< another text is stored; nothing was changed
  busy       ///< a transaction publishes for one of the keys; nothing was changed, try again
};
/// The name of the enumerator, for example `done`. Does not change between versions.
[[nodiscard]] HOLDFAST_API std::string_view to_string(update_status status) noexcept;

}  // namespace HOLDFAST_NAMESPACE
