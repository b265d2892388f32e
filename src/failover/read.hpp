#pragma once

/// \file
/// Reads the store for a call: first what is in the memory of this process, on this thread, then
/// the store itself, on another thread if it may block, and not longer than the call has time.

#include <holdfast/store.hpp>

#include "failover/point_core.hpp"
#include "failover/shared_reads.hpp"

namespace HOLDFAST_NAMESPACE::detail::failover {

/// What the memory of this process has. Never waits.
[[nodiscard]] remembered_entry recall(const engine_core& engine, place location,
                                      std::string_view key) noexcept;
/// Finds a row on this thread. If the store throws, the status is `failed` and `error` is set.
[[nodiscard]] read_result find_row(holdfast::store& store, place location, std::string_view key,
                                   std::exception_ptr& error) noexcept;
/// Reads the row of a call until the deadline. If the store does not answer, the result is what
/// memory has. Callers that read the same row at the same time share one read. Logs failures, but
/// does not count them.
[[nodiscard]] read_result read_row(const std::shared_ptr<point_core>& point, const call_base& call,
                                   std::chrono::steady_clock::time_point deadline);
/// The counter of a read without a row.
[[nodiscard]] counter counter_of(read_status status) noexcept;
/// Erases an expired version, in the background if the store may block.
void erase_expired(const std::shared_ptr<point_core>& point, const entry& expired) noexcept;

}  // namespace HOLDFAST_NAMESPACE::detail::failover
