#pragma once

/// \file
/// Options of the commands that open an SQL database.

#include <holdfast/database.hpp>

#include "base/url.hpp"
#include "commands/config_source.hpp"
#include "terminal/command.hpp"
#include "terminal/password_option.hpp"

#include <string>
#include <utility>

namespace holdfast::cli {

using detail::url_to_open;

struct database_location {
  option url;
  option prefix;
  password_option password;

  /// `variable`: the environment variable with the default of the URL.
  explicit database_location(command& cmd, std::string_view variable = "HOLDFAST_STORE")
      : url(cmd.value("--store", "URL",
                      "The database: sqlite:answers.db, postgresql://host/name, mysql://host/name, "
                      "h2://host/name, odbc:DSN=name (required, or --config)")
                .variable(variable)),
        prefix(cmd.value("--prefix", "P", "Prefix of the table name: MYAPP_, SCHEMA.MYAPP_")),
        password(cmd) {
    add_config_source(cmd, url,
                      variable == "HOLDFAST_SEQUENCE" ? configured_service::sequences
                                                      : configured_service::store);
  }

  /// Prints the log as warnings, unless the options have a log.
  [[nodiscard]] database open_database(console& io, database_options options = {},
                                       bool create = false) const {
    if (!options.log) options.log = io.sink();
    options.password = password.read(io);
    return holdfast::open(url_to_open(url.text(), create), std::move(options));
  }
};

}  // namespace holdfast::cli
