#pragma once

/// \file
/// Which store a command means.

#include <holdfast/database.hpp>

#include "command.hpp"

#include <memory>
#include <utility>

namespace holdfast::cli {

/// The switches of every command that opens a store.
struct store_place {
  option url;
  option prefix;
  option create;

  explicit store_place(command& at)
      : url(at.value("--store", "URL", "The database: sqlite:answers.db, postgresql://host/name, mysql://host/name").required()),
        prefix(at.value("--prefix", "P", "What the table's name begins with: MYAPP_, SCHEMA.MYAPP_")),
        create(at.flag("--create-schema", "Create the table and its index if they are not there")) {}

  /// What the library warns of is shown, unless the options say where it goes.
  [[nodiscard]] database open_database(console& io, database_options options = {}) const {
    if (!options.log) options.log = [&io](const log_record& record) { io.warn(record.message); };
    return holdfast::open(url.text(), std::move(options));
  }
  [[nodiscard]] std::shared_ptr<store> open_store(const database& on) const {
    return on.store({.prefix = prefix.text(), .create_schema = create.given()});
  }
  [[nodiscard]] std::shared_ptr<store> open(console& io) const { return open_store(open_database(io)); }
};

}  // namespace holdfast::cli
