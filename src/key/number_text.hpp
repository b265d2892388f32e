#pragma once

/// \file
/// Numbers as text, in the forms of Java and Python.

#include <holdfast/version.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::key {

/// Prints a number as Java does (JDK 19 and later): `1.0`, `1.0E7`, `4.9E-324`, `NaN`, `-0.0`.
/// Writes at most 26 characters to `out` and returns their count.
[[nodiscard]] std::size_t java_text(double v, char* out) noexcept;
/// The same with the digits of a float: `0.1`, not `0.10000000149011612`.
[[nodiscard]] std::size_t java_text(float v, char* out) noexcept;

/// Java and Python print decimals alike, but only Python has NaN, infinities and a negative zero.
enum class decimal_rules { java, python };

/// A decimal as Java's BigDecimal or Python's Decimal prints it: the scale is kept, and an exponent
/// is printed only where they print one. Returns nullopt if the text is not a decimal.
[[nodiscard]] std::optional<std::string> decimal_text(std::string_view text, decimal_rules rules);

/// An integer without `+` and leading zeros. Returns nullopt if the text is not an integer.
[[nodiscard]] std::optional<std::string> integer_text(std::string_view text);

}  // namespace HOLDFAST_NAMESPACE::detail::key
