#pragma once

/// \file
/// Threads that receive no signals.

#include <holdfast/version.hpp>

#include <functional>
#include <string>
#include <thread>

namespace HOLDFAST_NAMESPACE::detail {

/// Starts a thread in which signals are blocked from its first instruction, so that the
/// application's handlers never run on it. Faults of the thread itself (SIGSEGV and similar) are
/// still delivered. `top -H` shows the name, truncated to 15 bytes. Throws std::system_error.
[[nodiscard]] HOLDFAST_API std::jthread start_quiet_thread(const std::string& name,
                                                           std::function<void()> body);

}  // namespace HOLDFAST_NAMESPACE::detail
