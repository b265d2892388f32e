#pragma once

/// \file
/// Which store a command means.

#include <holdfast/database.hpp>

#include "command.hpp"
#include "password_option.hpp"

#include <memory>
#include <string>
#include <utility>

namespace holdfast::cli {

/// The URL as it is opened: an SQLite file that is not there is only made when that was asked for, since a mistyped path must not leave an
/// empty file behind.
[[nodiscard]] inline std::string url_to_open(const std::string& url, bool create) {
  const auto parameters = url.find('?');
  if (create || !url.starts_with("sqlite:") || (parameters != std::string::npos && url.find("mode=", parameters) != std::string::npos))
    return url;
  return url + (parameters == std::string::npos ? "?" : "&") + "mode=rw";
}

/// The switches of every command that speaks to a database.
struct database_place {
  option url;
  option prefix;
  password_option password;

  explicit database_place(command& at)
      : url(at.value("--store", "URL",
                     "The database: sqlite:answers.db, postgresql://host/name, mysql://host/name, h2://host/name, odbc:DSN=name")
                .required()),
        prefix(at.value("--prefix", "P", "What the table's name begins with: MYAPP_, SCHEMA.MYAPP_")),
        password(at) {}

  /// What the library warns of is shown, unless the options say where it goes.
  [[nodiscard]] database open_database(console& io, database_options options = {}, bool create = false) const {
    if (!options.log) options.log = [&io](const log_record& record) { io.warn(record.message); };
    options.password = password.read(io);
    return holdfast::open(url_to_open(url.text(), create), std::move(options));
  }
};

/// `--payload-column`, as the table was made.
[[nodiscard]] inline option payload_column_of(command& at) {
  return at.value("--payload-column", "", "What the PAYLOAD column is, as the store was made (default text)").one_of({"text", "bytes"});
}
[[nodiscard]] inline payload_column chosen_column(const option& given) {
  return given.text() == "bytes" ? payload_column::bytes : payload_column::text;
}

/// The switches of every command that opens a store.
struct store_place : database_place {
  option create;
  option column;

  explicit store_place(command& at)
      : database_place(at),
        create(at.flag("--create-schema", "Create the table and its index if they are not there")),
        column(payload_column_of(at)) {}

  [[nodiscard]] database open_database(console& io, database_options options = {}) const {
    return database_place::open_database(io, std::move(options), create.given());
  }
  /// Not probed: `holdfast store doctor` says in full, once, what every command would repeat.
  [[nodiscard]] std::shared_ptr<store> open_store(const database& on) const {
    return on.store(
        {.prefix = prefix.text(), .create_schema = create.given(), .payload = chosen_column(column), .probe = start_probe::off});
  }
  [[nodiscard]] std::shared_ptr<store> open(console& io) const { return open_store(open_database(io)); }
};

}  // namespace holdfast::cli
