#pragma once

/// \file
/// Stores scattered answers: slices are encoded one by one and written at once.

#include <holdfast/failover/gather.hpp>

#include "failover/point_core.hpp"

namespace HOLDFAST_NAMESPACE::detail::failover {

/// Stores the slices of a live answer, and after them the manifest of a list. Recovers slices that
/// the upstream did not return. If the answer must not be served, sets gather_base::refusal.
void keep_slices(const point_core& point, gather_base& call) noexcept;
/// Stores a tombstone for every slice, or for the manifest of a list.
void invalidate_slices(const point_core& point, gather_base& call) noexcept;

}  // namespace HOLDFAST_NAMESPACE::detail::failover
