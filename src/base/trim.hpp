#pragma once

#include <holdfast/version.hpp>

#include <algorithm>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail {

/// Returns the text without white space at both ends. Not affected by the locale.
[[nodiscard]] constexpr std::string_view trimmed(std::string_view text) noexcept {
  constexpr std::string_view spaces = " \t\r\n\v\f";
  text.remove_prefix(std::min(text.find_first_not_of(spaces), text.size()));
  return text.substr(0, text.find_last_not_of(spaces) + 1);
}

}  // namespace HOLDFAST_NAMESPACE::detail
