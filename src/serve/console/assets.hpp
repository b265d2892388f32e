#pragma once

/// \file
/// The files of the console, which the build embeds into the program: HoldfastEmbed.cmake.

#include <holdfast/version.hpp>

#include <span>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// A file, unchanged or compressed with gzip. The tag is the SHA-256 of these bytes, in quotes.
struct encoded_content {
  std::string_view bytes{};
  std::string_view tag{};
};

struct console_asset {
  /// `index.html`
  std::string_view name{};
  std::string_view media_type{};
  encoded_content plain{};
  encoded_content gzip{};
};

/// In the order of their names.
[[nodiscard]] std::span<const console_asset> console_assets() noexcept;

}  // namespace HOLDFAST_NAMESPACE::detail::serve
