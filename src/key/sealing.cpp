#include "key/sealing.hpp"

#include <algorithm>

namespace HOLDFAST_NAMESPACE::key {

byte_string seal_with_nonce(const derived_key& key, const nonce& once, std::span<const std::byte> plaintext,
                            std::span<const std::byte> associated) {
  byte_string sealed(plaintext.size() + seal_overhead);
  std::copy(once.begin(), once.end(), sealed.begin());
  const aes_gcm cipher(key.reveal());
  auto run = cipher.seal(once, associated);
  run.update(plaintext, sealed.data() + once.size());
  run.finish(std::span(sealed).last<aes_gcm::tag_size>());
  return sealed;
}

std::optional<byte_string> open_with_key(const derived_key& key, std::span<const std::byte> sealed, std::span<const std::byte> associated) {
  const auto ciphertext = sealed.subspan(sizeof(nonce), sealed.size() - seal_overhead);
  byte_string plaintext(ciphertext.size());
  const aes_gcm cipher(key.reveal());
  auto run = cipher.open(sealed.first(sizeof(nonce)), associated);
  run.update(ciphertext, plaintext.data());
  if (run.verify(sealed.last<aes_gcm::tag_size>())) return plaintext;
  wipe(plaintext);
  return std::nullopt;
}

}  // namespace HOLDFAST_NAMESPACE::key
