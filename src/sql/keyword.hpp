#pragma once

/// \file
/// Looks at the keywords of SQL text without parsing it. Keywords are passed in upper case.

#include <holdfast/version.hpp>

#include "sql/public_names.hpp"

#include <algorithm>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::sql {

[[nodiscard]] constexpr bool equals_ignoring_case(char c, char upper) noexcept {
  return (c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c) == upper;
}

[[nodiscard]] inline bool starts_with_keyword(std::string_view text, std::string_view keyword) {
  return std::ranges::equal(text.substr(0, keyword.size()), keyword, equals_ignoring_case);
}

[[nodiscard]] inline bool contains_keyword(std::string_view text, std::string_view keyword) {
  return !std::ranges::search(text, keyword, equals_ignoring_case).empty();
}

/// Removes the separators before the first keyword.
[[nodiscard]] inline std::string_view from_first_keyword(std::string_view text,
                                                         std::string_view separators) {
  return text.substr(std::min(text.find_first_not_of(separators), text.size()));
}

}  // namespace HOLDFAST_NAMESPACE::detail::sql
