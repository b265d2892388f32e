#pragma once

/// \file
/// Answers calls from the store.

#include <holdfast/store.hpp>

#include "failover/point_core.hpp"

namespace HOLDFAST_NAMESPACE::detail::failover {

/// Checks whether a row may be served, and decodes it into the call. Returns counter::live if it
/// may, else the counter of the reason. `newest` is the newest version that had been served for the
/// key before the row was read.
[[nodiscard]] counter check_row(const std::shared_ptr<point_core>& point, call_base& call,
                                const entry& row, timestamp now,
                                std::optional<timestamp> newest) noexcept;
/// Sets the provenance of a call whose row was decoded.
void serve(const point_core& point, call_base& call, const entry& row, timestamp now,
           cause reason) noexcept;

/// Runs the recovered hook. Returns whether there is an answer afterwards. If the hook throws, the
/// recovered row is served unchanged.
bool run_recovered_hook(const point_core& point, call_base& call, bool served,
                        const std::optional<entry>& row);

/// Answers a failed call according to rules, store and exception policy, or throws. The leader of a
/// shared call passes `shared`, which gets error and served entry. A follower passes the result of
/// its leader, and does not read the store again.
void answer_failure(const std::shared_ptr<point_core>& point, call_base& call,
                    std::exception_ptr error, cause_code code, shared_result* shared = nullptr,
                    const shared_result* leader = nullptr);

/// For a call past its soft timeout: serves a stored answer. Returns false if there is none, and
/// leaves the call as it was.
bool serve_stored(const std::shared_ptr<point_core>& point, call_base& call,
                  std::exception_ptr error, shared_result* shared);

/// For a point with a soft expiry: serves a stored answer before the upstream is called. If it is
/// past the soft expiry, starts a refresh with `owned`, or with a copy of the call. Returns false
/// if there is nothing to serve.
bool serve_before_call(const std::shared_ptr<point_core>& point, call_base& call,
                       std::shared_ptr<call_base> owned = nullptr);

}  // namespace HOLDFAST_NAMESPACE::detail::failover
