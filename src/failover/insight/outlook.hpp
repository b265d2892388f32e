#pragma once

/// \file
/// What the kept answers of a point are worth if its upstream stays down.

#include <holdfast/failover/outlook.hpp>

#include "failover/point_core.hpp"

namespace HOLDFAST_NAMESPACE::detail::failover {

/// Asks the store for at most two seconds. Throws errc::timeout if it does not answer in time,
/// errc::unavailable if it is known not to answer, and what it throws.
[[nodiscard]] point_outlook outlook_of(engine_core& engine, const point_core& point,
                                       std::chrono::steady_clock::time_point deadline);
/// Updates the gauges of outlook and coverage of as many points as two seconds allow, and continues
/// with the others the next time.
void update_outlook_gauges(engine_core& engine) noexcept;

}  // namespace HOLDFAST_NAMESPACE::detail::failover
