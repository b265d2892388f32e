#pragma once

/// \file
/// An event handed to a program: its JSON on standard input, its exit code is the outcome.

#include <holdfast/outbox/outcome.hpp>

#include <chrono>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

/// Exit codes with a meaning of their own, as in sysexits.h; 0 is done, any other says: try again.
inline constexpr int exit_data_error = 65;      ///< EX_DATAERR: it will never succeed, park it
inline constexpr int exit_temporary_fail = 75;  ///< EX_TEMPFAIL: not now, and do not count it

struct program_call {
  std::string command;                     ///< for `sh -c`
  std::string input;                       ///< what it reads
  std::vector<std::string> environment{};  ///< NAME=value, added to ours; HOLDFAST_* of ours are left out
  std::chrono::milliseconds pause{};       ///< before an event is tried again that was not now
};

/// Runs it to its end; what it writes to standard error is passed on, and its last line is the reason of a failure. When `lost` is told the
/// program gets SIGTERM. Throws errc::unavailable when no program can be started.
/// Thread-safety: may be called from any thread.
[[nodiscard]] outcome run_program(const program_call& what, const std::stop_token& lost);

}  // namespace holdfast::cli
