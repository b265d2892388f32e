#include "cachekit/sealing.hpp"

#include <algorithm>

namespace HOLDFAST_NAMESPACE::detail::cachekit {

byte_string seal_with_nonce(const derived_key& key, const nonce& unique_nonce,
                            std::span<const std::byte> plaintext,
                            std::span<const std::byte> associated) {
  byte_string sealed(plaintext.size() + seal_overhead);
  std::copy(unique_nonce.begin(), unique_nonce.end(), sealed.begin());
  aes_gcm cipher(key.reveal());
  cipher.seal(unique_nonce, associated);
  cipher.update(plaintext, sealed.data() + unique_nonce.size());
  cipher.finish(std::span(sealed).last<aes_gcm::tag_size>());
  return sealed;
}

std::optional<byte_string> open_with_key(const derived_key& key, std::span<const std::byte> sealed,
                                         std::span<const std::byte> associated) {
  const auto ciphertext = sealed.subspan(sizeof(nonce), sealed.size() - seal_overhead);
  byte_string plaintext(ciphertext.size());
  aes_gcm cipher(key.reveal());
  cipher.open(sealed.first(sizeof(nonce)), associated);
  cipher.update(ciphertext, plaintext.data());
  if (cipher.verify(sealed.last<aes_gcm::tag_size>())) return plaintext;
  wipe(plaintext);
  return std::nullopt;
}

}  // namespace HOLDFAST_NAMESPACE::detail::cachekit
