#pragma once

/// \file
/// Health and reports of an engine.

#include <holdfast/failover/status.hpp>

#include "failover/engine_core.hpp"

namespace HOLDFAST_NAMESPACE::detail::failover {

[[nodiscard]] engine_health health_of(engine_core& engine) noexcept;
/// Updates the gauges and logs one line per point.
void write_report(engine_core& engine);
/// Starts the timer of the next report, if the options ask for reports.
void schedule_report(engine_core& engine) noexcept;

}  // namespace HOLDFAST_NAMESPACE::detail::failover
