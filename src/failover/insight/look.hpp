#pragma once

/// \file
/// Looks at the kept answer of a call that does not need it. The call does not wait for a look.

#include "failover/point_core.hpp"
#include "failover/shared_reads.hpp"

#include <functional>

namespace HOLDFAST_NAMESPACE::detail::failover {

/// Reads the row of a call, and passes the result to `judge`: at once if the memory of this process
/// has it, else on a thread of the engine, at most four at a time. Returns false if there will be
/// no look. The thread may drop a look that gets no turn within the read deadline.
bool look_at_row(const point_core& point, const call_base& call,
                 std::function<void(const read_result&)> judge);

}  // namespace HOLDFAST_NAMESPACE::detail::failover
