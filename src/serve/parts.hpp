#pragma once

#include <holdfast/version.hpp>

#include "serve/auth/identity_part.hpp"
#include "serve/config/server_config.hpp"
#include "serve/server_part.hpp"

#include <memory>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// What parts need of the process around them.
struct part_hooks {
  show_credentials show{};
};

/// The parts of `holdfast serve`, in the order in which they start. They end in the other order.
[[nodiscard]] std::vector<std::unique_ptr<server_part>> make_parts(
    const config::server_config& config, part_hooks hooks = {});

}  // namespace HOLDFAST_NAMESPACE::detail::serve
