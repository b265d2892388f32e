#pragma once

/// \file
/// File paths as text, in the form of Python.

#include <holdfast/key/value.hpp>
#include <holdfast/version.hpp>

#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::key {

using namespace holdfast::key;

/// A path as Python's pathlib normalises it and `as_posix()` prints it: `//` and `/.` become `/`,
/// `..` is kept, a trailing slash is removed, an empty path becomes `.`. Windows drives and shares
/// are kept; backslashes become slashes.
[[nodiscard]] std::string posix_text(std::string_view path, path::flavour flavour);

}  // namespace HOLDFAST_NAMESPACE::detail::key
