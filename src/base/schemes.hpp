#pragma once

/// \file
/// Which kinds of databases a process may open: the variable HOLDFAST_SCHEMES.

#include <holdfast/version.hpp>

#include <string_view>

namespace HOLDFAST_NAMESPACE {

/// Throws errc::invalid_argument when HOLDFAST_SCHEMES is set and does not list the scheme of the URL. The list has the schemes as URLs
/// write them, separated by commas: `postgresql,rediss+cluster`. `memory:` is always allowed: it reaches nothing outside the process.
HOLDFAST_API void check_scheme(std::string_view url);

}  // namespace HOLDFAST_NAMESPACE
