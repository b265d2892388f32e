#pragma once

/// \file
/// Which outbox a command means.

#include <holdfast/database.hpp>
#include <holdfast/outbox.hpp>

#include "command.hpp"
#include "store_place.hpp"

#include <string>
#include <utility>

namespace holdfast::cli {

/// The switches of every command that opens an outbox.
struct outbox_place {
  option url;
  option prefix;
  option lanes;
  option create;

  explicit outbox_place(command& at)
      : url(at.value("--outbox", "URL", "Where it is: redis://host:6379, redis+cluster://host:7000, sqlite:app.db, postgresql://host/name")
                .required()),
        prefix(at.value("--prefix", "P", "Its name, with the braces of a hash tag; {identity:outbox} if not given")),
        lanes(at.value("--lanes", "N", "Its lanes, as it was made: a power of two; 1 if not given").number(1, 256)),
        create(at.flag("--create-schema", "On SQL: create its tables if they are not there")) {}

  [[nodiscard]] outbox open(console& io, outbox_options options = {}, log_sink log = {}) const {
    if (prefix.given()) options.prefix = prefix.text();
    options.lanes = static_cast<std::size_t>(lanes.count(1));
    options.create_schema = create.given();
    database_options how;
    how.log = log ? std::move(log) : [&io](const log_record& record) { io.warn(record.message); };
    return holdfast::open(url_to_open(url.text(), create.given()), std::move(how)).outbox(std::move(options));
  }
};

}  // namespace holdfast::cli
