#pragma once

/// \file
/// Findings of a doctor as text and as JSON.

#include <holdfast/store/probe.hpp>

#include "terminal/output.hpp"

#include <span>
#include <string>
#include <string_view>

namespace holdfast::cli {

/// Prints a finding, and below it the statements or the advice that repair it.
void print_finding(output& out, const probe_finding& finding);

/// `[{"severity","code","problem","sql","advice"}]`.
[[nodiscard]] std::string findings_json(std::span<const probe_finding> findings);

}  // namespace holdfast::cli
