#pragma once

/// \file
/// Decisions of the server's engine: kept for GET /v1/explain, and told to the answers that they
/// concern.

#include <holdfast/failover/options.hpp>

#include <memory>
#include <string>

namespace HOLDFAST_NAMESPACE::detail::serve {

class served_ages;

/// What the engine of the server records. The server puts the same objects into `services`. `ages`
/// may be null.
[[nodiscard]] engine_insight server_insight(std::shared_ptr<decision_log> log,
                                            std::shared_ptr<served_ages> ages = nullptr);

/// The reference of the last decision on this thread, or empty text. Cleared by this.
[[nodiscard]] std::string take_last_decision();

}  // namespace HOLDFAST_NAMESPACE::detail::serve
