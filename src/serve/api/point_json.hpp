#pragma once

/// \file
/// Points as JSON.

#include <holdfast/failover/decision.hpp>
#include <holdfast/failover/drill.hpp>
#include <holdfast/failover/options.hpp>
#include <holdfast/failover/outlook.hpp>
#include <holdfast/failover/status.hpp>

#include "serve/api/json_writer.hpp"

#include <chrono>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// `412s`, or `1500ms` if it is not whole seconds. Rounded up to milliseconds, so that a short time
/// is not zero.
[[nodiscard]] std::string point_duration(std::chrono::microseconds duration);

void write_point(json_writer& out, const point_status& status);
/// The options that are in force.
void write_rules(json_writer& out, const point_options& options);
void write_outlook(json_writer& out, const point_outlook& outlook);
void write_coverage(json_writer& out, const point_coverage& coverage);
void write_drill(json_writer& out, const drill_report& drill);
void write_decision(json_writer& out, const decision& reported);

}  // namespace HOLDFAST_NAMESPACE::detail::serve
