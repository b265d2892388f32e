#pragma once

#include <holdfast/version.hpp>

#include "serve/config/server_config.hpp"
#include "serve/server_part.hpp"

#include <memory>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// The parts of `holdfast serve`, in the order in which they start. They end in the other order.
[[nodiscard]] std::vector<std::unique_ptr<server_part>> make_parts(
    const config::server_config& config);

}  // namespace HOLDFAST_NAMESPACE::detail::serve
