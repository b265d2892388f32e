#pragma once

/// \file
/// Base64 as RFC 4648 has it, with padding and nothing else in between. Long texts go through the processor's vectors: beside AES, which has
/// instructions of its own, a loop over single characters would take most of the time.

#include <holdfast/version.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace HOLDFAST_NAMESPACE {

/// How many characters so many bytes become.
[[nodiscard]] constexpr std::size_t base64_size(std::size_t bytes) noexcept { return (bytes + 2) / 3 * 4; }

/// Which instructions: the best that this processor has, vectors of 32 bytes at most, or none. For tests: all give the same.
enum class base64_by : std::uint8_t { best, halves, single };

/// Writes base64_size(from.size()) characters.
HOLDFAST_API void encode_base64(std::span<const std::byte> from, char* to, base64_by by = base64_by::best) noexcept;

/// How many bytes a text becomes, if it is Base64; nothing when its length or padding cannot be.
[[nodiscard]] constexpr std::optional<std::size_t> decoded_base64_size(std::string_view from) noexcept {
  if (from.size() % 4 != 0) return std::nullopt;
  if (from.empty()) return 0;
  const std::size_t padding = from.back() != '=' ? 0 : from[from.size() - 2] != '=' ? 1 : 2;
  return from.size() / 4 * 3 - padding;
}

/// Writes decoded_base64_size(from) bytes and says whether the text was Base64: no other characters, and no bits that would be lost.
/// What was written before a wrong character stays.
[[nodiscard]] HOLDFAST_API bool decode_base64(std::string_view from, std::byte* to, base64_by by = base64_by::best) noexcept;

}  // namespace HOLDFAST_NAMESPACE
