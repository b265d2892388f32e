#pragma once

/// \file
/// Keeps passwords out of process lists.

#include <span>

namespace holdfast::cli {

/// Overwrites the passwords of URLs and connection strings in the arguments with asterisks; see passwords_in. `ps` and /proc show the memory
/// of the arguments as it is now.
void hide_passwords(std::span<char*> arguments);

}  // namespace holdfast::cli
