#pragma once

/// \file
/// AES-256-GCM with a nonce of the caller's choice. Private, because a nonce must not be used
/// twice; value_cipher is the public interface.

#include <holdfast/cachekit/encryption.hpp>
#include <holdfast/version.hpp>

#include "base/aes_gcm.hpp"
#include "base/nonce_source.hpp"

#include <cstddef>
#include <optional>
#include <span>

namespace HOLDFAST_NAMESPACE::detail::cachekit {

using namespace holdfast::key;

/// Size of a sealed value beyond its plaintext: nonce and tag.
inline constexpr std::size_t seal_overhead = sizeof(nonce) + aes_gcm::tag_size;

/// Returns nonce, ciphertext and tag. Do not use a nonce twice with one key. Exported for the
/// tests: published vectors have fixed nonces.
[[nodiscard]] HOLDFAST_API byte_string seal_with_nonce(const derived_key& key,
                                                       const nonce& unique_nonce,
                                                       std::span<const std::byte> plaintext,
                                                       std::span<const std::byte> associated);

/// Returns the plaintext, or nullopt if the tag does not match. `sealed` has at least seal_overhead
/// bytes.
[[nodiscard]] std::optional<byte_string> open_with_key(const derived_key& key,
                                                       std::span<const std::byte> sealed,
                                                       std::span<const std::byte> associated);

}  // namespace HOLDFAST_NAMESPACE::detail::cachekit
