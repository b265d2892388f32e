#pragma once

#include <holdfast/version.hpp>

#include <cstddef>
#include <string_view>

namespace HOLDFAST_NAMESPACE {

/// Well-formed UTF-8: no overlong form, no surrogate, nothing beyond U+10FFFF.
[[nodiscard]] HOLDFAST_API bool is_utf8(std::string_view text) noexcept;

/// How many code points a well-formed text has.
[[nodiscard]] HOLDFAST_API std::size_t count_code_points(std::string_view text) noexcept;

/// How many bytes the first `count` code points of a well-formed text take.
[[nodiscard]] HOLDFAST_API std::size_t code_point_prefix(std::string_view text, std::size_t count) noexcept;

/// Writes a code point into `to` (4 bytes of room) and returns its length; 0 when it is a surrogate or beyond U+10FFFF.
[[nodiscard]] HOLDFAST_API std::size_t encode_utf8(char32_t code_point, char* to) noexcept;

}  // namespace HOLDFAST_NAMESPACE
