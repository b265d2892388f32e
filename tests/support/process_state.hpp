#pragma once

/// \file
/// What the kernel says about a process. `kill(pid, 0)` is not enough: it succeeds on a zombie, and
/// on a stranger that got the same number.

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace holdfast::test {

/// A process, told apart from a later one with the same number by the moment it started.
struct process_identity {
  pid_t pid = 0;
  std::uint64_t started = 0;  ///< clock ticks since boot

  friend bool operator==(const process_identity&, const process_identity&) = default;
};

/// The letter of /proc/PID/status: R, S, D, T, Z...; nothing when there is no such process.
[[nodiscard]] std::optional<char> process_state(pid_t pid);

/// Is it there, and neither dead nor a zombie?
[[nodiscard]] bool process_alive(pid_t pid);
[[nodiscard]] bool process_alive(const process_identity& process);

/// Nothing when there is no such process.
[[nodiscard]] std::optional<process_identity> identify(pid_t pid);

/// Its children now; not theirs.
[[nodiscard]] std::vector<pid_t> children_of(pid_t pid);

}  // namespace holdfast::test
