#pragma once

/// \file
/// Calls that a drill selects.

#include "failover/point_core.hpp"

namespace HOLDFAST_NAMESPACE::detail::failover {

/// For a point with an active drill: serves the kept answer if the drill selects this call and
/// there is one. Otherwise returns false and leaves the call as it was, with deadlines that are
/// later by the time that this took: a drill must not make a call fail.
bool serve_in_drill(const std::shared_ptr<point_core>& point, call_base& call) noexcept;

/// The longest drill.
inline constexpr std::chrono::minutes longest_drill{15};
/// Throws errc::invalid_argument for options that are out of range, and for a point whose calls
/// cannot be drilled.
void check_drill(const point_core& point, const drill_options& options);
[[nodiscard]] drill_report report_of(const point_core& point, drill_run& run);

}  // namespace HOLDFAST_NAMESPACE::detail::failover
