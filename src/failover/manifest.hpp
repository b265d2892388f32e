#pragma once

#include <holdfast/version.hpp>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE {

/// A part of a manifest: the keys of some members of a list, in the list's order. Plain text, so that any payload column holds it:
///
///     holdfast-manifest/1 <members of the list> <chunks of the manifest> <number of this one, from 0>
///     <key>
///     ...
struct manifest_chunk {
  std::size_t members = 0;  ///< of the whole list
  std::size_t chunks = 1;
  std::size_t index = 0;
  std::vector<std::string> keys{};
  bool operator==(const manifest_chunk&) const = default;
};

/// Their PAYLOAD_CLASS. No point can decode it by mistake.
inline constexpr std::string_view manifest_class = "holdfast.manifest";
/// What is added to a point's name to make that of its manifests' rows.
inline constexpr std::string_view manifest_suffix = "#list";
/// Keys in one chunk: some 60 kB; a table shared with Java may hold 4,000 characters.
inline constexpr std::size_t manifest_chunk_keys = 1600;
inline constexpr std::size_t manifest_chunk_keys_java = 100;

[[nodiscard]] std::string write_manifest(std::size_t members, std::size_t chunks, std::size_t index,
                                         std::span<const std::string_view> keys);
/// Nothing when it is no chunk of a manifest, or contradicts itself.
[[nodiscard]] std::optional<manifest_chunk> parse_manifest(std::string_view text);
/// The row key of a chunk. The first is the head, and has the key of the call.
[[nodiscard]] std::string manifest_key(std::string_view call_key, std::size_t index);

}  // namespace HOLDFAST_NAMESPACE
