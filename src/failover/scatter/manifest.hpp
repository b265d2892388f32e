#pragma once

#include <holdfast/version.hpp>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::failover {

/// A chunk of a manifest: the keys of some members of a list, in the order of the list. It is
/// stored as text, which fits into every payload column:
///
///     holdfast-manifest/1 <members of the list> <chunks of the manifest> <index of this chunk>
///     <key>
///     ...
struct manifest_chunk {
  std::size_t members = 0;  ///< number of members of the whole list
  std::size_t chunks = 1;
  std::size_t index = 0;
  std::vector<std::string> keys{};
  bool operator==(const manifest_chunk&) const = default;
};

/// PAYLOAD_CLASS of manifests. It is on no allowlist, so no point decodes a manifest as a value.
inline constexpr std::string_view manifest_class = "holdfast.manifest";
/// The rows of manifests have the name of the point with this suffix.
inline constexpr std::string_view manifest_suffix = "#list";
/// Maximum number of keys in a chunk, about 60 kB. The payload column of a table shared with Java
/// may be limited to 4,000 characters.
inline constexpr std::size_t manifest_chunk_keys = 1600;
inline constexpr std::size_t manifest_chunk_keys_java = 100;

[[nodiscard]] std::string write_manifest(std::size_t members, std::size_t chunks, std::size_t index,
                                         std::span<const std::string_view> keys);
/// Returns nothing if the text is not a valid chunk.
[[nodiscard]] std::optional<manifest_chunk> parse_manifest(std::string_view text);
/// The row key of a chunk. Chunk 0 is the head and has the key of the call.
[[nodiscard]] std::string manifest_key(std::string_view call_key, std::size_t index);

}  // namespace HOLDFAST_NAMESPACE::detail::failover
