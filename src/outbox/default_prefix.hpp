#pragma once

/// \file
/// The prefix of an outbox whose options do not name one. Earlier versions used another one; see
/// docs/decisions/0075-a-neutral-prefix.md.

#include <holdfast/log.hpp>
#include <holdfast/version.hpp>

#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::outbox {

inline constexpr std::string_view default_prefix = "{holdfast}";
inline constexpr std::string_view former_default_prefix = "{identity:outbox}";

/// Which of the two a database has.
struct default_outboxes {
  bool current = false;
  bool former = false;
};

/// An outbox that exists goes on with its prefix. Every process decides the same, because the
/// current one is never created where the former one exists alone.
[[nodiscard]] constexpr std::string_view choose_default_prefix(
    const default_outboxes& existing) noexcept {
  return existing.former && !existing.current ? former_default_prefix : default_prefix;
}

/// What a user should know about the choice; empty: nothing.
[[nodiscard]] constexpr std::string_view default_prefix_notice(
    const default_outboxes& existing) noexcept {
  if (!existing.former) return {};
  if (!existing.current)
    return "the outbox goes on with {identity:outbox}, the default prefix of earlier versions, "
           "because it exists; nothing has to be changed";
  return "there are two outboxes with a default prefix: {holdfast} is used, and the events of "
         "{identity:outbox}, the default of earlier versions, are not; deliver them with "
         "--prefix '{identity:outbox}', or set that prefix";
}

/// Logs that notice, once for each outbox that is opened.
inline void log_default_prefix(const logger* log, const default_outboxes& existing) {
  const auto notice = default_prefix_notice(existing);
  if (log == nullptr || notice.empty()) return;
  log->write(existing.current ? log_level::warning : log_level::info, notice);
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
