#pragma once

/// \file
/// What workers do for the recurring events of a lane.

#include <holdfast/version.hpp>

#include "outbox/state.hpp"

#include <chrono>
#include <cstddef>
#include <optional>

namespace HOLDFAST_NAMESPACE::detail::outbox {

struct recurring_step {
  std::size_t published = 0;
  /// Time until the next recurring event of the lane is due. Empty: the lane has none.
  std::optional<std::chrono::milliseconds> next{};
};

/// Publishes the events that are due. Each is published and its recurring event moves on in one
/// step of the store, and only if no other worker was faster. A recurring event that cannot be
/// understood is reported, and does not keep the others.
[[nodiscard]] recurring_step publish_recurring(const outbox_state& state, std::size_t lane);

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
