#pragma once

/// \file
/// Sinks for log records: standard error, as lines for people or as lines of JSON; syslog; the
/// journal of systemd. Each is one call:
///
///     auto db = holdfast::open(url, {.log = holdfast::log_to_stderr()});

#include <holdfast/log.hpp>
#include <holdfast/version.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE {

enum class log_format : std::uint8_t {
  text,  ///< `2026-01-31T12:00:00.000000Z warning: message (field value)`
  /// `{"time":"...","level":"warning","message":"...","fields":{"field":"value"}}`
  json
};
/// The name of the enumerator: `text` or `json`. Does not change between versions.
[[nodiscard]] HOLDFAST_API std::string_view to_string(log_format format) noexcept;

struct log_output_options {
  log_level least = log_level::info;  ///< records below this level are dropped
  log_format format = log_format::text;
};

/// Writes each record as one line to standard error, with one call of write(2). Control characters
/// are escaped.
/// Thread-safety: the sink may be called from any thread.
[[nodiscard]] HOLDFAST_API log_sink log_to_stderr(log_output_options options = {});

struct log_service_options {
  std::string identifier{};  ///< name of the program in the log; empty: the name of its file
  log_level least = log_level::info;
  std::string
      socket{};  ///< for containers that have it elsewhere; empty: /dev/log or the journal's
};

/// Sends each record to the syslog of this machine, as facility `user`, without the global state of
/// syslog(3). Throws errc::unavailable if there is no syslog. The sink never waits: it throws, and
/// the record is counted in logger::failures(), if the socket is full.
/// Thread-safety: the sink may be called from any thread.
[[nodiscard]] HOLDFAST_API log_sink log_to_syslog(log_service_options options = {});

/// As log_to_syslog, to the journal of systemd. The fields of a record are fields of its entry:
/// `journalctl HOLDFAST_POINT=prices`.
[[nodiscard]] HOLDFAST_API log_sink log_to_journal(log_service_options options = {});

}  // namespace HOLDFAST_NAMESPACE
