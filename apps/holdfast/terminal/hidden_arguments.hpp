#pragma once

/// \file
/// Hides passwords from process lists.

#include <span>

namespace holdfast::cli {

/// Overwrites the passwords of URLs and connection strings in the arguments with asterisks; see
/// passwords_in. `ps` and /proc show the current memory of the arguments.
void hide_passwords(std::span<char*> arguments);

}  // namespace holdfast::cli
