#pragma once

/// \file
/// Answers scattered calls from the store, slice by slice.

#include <holdfast/failover/gather.hpp>

#include "failover/scatter/rows.hpp"

namespace HOLDFAST_NAMESPACE::detail::failover {

/// Recovers the slices of a failed call. Returns whether the answer may be served.
bool recover_slices(const std::shared_ptr<point_core>& point, gather_base& call,
                    const cause& reason);
/// Reads, checks and serves all open slices, then sets the provenance of the whole. `listed_as_of`
/// is the version of the manifest of a list. Returns whether the partial policy allows the answer.
bool recover_open_slices(const std::shared_ptr<point_core>& point, gather_base& call,
                         const cause& reason, steady_time deadline, timestamp listed_as_of);
/// Copies realm and start of the call to a slice.
void start_slice(const gather_base& call, gather_base::slice& slice,
                 holdfast::provenance provenance);

}  // namespace HOLDFAST_NAMESPACE::detail::failover
