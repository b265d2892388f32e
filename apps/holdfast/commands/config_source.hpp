#pragma once

/// \file
/// `--config`: a command takes its database from a configuration file.

#include "terminal/command.hpp"

#include <cstdint>
#include <string>

namespace holdfast::cli {

enum class configured_service : std::uint8_t { store, outbox, sequences };

/// Adds `--config FILE`. Before the command runs, options that the command line does not have are
/// set from the file: the URL, the prefix, the password and what else describes the tables. `url`
/// may then be the name of a store or an outbox of the file. Without --config, `url` is required.
void add_config_source(command& cmd, const option& url, configured_service service);

}  // namespace holdfast::cli
