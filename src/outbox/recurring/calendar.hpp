#pragma once

/// \file
/// The due times of a recurring event: a cron expression in the local time of a zone.

#include <holdfast/version.hpp>

#include "base/cron.hpp"
#include "base/time_zone.hpp"

#include <chrono>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::outbox {

/// When the clocks of the zone change, one of two rules applies:
///
/// - An expression that matches in every hour follows elapsed time. In an hour that is repeated it
///   matches twice, and the hour that is left out has no due times.
/// - Any other expression matches each local time once. A time that is left out is due at the
///   moment of the change; a time that is repeated is due at the first of the two moments.
///
/// Thread-safety: immutable after construction.
class HOLDFAST_API calendar {
 public:
  /// Parses an expression of five fields (minute first) or six. Throws errc::invalid_argument.
  calendar(std::string_view expression, time_zone zone);

  /// The first due time after this moment; nothing if the next 40 years have no due time.
  [[nodiscard]] std::optional<std::chrono::sys_seconds> next(std::chrono::sys_seconds after) const;
  /// The earliest due times after `after`, not later than `until`; at most `most`.
  [[nodiscard]] std::vector<std::chrono::sys_seconds> earliest(std::chrono::sys_seconds after,
                                                               std::chrono::sys_seconds until,
                                                               std::size_t most) const;
  /// The latest of them, in ascending order. The time it takes depends on `most`, not on how many
  /// due times there are.
  [[nodiscard]] std::vector<std::chrono::sys_seconds> latest(std::chrono::sys_seconds after,
                                                             std::chrono::sys_seconds until,
                                                             std::size_t most) const;

 private:
  [[nodiscard]] std::optional<std::chrono::sys_seconds> next_elapsed(
      std::chrono::sys_seconds after) const;
  [[nodiscard]] std::optional<std::chrono::sys_seconds> next_local(
      std::chrono::sys_seconds after) const;
  /// When it is this local time. See above for times that are left out or repeated.
  [[nodiscard]] std::chrono::sys_seconds moment_of(std::chrono::sys_seconds local) const;

  cron expression_;
  time_zone zone_;
};

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
