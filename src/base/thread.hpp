#pragma once

#include <holdfast/version.hpp>

#include <functional>
#include <string>
#include <thread>

namespace HOLDFAST_NAMESPACE {

/// A thread in which every signal is blocked from its first instruction, so that the application's handlers never run on it; faults of the
/// thread itself (SIGSEGV and its kin) stay deliverable. Named as `top -H` shows it, cut to 15 bytes. Throws std::system_error.
[[nodiscard]] HOLDFAST_API std::jthread start_quiet_thread(const std::string& name, std::function<void()> body);

}  // namespace HOLDFAST_NAMESPACE
