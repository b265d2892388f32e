#pragma once

/// \file
/// Which outbox a command means.

#include <holdfast/database.hpp>
#include <holdfast/outbox.hpp>

#include "command.hpp"
#include "entry_text.hpp"
#include "store_place.hpp"

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

namespace holdfast::cli {

/// The time that a switch gives, or the default if it was not given.
[[nodiscard]] inline std::chrono::milliseconds time_of(const option& given, std::string_view fallback) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(read_duration(given.text(fallback)));
}

/// The switches of every command that opens an outbox.
struct outbox_place {
  option url;
  option prefix;
  option lanes;
  option create;
  option unsafe;
  password_option password;

  explicit outbox_place(command& at)
      : url(at.value("--outbox", "URL", "Where it is: redis://host:6379, redis+cluster://host:7000, sqlite:app.db, postgresql://host/name")
                .required()),
        prefix(at.value("--prefix", "P", "Its name, with the braces of a hash tag; {identity:outbox} if not given")),
        lanes(at.value("--lanes", "N", "Its lanes, as it was made: a power of two; 1 if not given").number(1, 256)),
        create(at.flag("--create-schema", "On SQL: create its tables if they are not there")),
        unsafe(at.flag("--allow-unsafe", "Go on where a Redis may throw events away when its memory is full")),
        password(at) {}

  [[nodiscard]] outbox open(console& io, outbox_options options = {}, log_sink log = {}) const {
    if (prefix.given()) options.prefix = prefix.text();
    options.lanes = static_cast<std::size_t>(lanes.count(1));
    options.create_schema = create.given();
    options.allow_eviction = unsafe.given();
    // What goes wrong while it is opened is the error of the command: said once.
    const auto opened = std::make_shared<std::atomic<bool>>(false);
    database_options how;
    how.password = password.read(io);
    how.log = log ? std::move(log) : [&io, opened](const log_record& record) {
      if (*opened) io.warn(record.message);
    };
    auto made = holdfast::open(url_to_open(url.text(), create.given()), std::move(how)).outbox(std::move(options));
    *opened = true;
    return made;
  }
  /// Nothing was found: say so where it looks like a mistyped name, since on Redis nothing has to be made before it is used.
  void doubt(console& io, const outbox_stats& stats) const {
    if (stats.published + stats.events + stats.tickets != 0) return;
    io.warn("nothing was ever published here; if that is not what you expect, check --outbox and --prefix");
  }
};

}  // namespace holdfast::cli
