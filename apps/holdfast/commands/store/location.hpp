#pragma once

/// \file
/// Options of the commands that open a store.

#include "commands/database_location.hpp"

#include <memory>
#include <utility>

namespace holdfast::cli {

/// `--payload-column`.
struct payload_column_option {
  option column;

  explicit payload_column_option(command& cmd)
      : column(cmd.value("--payload-column", "",
                         "Type of the PAYLOAD column when the table was created (default text)")
                   .one_of({"text", "bytes"})) {}

  [[nodiscard]] payload_column value() const {
    return column.text() == "bytes" ? payload_column::bytes : payload_column::text;
  }
};

struct store_location : database_location {
  option create;
  payload_column_option column;

  explicit store_location(command& cmd)
      : database_location(cmd),
        create(cmd.flag("--create-schema", "Create the table and its index if they do not exist")),
        column(cmd) {}

  [[nodiscard]] database open_database(console& io, database_options options = {}) const {
    return database_location::open_database(io, std::move(options), create.is_set());
  }
  /// Opens the store without a probe: its findings are the output of `holdfast store doctor`. Fails
  /// if the database cannot be reached.
  [[nodiscard]] std::shared_ptr<store> open_store(const database& db) const {
    return db.store({.prefix = prefix.text(),
                     .create_schema = create.is_set(),
                     .payload = column.value(),
                     .probe = start_probe::off,
                     .start = start_mode::require});
  }
  [[nodiscard]] std::shared_ptr<store> open(console& io) const {
    return open_store(open_database(io));
  }
};

}  // namespace holdfast::cli
