#pragma once

/// \file
/// The version of the library. CMake, the command line, pkg-config and the check of the change log
/// read it from this file.

#if __cplusplus < 202002L
#error "Holdfast needs C++20: compile with -std=c++20, or link holdfast::holdfast in CMake"
// Not a file: it ends the compilation here. Otherwise hundreds of other errors would follow.
#include "holdfast needs -std=c++20"
#endif

#define HOLDFAST_VERSION_MAJOR 0
#define HOLDFAST_VERSION_MINOR 1
#define HOLDFAST_VERSION_PATCH 0
#define HOLDFAST_VERSION_STRING "0.1.0"

/// All names are in the inline namespace `holdfast::v<major>_<minor>`, so that two releases can be
/// loaded into one process. Users write `holdfast::`.
#define HOLDFAST_NAMESPACE holdfast::inline v0_1

/// Marks exported symbols. All other symbols are hidden.
#define HOLDFAST_API __attribute__((visibility("default")))
