#pragma once

/// \file
/// The content of an outbox as JSON Lines, and back.
///
///     {"kind":"event","id":"...","type":"...","key":"...","payload":"...","state":"due",...}
///     {"kind":"ticket","ticket":"hold-7","expires_at":"...","event":{...}}
///     {"kind":"recurring","name":"nightly","cron":"0 3 * * *",...,"event":{...}}
///
/// Parked events come first, the others in the order of their keys.

#include <holdfast/outbox.hpp>

#include "terminal/command.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace holdfast::cli {

struct outbox_export_result {
  std::uint64_t events = 0;
  std::uint64_t tickets = 0;
  std::uint64_t recurring = 0;
};

/// Calls `write` for each line, without its line end. Sorts at most 64 MiB of them in memory, and
/// the rest in temporary files. Contains every event that exists from the beginning to the end of
/// the call.
outbox_export_result export_outbox(const outbox& source,
                                   const std::function<void(const std::string&)>& write);

/// What to do with an event that was parked when it was exported.
enum class parked_import : std::uint8_t {
  park,     ///< park it again; for an outbox without events, and without a worker
  skip,     ///< leave it out
  deliver,  ///< publish it
};

struct outbox_import_options {
  parked_import parked = parked_import::park;
  holdfast::durability durability{};
};

struct outbox_import_result {
  std::uint64_t events = 0;      ///< published
  std::uint64_t duplicates = 0;  ///< their ids were there already
  std::uint64_t parked = 0;      ///< published and parked
  std::uint64_t skipped = 0;     ///< parked events that were left out
  std::uint64_t refused = 0;     ///< not published
  std::string problem{};         ///< why the first one was refused
  std::uint64_t tickets = 0;
  std::uint64_t recurring = 0;
};

/// `published 3, duplicates 1, ...` without the counters that are 0, except the first.
[[nodiscard]] std::string to_text(const outbox_import_result& result);
[[nodiscard]] std::string to_json(const outbox_import_result& result);

/// Publishes what export_outbox wrote. A line without "kind" is an event. It can be repeated: ids
/// are published once. Thread-safety: none.
class outbox_importer {
 public:
  outbox_importer(outbox target, outbox_import_options options);
  outbox_importer(const outbox_importer&) = delete;
  outbox_importer& operator=(const outbox_importer&) = delete;
  ~outbox_importer();

  /// Reads a line. Publishes when enough events have gathered. Throws errc::malformed or
  /// errc::invalid_argument for a line that cannot be read, and errors of the outbox.
  void add(std::string_view line);
  /// Publishes the events that have gathered.
  void flush();
  [[nodiscard]] const outbox_import_result& result() const noexcept;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

/// Reads a file into an importer, and prints the result. Returns exit_negative if an event was
/// refused, or nothing was published. Throws as import_lines.
[[nodiscard]] exit_code import_events(console& io, outbox_importer& importer,
                                      const std::string& file, bool json);

}  // namespace holdfast::cli
