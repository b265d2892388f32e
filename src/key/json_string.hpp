#pragma once

/// \file
/// Text as a JSON string.

#include <holdfast/version.hpp>

#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::key {

/// Appends the text in double quotes. Escapes control characters, and the characters that some
/// readers take for a line end (U+0085, U+2028, U+2029), so that the result is always one line.
HOLDFAST_API void append_json_string(std::string& out, std::string_view text);

/// The same for paths and messages. Text of more than 64 code points is cut and ends with `...`.
[[nodiscard]] HOLDFAST_API std::string quote(std::string_view text);

}  // namespace HOLDFAST_NAMESPACE::detail::key
