#pragma once

/// \file
/// Delivers an event to a program: it reads JSON from standard input, and its exit code is the
/// outcome.

#include <holdfast/outbox/outcome.hpp>

#include "commands/outbox/program_guard.hpp"

#include <chrono>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

// Exit codes of the program with a special meaning, as in sysexits.h. 0 confirms the event; any
// other code means: try again.

/// EX_DATAERR: park the event, it can never succeed.
inline constexpr int exit_data_error = 65;
/// EX_TEMPFAIL: try again later, without counting a failure.
inline constexpr int exit_temporary_fail = 75;

struct program_call {
  /// The command for `sh -c`.
  std::string command;
  /// The standard input of the program.
  std::string input;
  /// NAME=value. Added to the environment of this process, without its HOLDFAST_* variables.
  std::vector<std::string> environment{};
  /// Delay after exit_temporary_fail.
  std::chrono::milliseconds retry_delay{};
};

/// Runs the program until it exits. Copies its standard error; the last line is the reason of a
/// failure. When `lost` is requested, sends SIGTERM to the program and its process group, and
/// SIGKILL three seconds later. If this process is killed, the guard kills them. Throws
/// errc::unavailable if no program can be started. Thread-safety: may be called from any thread.
[[nodiscard]] outcome run_program(const program_call& call, const program_guard& guard,
                                  const std::stop_token& lost);

}  // namespace holdfast::cli
