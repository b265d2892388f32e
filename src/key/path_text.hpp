#pragma once

#include <holdfast/key/value.hpp>
#include <holdfast/version.hpp>

#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::key {

/// A path as Python's pathlib normalises it and `as_posix()` prints it: `//` and `/.` collapsed, `..` kept, no trailing slash,
/// `.` for nothing; Windows drives and shares kept, backslashes turned.
[[nodiscard]] std::string posix_text(std::string_view path, path::flavour flavour);

}  // namespace HOLDFAST_NAMESPACE::key
