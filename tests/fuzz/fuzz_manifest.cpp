// Any text, read as a chunk of a manifest: refused, or a chunk that agrees with itself and is read
// again as it is written.

#include "failover/scatter/manifest.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void read(std::string_view text) {
  const auto chunk = holdfast::detail::failover::parse_manifest(text);
  if (!chunk) return;
  require(chunk->index < chunk->chunks && chunk->keys.size() <= chunk->members);
  require(chunk->chunks == 1 ? chunk->keys.size() == chunk->members
                             : chunk->chunks <= chunk->members && !chunk->keys.empty());
  require(std::ranges::none_of(chunk->keys, [](const std::string& key) {
    return key.empty() || key.find('\n') != std::string::npos;
  }));
  const std::vector<std::string_view> keys(chunk->keys.begin(), chunk->keys.end());
  require(holdfast::detail::failover::parse_manifest(holdfast::detail::failover::write_manifest(
              chunk->members, chunk->chunks, chunk->index, keys)) == chunk);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  read(text);
  read("holdfast-manifest/1 " + text);
  return 0;
}
