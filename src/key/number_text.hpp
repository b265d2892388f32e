#pragma once

#include <holdfast/version.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::key {

/// Numbers as Java prints them (JDK 19 and later): `1.0`, `1.0E7`, `4.9E-324`, `NaN`, `-0.0`. Writes at most 26 characters into `to`.
[[nodiscard]] std::size_t java_text(double v, char* to) noexcept;
/// With the digits of a float: `0.1`, not `0.10000000149011612`.
[[nodiscard]] std::size_t java_text(float v, char* to) noexcept;

/// A decimal as both Java's BigDecimal and Python's Decimal print it: scale kept, an exponent only where they use one.
/// NaN and infinities, and the sign of a zero, exist only in Python. Nothing when the text is not a decimal.
enum class decimal_rules { java, python };
[[nodiscard]] std::optional<std::string> decimal_text(std::string_view text, decimal_rules rules);

/// A whole number without `+` and leading zeros. Nothing when the text is not one.
[[nodiscard]] std::optional<std::string> integer_text(std::string_view text);

}  // namespace HOLDFAST_NAMESPACE::key
