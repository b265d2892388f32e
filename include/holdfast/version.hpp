#pragma once

/// \file
/// The version of the library: the only place it is written. CMake, the
/// command line, pkg-config and the change log check all read it from here.

#define HOLDFAST_VERSION_MAJOR 0
#define HOLDFAST_VERSION_MINOR 1
#define HOLDFAST_VERSION_PATCH 0
#define HOLDFAST_VERSION_STRING "0.1.0"

/// Every symbol lives in `holdfast::v<major>_<minor>`, so that two releases can be loaded into one process.
/// Users write `holdfast::`; the inline namespace is invisible to them.
#define HOLDFAST_NAMESPACE holdfast::inline v0_1

/// Marks what leaves the library; everything else is hidden.
#define HOLDFAST_API __attribute__((visibility("default")))
