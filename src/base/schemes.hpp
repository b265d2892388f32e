#pragma once

/// \file
/// The environment variable HOLDFAST_SCHEMES: the kinds of databases that a process may open.

#include <holdfast/version.hpp>

#include <string_view>

namespace HOLDFAST_NAMESPACE::detail {

/// Throws errc::invalid_argument if HOLDFAST_SCHEMES is set and does not list the scheme of the
/// URL. The list has the schemes as in URLs, separated by commas: `postgresql,rediss+cluster`.
/// `memory:` is always allowed, because it reaches nothing outside the process.
HOLDFAST_API void check_scheme(std::string_view url);

}  // namespace HOLDFAST_NAMESPACE::detail
