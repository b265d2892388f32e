#pragma once

/// \file
/// Programs that a test starts. None of them outlives the test, however the test ends.

#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::test {

/// What to run and how.
struct child_options {
  std::vector<std::string> argv{};  ///< the first is looked up in PATH when it has no slash
  /// NAME=value, added to ours; a NAME alone is removed from it
  std::vector<std::string> environment{};
  std::filesystem::path directory{};  ///< working directory; empty: ours
  /// Run as this one when we are root; otherwise, and when empty: as ourselves
  std::string user{};
  /// A file to read as standard input; empty: there is none
  std::filesystem::path input{};
  /// Standard output and error are appended here; empty: thrown away
  std::filesystem::path log{};
  int output = -1;             ///< a descriptor for standard output instead of the log
  int error = -1;              ///< a descriptor for standard error instead of the log
  int death_signal = SIGKILL;  ///< what it gets when our process dies
};

/// How a process ended.
struct exit_status {
  bool signalled = false;
  int code = 0;  ///< exit code, or the number of the signal

  [[nodiscard]] bool success() const noexcept { return !signalled && code == 0; }
  [[nodiscard]] std::string describe() const;  ///< "exit code 3", "signal 9"
};

/// A running program. The destructor kills it (SIGKILL) and reaps it. It dies with our process,
/// too, even when that is killed: spawning happens on a thread that lives as long as the process,
/// since the kernel ties a child to the thread that made it. Thread-safety: one thread at a time;
/// signal() from any.
class child_process {
 public:
  /// Starts it. Throws std::system_error when the program cannot be executed, with the errno of the
  /// step that failed.
  explicit child_process(child_options options);
  child_process(child_process&& other) noexcept;
  child_process& operator=(child_process&& other) noexcept;
  ~child_process();

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  /// Has it not ended yet? A stopped one (SIGSTOP) is running.
  [[nodiscard]] bool running();
  /// How it ended, or nothing when it is still running after the timeout. Never waits longer.
  std::optional<exit_status> wait(std::chrono::milliseconds timeout);
  /// Nothing happens when it has ended: its number may belong to somebody else by now.
  void signal(int number);
  /// SIGKILL, and wait until it is gone.
  exit_status kill();

 private:
  void reap_if_over();

  pid_t pid_ = -1;
  int descriptor_ = -1;  // of the process (pidfd): readable when it has ended
  std::optional<exit_status> status_{};
};

/// What a program that ran to its end left.
struct program_result {
  exit_status status{};
  std::string output{};
  std::string error{};
};

/// Runs a program to its end and keeps what it wrote. Throws std::runtime_error when it is not done
/// in time (and kills it).
program_result run_program(child_options options,
                           std::chrono::milliseconds timeout = std::chrono::seconds(60));

}  // namespace holdfast::test
