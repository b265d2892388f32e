#pragma once

#include <holdfast/version.hpp>

#include "serve/auth/identity.hpp"
#include "serve/config/server_config.hpp"
#include "serve/server_part.hpp"

#include <functional>
#include <memory>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// Shows the credentials of the first start to a person. Empty: none are created, because what is
/// not shown on a terminal ends in a log.
using show_credentials = std::function<void(const first_credentials&)>;

/// Tokens, sessions and the audit log, with their endpoints.
[[nodiscard]] std::unique_ptr<server_part> make_identity_part(const config::server_config& config,
                                                              show_credentials show);

}  // namespace HOLDFAST_NAMESPACE::detail::serve
