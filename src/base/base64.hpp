#pragma once

/// \file
/// Base64 of RFC 4648, with padding and without line breaks. It uses vector instructions, because
/// sealed payloads are encoded right after AES: with OpenSSL's Base64, sealing 64 KiB takes 2.5
/// times as long, and with a plain table 1.7 times.

#include <holdfast/version.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail {

/// The number of characters that encode so many bytes.
[[nodiscard]] constexpr std::size_t base64_size(std::size_t bytes) noexcept {
  return (bytes + 2) / 3 * 4;
}

/// The instructions to use. All give the same result; only tests choose.
enum class base64_instructions : std::uint8_t { best, avx2, scalar };

/// Writes base64_size(bytes.size()) characters.
HOLDFAST_API void encode_base64(
    std::span<const std::byte> bytes, char* output,
    base64_instructions instructions = base64_instructions::best) noexcept;

/// The number of bytes that the text decodes to, or nullopt if its length is invalid.
[[nodiscard]] constexpr std::optional<std::size_t> decoded_base64_size(
    std::string_view text) noexcept {
  if (text.size() % 4 != 0) return std::nullopt;
  if (text.empty()) return 0;
  const std::size_t padding = text.back() != '=' ? 0 : text[text.size() - 2] != '=' ? 1 : 2;
  return text.size() / 4 * 3 - padding;
}

/// Writes decoded_base64_size(text) bytes. Returns false if the text is not Base64: it has other
/// characters, or bits after the last byte that are not zero. The output is then undefined.
[[nodiscard]] HOLDFAST_API bool decode_base64(
    std::string_view text, std::byte* output,
    base64_instructions instructions = base64_instructions::best) noexcept;

}  // namespace HOLDFAST_NAMESPACE::detail
