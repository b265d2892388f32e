#pragma once

/// \file
/// Other processes of the demonstration.

#include <holdfast/error.hpp>

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace holdfast::cli {

/// Runs this program with other arguments and returns its output. Throws errc::unavailable if it
/// cannot be started.
[[nodiscard]] std::string run_self(const std::vector<std::string>& arguments);

/// This program with other arguments, running until the object is destroyed, which kills it with
/// SIGKILL.
class running_self {
 public:
  /// Waits for the first line on its standard error. Throws errc::unavailable if it ends before.
  explicit running_self(const std::vector<std::string>& arguments);
  running_self(const running_self&) = delete;
  running_self& operator=(const running_self&) = delete;
  ~running_self();
  [[nodiscard]] const std::string& first_line() const noexcept { return first_line_; }

 private:
  pid_t child_ = -1;
  int standard_error_ = -1;
  std::string first_line_{};
};

/// Waits until a child has ended, and returns its status for WIFEXITED and the like.
int wait_for_exit(pid_t child) noexcept;

/// Runs a function in a child process, in which the function must kill itself with a signal. Throws
/// errc::unavailable with the message if it was not killed.
template <class Function>
void run_until_killed(Function function, const std::string& message) {
  const pid_t child = ::fork();
  if (child < 0) throw error(errc::unavailable, "cannot start a second process");
  if (child == 0) {
    try {
      function();
    } catch (...) {  // NOLINT(bugprone-empty-catch)
      // The parent sees that the child was not killed.
    }
    ::_exit(1);
  }
  if (!WIFSIGNALED(wait_for_exit(child))) throw error(errc::unavailable, message);
}

}  // namespace holdfast::cli
