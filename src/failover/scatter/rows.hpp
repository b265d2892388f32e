#pragma once

/// \file
/// Reads and writes many rows within one deadline. A slow or refused row affects only itself.

#include <holdfast/failover/gather.hpp>

#include "failover/point_core.hpp"
#include "failover/read.hpp"

namespace HOLDFAST_NAMESPACE::detail::failover {

using steady_time = std::chrono::steady_clock::time_point;

/// The deadline for storing or recovering an answer, if that begins now.
[[nodiscard]] steady_time gather_deadline(const point_core& point, const gather_base& call);

/// Reads rows of one name: on this thread if the store does not block, else several at a time on
/// other threads. Stops at the deadline, or if no row arrives during one read deadline. Returns
/// one result per key, in their order; rows that did not arrive are `late`.
[[nodiscard]] std::vector<read_result> read_rows(const point_core& point, std::string_view name,
                                                 std::string_view realm,
                                                 std::vector<std::string> keys,
                                                 steady_time deadline);
/// Reads up to `limit` rows of the effective name of the point. Returns nothing if the store could
/// not be read, which is counted.
[[nodiscard]] std::optional<std::vector<entry>> read_all_rows(const point_core& point,
                                                              const std::string& realm,
                                                              std::size_t limit,
                                                              steady_time deadline);
/// Puts rows with one write. If the store refuses them, finds the refused rows by bisection and
/// puts the others. Returns for each row whether it failed.
[[nodiscard]] std::vector<bool> put_rows(const point_core& point, std::vector<entry> rows,
                                         steady_time deadline);

}  // namespace HOLDFAST_NAMESPACE::detail::failover
