#pragma once

/// \file
/// `holdfast demo --console`: a server with a busy example in it.

#include "terminal/command.hpp"

namespace holdfast::cli {

/// Prints the link of the console, and runs until a signal ends it. Removes its files.
exit_code run_console_demo(console& io);

}  // namespace holdfast::cli
