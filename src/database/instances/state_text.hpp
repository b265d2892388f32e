#pragma once

/// \file
/// The status of an engine, worker or cleanup as JSON, for the report of an instance.

#include <holdfast/failover/engine.hpp>
#include <holdfast/store/cleanup.hpp>
#include <holdfast/version.hpp>
#include <holdfast/worker.hpp>

#include <cstddef>
#include <string>

namespace HOLDFAST_NAMESPACE::detail::instances {

/// The largest JSON text. Points that do not fit are left out and counted.
inline constexpr std::size_t max_state_bytes = std::size_t{64} << 10U;

[[nodiscard]] std::string state_text(const engine& source);
[[nodiscard]] std::string state_text(const worker& source);
[[nodiscard]] std::string state_text(const cleanup& source);

}  // namespace HOLDFAST_NAMESPACE::detail::instances
