#pragma once

/// \file
/// Options of the commands that open an outbox.

#include <holdfast/database.hpp>
#include <holdfast/error.hpp>
#include <holdfast/outbox.hpp>

#include "commands/config_source.hpp"
#include "commands/database_location.hpp"
#include "terminal/command.hpp"
#include "terminal/time_text.hpp"

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

namespace holdfast::cli {

/// The duration that an option has, or else the fallback.
[[nodiscard]] inline std::chrono::milliseconds duration_of(const option& duration,
                                                           std::string_view fallback) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
      parse_duration(duration.text(fallback)));
}

struct outbox_location {
  option url;
  option prefix;
  option lanes;
  option create;
  option unsafe;
  password_option password;

  explicit outbox_location(command& cmd)
      : url(cmd.value("--outbox", "URL",
                      "The database: redis://host:6379, redis+cluster://host:7000, sqlite:app.db, "
                      "postgresql://host/name (required, or --config)")
                .variable("HOLDFAST_OUTBOX")),
        prefix(cmd.value("--prefix", "P",
                         "Name of the outbox, with a hash tag in braces (default {holdfast})")),
        lanes(cmd.value("--lanes", "N",
                        "Number of lanes when the outbox was created: a power of two (default 1)")
                  .number(1, 256)),
        create(cmd.flag("--create-schema", "On SQL: create the tables if they do not exist")),
        unsafe(cmd.flag("--allow-unsafe",
                        "Continue if a Redis may evict events when its memory is full, or on a "
                        "Percona XtraDB Cluster with more than one node")),
        password(cmd) {
    add_config_source(cmd, url, configured_service::outbox);
  }

  [[nodiscard]] outbox open(console& io, outbox_options options = {}, log_sink log = {}) const {
    return open_with_database(io, std::move(options), {.log = std::move(log)}).second;
  }
  /// Without settings.log the log is printed as warnings.
  [[nodiscard]] std::pair<database, outbox> open_with_database(console& io, outbox_options options,
                                                               database_options settings) const {
    if (prefix.is_set()) options.prefix = prefix.text();
    options.lanes = static_cast<std::size_t>(lanes.count(1));
    options.create_schema = create.is_set();
    options.allow_eviction = unsafe.is_set();
    options.allow_unsafe = unsafe.is_set();
    // A problem while the outbox is opened is the error of the command. Do not log it as well.
    const auto opened = std::make_shared<std::atomic<bool>>(false);
    settings.password = password.read(io);
    if (!settings.log)
      settings.log = [&io, opened](const log_record& record) {
        if (*opened) io.write(record);
      };
    auto db = holdfast::open(url_to_open(url.text(), create.is_set()), std::move(settings));
    auto result = db.outbox(std::move(options));
    // Connects now: a command fails at once if the outbox cannot be used.
    if (const auto problem = result.admin().health()) throw error(*problem);
    *opened = true;
    return {std::move(db), std::move(result)};
  }
  /// Warns if the outbox was never used: its name may be mistyped. On Redis any name can be opened.
  void warn_if_unused(console& io, const outbox_stats& stats) const {
    if (stats.published + stats.events + stats.tickets != 0) return;
    io.warn("nothing was ever published here; check --outbox and --prefix");
  }
};

}  // namespace holdfast::cli
