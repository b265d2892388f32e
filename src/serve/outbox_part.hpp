#pragma once

#include <holdfast/version.hpp>

#include "serve/server_part.hpp"

#include <memory>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// The endpoints below /v1/outboxes, with the long polls of workers.
[[nodiscard]] std::unique_ptr<server_part> make_outbox_part();

}  // namespace HOLDFAST_NAMESPACE::detail::serve
