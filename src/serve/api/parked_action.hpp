#pragma once

/// \file
/// Replaying and discarding parked events: by id, and as a job over all that match a filter.

#include <holdfast/clock.hpp>
#include <holdfast/version.hpp>

#include "serve/api/event_filter.hpp"
#include "serve/api/job_runner.hpp"
#include "serve/api/services.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve {

enum class parked_action : std::uint8_t { replay, discard };
/// `replay`, `discard`.
[[nodiscard]] std::string_view to_string(parked_action action) noexcept;

/// Returns for each id whether it was parked, and the action was done. Throws
/// errc::invalid_argument before anything is done if an id is not a UUID.
[[nodiscard]] std::vector<bool> apply_to_ids(const outbox_service& service, parked_action action,
                                             std::span<const std::string> ids);

/// The step of a job: takes the events that match and were parked before `began` (time of the
/// store), in one pass. Looks at 500 events in each step.
[[nodiscard]] std::function<job_step()> make_parked_step(const outbox_service& service,
                                                         parked_action action, event_filter filter,
                                                         timestamp began,
                                                         std::optional<std::uint64_t> at_most);

}  // namespace HOLDFAST_NAMESPACE::detail::serve
