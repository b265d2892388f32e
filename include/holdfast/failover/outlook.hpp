#pragma once

/// \file
/// Outlook and coverage: what the kept answers of a point are worth if its upstream fails.

#include <holdfast/clock.hpp>
#include <holdfast/version.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace HOLDFAST_NAMESPACE {

/// What expires when, if the upstream of a point stays down from now on. The calls of the last hour
/// are represented by a sample of their keys, at most 240 of them, so a key that is asked for often
/// counts more.
struct point_outlook {
  std::string point{};
  timestamp time{};  ///< when the store was asked

  /// Keys in the sample, and the calls of the last hour that they represent.
  std::size_t sampled_keys = 0;
  std::uint64_t calls = 0;
  /// Part of these calls that kept answers could serve now, from 0 to 1. Empty without calls.
  std::optional<double> covered{};
  /// When the first, half, and 90 % of the answers that cover calls now have expired. Empty if
  /// nothing covers a call.
  std::optional<timestamp> first{};
  std::optional<timestamp> half{};
  std::optional<timestamp> most{};

  /// Which part of the calls is covered at a time.
  struct step {
    timestamp until{};
    double part = 0;
  };
  /// At fixed distances from now: 1 min, 10 min, 30 min, 1 h, 3 h, 6 h, 12 h, 1 d, 3 d, 7 d, 30 d.
  std::vector<step> calls_covered{};
  /// The same for entries: the part of all unexpired entries that can be served at that time.
  std::vector<step> entries_left{};
  /// Unexpired entries of the point's domain, tombstones included. Empty if the engine has tenants
  /// and none is current.
  std::uint64_t entries = 0;
  /// There are more entries than were counted.
  bool entries_at_least = false;
};

/// Whether kept answers could have served the live calls of the last hour, from one call in
/// engine_insight::sample.
struct point_coverage {
  std::string point{};
  std::uint64_t checked = 0;  ///< calls that were checked
  std::uint64_t covered = 0;  ///< of them: a kept answer could have served the call
  // The others, by reason.
  std::uint64_t not_found = 0;
  std::uint64_t expired = 0;
  std::uint64_t not_servable = 0;  ///< class not allowed, older than served, or a tombstone
  std::uint64_t unread = 0;        ///< the store did not answer

  /// Checks without a result, because the new answer had replaced the kept one already. Not in
  /// `checked`.
  std::uint64_t undecided = 0;

  /// From 0 to 1. Empty if nothing was checked.
  [[nodiscard]] std::optional<double> part() const noexcept {
    if (checked == 0) return std::nullopt;
    return static_cast<double>(covered) / static_cast<double>(checked);
  }
};

}  // namespace HOLDFAST_NAMESPACE
