#pragma once

/// \file
/// Runs the probe of a store on an SQL database; see holdfast/store/probe.hpp.

#include <holdfast/store.hpp>
#include <holdfast/store/probe.hpp>
#include <holdfast/version.hpp>

#include "sql/context.hpp"

namespace HOLDFAST_NAMESPACE::detail::store {

/// Checks what can be read when a store is opened. Logs problems, and throws errc::missing_object
/// or errc::unsupported_type for those that `store_options::probe` refuses. If the probe itself
/// fails, that is only logged, unless the mode is strict.
void probe_at_start(sql::context& database, const store_options& options);

/// Implements `holdfast::probe` for an SQL database. Throws what the database throws.
[[nodiscard]] HOLDFAST_API probe_report probe_database(sql::context& database,
                                                       const store_options& options);

/// The same for the server alone, without a table. Throws what the database throws.
[[nodiscard]] HOLDFAST_API probe_report probe_server(sql::context& database);

}  // namespace HOLDFAST_NAMESPACE::detail::store
