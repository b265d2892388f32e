#pragma once

/// \file
/// Opens the databases of a configuration.

#include <holdfast/store/cleanup.hpp>
#include <holdfast/version.hpp>

#include "serve/api/services.hpp"
#include "serve/config/server_config.hpp"

#include <optional>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// The databases, and what runs on them.
struct opened_services {
  services shared{};
  /// Of [failover]; last, so that it stops first.
  std::optional<holdfast::cleanup> cleanup{};
};

/// Connects to no server; a file of SQLite is opened. `target.shared` has log, metrics and clock.
/// Throws errc::invalid_argument, with the name of the service, if a URL or an option is invalid,
/// errc::permission if a password file cannot be read.
void open_services(config::server_config& config, opened_services& target);

}  // namespace HOLDFAST_NAMESPACE::detail::serve
