#include "key/sealing.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>
#include <memory>

namespace HOLDFAST_NAMESPACE::key {

namespace {

struct free_cipher_context {
  void operator()(EVP_CIPHER_CTX* context) const noexcept { EVP_CIPHER_CTX_free(context); }  // wipes the key schedule
};
using cipher_context = std::unique_ptr<EVP_CIPHER_CTX, free_cipher_context>;

const unsigned char* octets(std::span<const std::byte> bytes) { return reinterpret_cast<const unsigned char*>(bytes.data()); }
unsigned char* octets(std::span<std::byte> bytes) { return reinterpret_cast<unsigned char*>(bytes.data()); }

void require(bool done) {
  if (!done) throw error(errc::internal, "OpenSSL could not run AES-256-GCM; is its default provider loaded?");
}

cipher_context new_context(const derived_key& key, std::span<const std::byte> once, int encrypt) {
  cipher_context context(EVP_CIPHER_CTX_new());
  require(context != nullptr &&
          EVP_CipherInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, octets(key.reveal()), octets(once), encrypt) == 1);
  return context;
}

/// One direction of the cipher: associated data in, then the bytes. The callers have checked that the sizes fit into int.
void run(EVP_CIPHER_CTX* context, std::span<const std::byte> associated, std::span<const std::byte> from, std::span<std::byte> to) {
  int written = 0;
  require(EVP_CipherUpdate(context, nullptr, &written, octets(associated), static_cast<int>(associated.size())) == 1);
  if (from.empty()) return;
  require(EVP_CipherUpdate(context, octets(to), &written, octets(from), static_cast<int>(from.size())) == 1);
}

/// GCM holds no bytes back: the last step writes none, but wants somewhere to write them.
bool finish(EVP_CIPHER_CTX* context) {
  int written = 0;
  unsigned char nothing[16];
  return EVP_CipherFinal_ex(context, nothing, &written) == 1;
}

}  // namespace

byte_string seal_with_nonce(const derived_key& key, const nonce& once, std::span<const std::byte> plaintext,
                            std::span<const std::byte> associated) {
  byte_string sealed(plaintext.size() + seal_overhead);
  const std::span<std::byte> out(sealed);
  const auto context = new_context(key, once, 1);
  std::copy(once.begin(), once.end(), sealed.begin());
  run(context.get(), associated, plaintext, out.subspan(once.size(), plaintext.size()));
  require(finish(context.get()));
  require(EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_GET_TAG, static_cast<int>(tag_size), octets(out.last(tag_size))) == 1);
  return sealed;
}

std::optional<byte_string> open_with_key(const derived_key& key, std::span<const std::byte> sealed, std::span<const std::byte> associated) {
  const auto ciphertext = sealed.subspan(sizeof(nonce), sealed.size() - seal_overhead);
  std::array<std::byte, tag_size> tag{};
  std::ranges::copy(sealed.last(tag_size), tag.begin());
  byte_string plaintext(ciphertext.size());
  const auto context = new_context(key, sealed.first(sizeof(nonce)), 0);
  run(context.get(), associated, ciphertext, plaintext);
  require(EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_SET_TAG, static_cast<int>(tag_size), tag.data()) == 1);
  if (!finish(context.get())) {
    OPENSSL_cleanse(plaintext.data(), plaintext.size());
    return std::nullopt;
  }
  return plaintext;
}

}  // namespace HOLDFAST_NAMESPACE::key
