#pragma once

/// \file
/// A recurring event: its definition, its progress, and the text that the store keeps for both.
///
///     {"v":1,"cron":"0 3 * * *",...,"after":1767225600000,...}     definition, progress
///     "type":"report.due",...                                      body of the event's entry

#include <holdfast/outbox/recurring.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::outbox {

struct recurrence_definition {
  std::string cron{};
  recurrence_options options{};
  holdfast::event event{};

  bool operator==(const recurrence_definition&) const = default;
};

/// What was done so far. Times are whole seconds by the clock of the store.
struct recurrence_progress {
  /// All due times up to this one are done.
  std::chrono::sys_seconds after{};
  /// The next due time when the text was written; for people.
  std::optional<std::chrono::sys_seconds> next{};
  /// Due time and id of the last published event.
  std::optional<std::chrono::sys_seconds> last{};
  std::string last_id{};
  std::uint64_t published = 0, skipped = 0;
  /// A new UUID in each text that is written: a step that is repeated because its answer was lost
  /// is not taken for the same step of another worker.
  std::string step{};
};

struct recurrence_record {
  recurrence_definition definition{};
  recurrence_progress progress{};
};

/// Throws errc::invalid_argument, or errc::too_large for the payload, for a definition that cannot
/// be used. Does not check the expression and the zone.
void check_recurrence(std::string_view name, const recurrence_definition& definition,
                      std::size_t inline_limit);

[[nodiscard]] HOLDFAST_API std::string recurrence_text(const recurrence_record& record);
/// Throws errc::malformed, and errc::unsupported_type for a text of a later version.
[[nodiscard]] HOLDFAST_API recurrence_record read_recurrence(std::string_view text);

/// The event that is published for a due time.
[[nodiscard]] HOLDFAST_API event event_of(std::string_view name, const event& definition,
                                          std::chrono::sys_seconds due);

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
