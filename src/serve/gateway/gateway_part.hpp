#pragma once

#include <holdfast/version.hpp>

#include "serve/api/services.hpp"
#include "serve/config/server_config.hpp"
#include "serve/gateway/gateway_server.hpp"
#include "serve/server_part.hpp"

#include <memory>

namespace HOLDFAST_NAMESPACE::detail::serve::gateway {

/// The options of a gateway on these services. `access` may be null.
[[nodiscard]] gateway_options options_for(const config::server_config& config,
                                          const services& shared, access_log* access);

/// The gateway of `holdfast serve`. Null if the configuration has none. `listening` is called with
/// the addresses when it listens.
[[nodiscard]] std::unique_ptr<server_part> make_gateway_part(
    const config::server_config& config,
    std::function<void(const std::vector<std::string>&)> listening);

}  // namespace HOLDFAST_NAMESPACE::detail::serve::gateway
