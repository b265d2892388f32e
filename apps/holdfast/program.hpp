#pragma once

/// \file
/// The whole command line: what `main` runs, and what a test can run without a process.

#include "command.hpp"

#include <string>
#include <vector>

namespace holdfast::cli {

/// Runs one command line (without the program's name) and returns its exit code. Never throws: whatever goes wrong is one line on `err`.
[[nodiscard]] int run(std::vector<std::string> words, output& out, output& err) noexcept;

}  // namespace holdfast::cli
