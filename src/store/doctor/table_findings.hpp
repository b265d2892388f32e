#pragma once

/// \file
/// Compares a table with the published one. No I/O: the same facts give the same findings.

#include <holdfast/store.hpp>
#include <holdfast/store/probe.hpp>

#include "store/doctor/database_facts.hpp"

#include <string>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::store {

[[nodiscard]] std::vector<probe_finding> find_table_problems(const table_facts& table,
                                                             const server_facts& server,
                                                             const std::string& prefix,
                                                             const store_options& options);

}  // namespace HOLDFAST_NAMESPACE::detail::store
