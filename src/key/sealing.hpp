#pragma once

/// \file
/// AES-256-GCM with everything given: what value_cipher is built on. Choosing
/// a nonce is left to the caller, which is why this is not public.

#include <holdfast/key/encryption.hpp>
#include <holdfast/version.hpp>

#include "base/aes_gcm.hpp"
#include "base/nonce_source.hpp"

#include <cstddef>
#include <optional>
#include <span>

namespace HOLDFAST_NAMESPACE::key {

inline constexpr std::size_t seal_overhead = sizeof(nonce) + aes_gcm::tag_size;

/// Nonce, ciphertext, tag. Never call it twice with one key and one nonce. Exported for the tests: published vectors fix the nonce.
[[nodiscard]] HOLDFAST_API byte_string seal_with_nonce(const derived_key& key, const nonce& once, std::span<const std::byte> plaintext,
                                                       std::span<const std::byte> associated);

/// Empty when the tag does not fit: nothing of what was decrypted leaves. At least seal_overhead bytes.
[[nodiscard]] std::optional<byte_string> open_with_key(const derived_key& key, std::span<const std::byte> sealed,
                                                       std::span<const std::byte> associated);

}  // namespace HOLDFAST_NAMESPACE::key
