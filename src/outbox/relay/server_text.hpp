#pragma once

#include <holdfast/version.hpp>

#include <algorithm>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::outbox {

/// What a broker answered, for reasons and log lines: printable ASCII, and short.
[[nodiscard]] inline std::string printable_reason(std::string_view text) {
  constexpr std::size_t longest = 300;
  std::string result(text.substr(0, longest));
  std::ranges::replace_if(result, [](unsigned char c) { return c < 0x20 || c >= 0x7F; }, '?');
  return result;
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
