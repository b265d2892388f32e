#pragma once

/// \file
/// The steps of a call around its upstream: permission, attempts, and the report of the result.

#include "failover/point_core.hpp"

namespace HOLDFAST_NAMESPACE::detail::failover {

/// The dimensions of this caller as part of a raw key. Throws if a dimension has no value.
[[nodiscard]] std::string vary_text(const point_core& point);
/// Calls the upstream on this thread, with retries. Returns null if it answered, else the error,
/// and sets `code`.
[[nodiscard]] std::exception_ptr call_upstream(const std::shared_ptr<point_core>& point,
                                               call_base& call, cause_code& code);
/// Whether and when a failed call is retried. Counts retries that the budget prevents.
[[nodiscard]] std::optional<std::chrono::microseconds> retry_pause(const point_core& point,
                                                                   const call_base& call,
                                                                   call_result result);
/// Reports the result of the upstream to breaker, concurrency limit and metrics.
void record_result(const point_core& point, call_base& call, call_result result) noexcept;
/// The result of an attempt for breaker and retries. A failure that the rules do not recover from
/// is a success: the upstream works.
[[nodiscard]] call_result result_of(const point_core& point,
                                    const std::exception_ptr& error) noexcept;
/// The error of a call that missed its deadline.
[[nodiscard]] std::exception_ptr late_error(const point_core& point);
/// A transient errc::unavailable.
[[nodiscard]] std::exception_ptr refusal(const std::string& message);
/// The id of a call for single_flight.
[[nodiscard]] std::string flight_id(const point_core& point, const call_base& call);

}  // namespace HOLDFAST_NAMESPACE::detail::failover
