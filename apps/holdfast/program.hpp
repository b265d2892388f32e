#pragma once

/// \file
/// The whole command line. `main` runs it; a test can run it without a process.

#include "terminal/command.hpp"

#include <string>
#include <vector>

namespace holdfast::cli {

/// Runs one command line (without the program's name) and returns its exit code. Never throws:
/// writes one line to `err` if something fails.
[[nodiscard]] int run(std::vector<std::string> words, output& out, output& err) noexcept;

}  // namespace holdfast::cli
