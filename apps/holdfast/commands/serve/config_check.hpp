#pragma once

/// \file
/// What `serve --check` and `config check` check beyond the values of a file.

#include "serve/config/server_config.hpp"

#include <string>

namespace holdfast::cli {

/// Reads the certificates, and checks the URLs without connecting. Returns what is served: `1
/// stores, 0 outboxes, no sequences`. Throws as these do.
[[nodiscard]] std::string check_references(const detail::serve::config::server_config& config);

}  // namespace holdfast::cli
