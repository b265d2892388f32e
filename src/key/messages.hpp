#pragma once

/// \file
/// Error messages that several files of this folder use.

#include <holdfast/version.hpp>

#include <cstddef>
#include <string>

namespace HOLDFAST_NAMESPACE::detail::key {

inline constexpr const char* ill_formed_text_message =
    "the text is not well-formed UTF-8; pass it as bytes, or repair it";
inline constexpr const char* not_a_character_message =
    "not a Unicode character: a surrogate or beyond U+10FFFF";
inline constexpr const char* not_a_decimal_message =
    "not a decimal number; expected digits like 1.10 or 1E-7";
inline constexpr const char* big_integer_message = "integer out of 64-bit range; pass it as text";

[[nodiscard]] inline std::string too_deep_message(std::size_t max_levels) {
  return "nested deeper than " + std::to_string(max_levels) +
         " levels; flatten the value or hash the inner part first";
}

}  // namespace HOLDFAST_NAMESPACE::detail::key
