#pragma once

#include <holdfast/version.hpp>

#include "serve/server_part.hpp"

#include <memory>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// The state, events, history and incidents of the server. It needs the part that identifies
/// callers before it, for the state database.
[[nodiscard]] std::unique_ptr<server_part> make_live_part();

}  // namespace HOLDFAST_NAMESPACE::detail::serve
