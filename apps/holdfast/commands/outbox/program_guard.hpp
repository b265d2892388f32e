#pragma once

/// \file
/// Ends the programs of a worker when the worker is killed.

#include <sys/types.h>

namespace holdfast::cli {

/// A process that waits for the end of this one, however it ends, and then kills the process groups
/// of the programs that were added and not removed.
///
/// It learns of the end because this process is the only writer of a pipe. It has a session of its
/// own and ignores the signals that stop a worker, so that it outlives the worker.
/// Thread-safety: every function may be called from any thread.
class program_guard {
 public:
  /// Forks: create it while this process has one thread. Throws errc::unavailable if that is not
  /// possible.
  program_guard();
  program_guard(const program_guard&) = delete;
  program_guard& operator=(const program_guard&) = delete;
  /// Ends the guard and waits for it.
  ~program_guard();

  /// Adds the calling process, which leads its process group. It is for a child between fork and
  /// exec, so that there is no moment in which a program runs and the guard does not know it.
  void add_this_process() const noexcept;
  /// The program has ended. Call it before the process is reaped: its id is not reused until then.
  void remove(pid_t program) const noexcept;

 private:
  void send(pid_t program, bool running) const noexcept;

  int pipe_ = -1;
  pid_t guard_ = 0;
};

}  // namespace holdfast::cli
