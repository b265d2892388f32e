#pragma once

/// \file
/// Keeps passwords out of process lists.

#include <span>

namespace holdfast::cli {

/// Overwrites passwords in the arguments with asterisks: of URLs (`scheme://user:password@`) and of parameters (`PWD=`, `password=`). `ps`
/// and /proc show the memory of the arguments as it is now. Rather hides too much: a password may have an unescaped `/` or `@` in it.
void hide_passwords(std::span<char*> arguments) noexcept;

}  // namespace holdfast::cli
