#pragma once

/// \file
/// Problems of the server, the connection and the clocks. No I/O: the same facts give the same
/// findings.

#include <holdfast/sql.hpp>
#include <holdfast/store/probe.hpp>

#include "store/doctor/database_facts.hpp"

#include <chrono>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::store {

/// Settings with which a power failure loses acknowledged writes, and servers that are read-only.
[[nodiscard]] std::vector<probe_finding> find_server_problems(const server_facts& server);

/// A connection to another machine that can be read or changed. docs/tls.md describes the
/// protection.
[[nodiscard]] std::vector<probe_finding> find_transport_problems(sql::transport_kind transport,
                                                                 sql::dialect_id dialect);

/// What is between the connection and the server, as watched_session::intermediary() tells it.
[[nodiscard]] std::vector<probe_finding> find_intermediary_problems(std::string_view intermediary);

/// `error_bound` is the possible error of `skew`.
[[nodiscard]] std::vector<probe_finding> find_clock_problems(std::chrono::microseconds skew,
                                                             std::chrono::microseconds error_bound,
                                                             std::chrono::microseconds max_skew);

}  // namespace HOLDFAST_NAMESPACE::detail::store
