#include "base/aes_gcm.hpp"

#include <holdfast/error.hpp>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/rand.h>

#include <array>
#include <cstring>

namespace HOLDFAST_NAMESPACE {

namespace {

const unsigned char* octets(std::span<const std::byte> bytes) { return reinterpret_cast<const unsigned char*>(bytes.data()); }
unsigned char* octets(std::byte* bytes) { return reinterpret_cast<unsigned char*>(bytes); }

void require(bool done) {
  if (!done) throw error(errc::internal, "OpenSSL could not run AES-GCM; is its default provider loaded?");
}

const EVP_CIPHER* cipher_of(std::size_t key_size) {
  switch (key_size) {
    case 16:
      return EVP_aes_128_gcm();
    case 24:
      return EVP_aes_192_gcm();
    case 32:
      return EVP_aes_256_gcm();
    default:
      throw error(errc::invalid_argument, "an AES key has 16, 24 or 32 bytes");
  }
}

/// GCM holds no bytes back: the last step writes none, but wants somewhere to write them.
bool finished(EVP_CIPHER_CTX* with) {
  int written = 0;
  std::array<unsigned char, 16> nothing;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  return EVP_CipherFinal_ex(with, nothing.data(), &written) == 1;
}

/// A tag as OpenSSL is given or asked for one. EVP_CIPHER_CTX_ctrl would make the same of it, and take longer.
class tag_parameter {
 public:
  explicit tag_parameter(std::byte* tag)
      : all_{OSSL_PARAM_construct_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, tag, aes_gcm::tag_size), OSSL_PARAM_construct_end()} {}
  [[nodiscard]] OSSL_PARAM* data() noexcept { return all_.data(); }

 private:
  std::array<OSSL_PARAM, 2> all_;
};

}  // namespace

aes_gcm::aes_gcm(std::span<const std::byte> key) : with_(EVP_CIPHER_CTX_new()) {
  require(with_ != nullptr);
  require(EVP_CipherInit_ex(with_.get(), cipher_of(key.size()), nullptr, octets(key), nullptr, 1) == 1);
}

aes_gcm::aes_gcm(const aes_gcm& ready) : with_(EVP_CIPHER_CTX_new()), nonce_size_(ready.nonce_size_) {
  require(with_ != nullptr && EVP_CIPHER_CTX_copy(with_.get(), ready.with_.get()) == 1);
}

aes_gcm::~aes_gcm() = default;

void aes_gcm::forget::operator()(evp_cipher_ctx_st* context) const noexcept { EVP_CIPHER_CTX_free(context); }

void aes_gcm::begin(bool seals, std::span<const std::byte> nonce, std::span<const std::byte> associated) {
  if (nonce_size_ != nonce.size()) {
    require(EVP_CIPHER_CTX_ctrl(with_.get(), EVP_CTRL_AEAD_SET_IVLEN, static_cast<int>(nonce.size()), nullptr) == 1);
    nonce_size_ = nonce.size();
  }
  require(EVP_CipherInit_ex2(with_.get(), nullptr, nullptr, octets(nonce), seals ? 1 : 0, nullptr) == 1);
  if (associated.empty()) return;
  int written = 0;
  require(EVP_CipherUpdate(with_.get(), nullptr, &written, octets(associated), static_cast<int>(associated.size())) == 1);
}

void aes_gcm::seal(std::span<const std::byte> nonce, std::span<const std::byte> associated) { begin(true, nonce, associated); }

void aes_gcm::open(std::span<const std::byte> nonce, std::span<const std::byte> associated) { begin(false, nonce, associated); }

void aes_gcm::update(std::span<const std::byte> from, std::byte* to) {
  if (from.empty()) return;
  int written = 0;
  require(EVP_CipherUpdate(with_.get(), octets(to), &written, octets(from), static_cast<int>(from.size())) == 1);
}

void aes_gcm::finish(std::span<std::byte, tag_size> tag) {
  require(finished(with_.get()));
  require(EVP_CIPHER_CTX_get_params(with_.get(), tag_parameter(tag.data()).data()) == 1);
}

bool aes_gcm::verify(tag_span tag) {
  std::array<std::byte, tag_size> expected;            // NOLINT(cppcoreguidelines-pro-type-member-init): filled at once
  std::memcpy(expected.data(), tag.data(), tag_size);  // OpenSSL's parameter is not const, although it only reads it
  require(EVP_CIPHER_CTX_set_params(with_.get(), tag_parameter(expected.data()).data()) == 1);
  return finished(with_.get());
}

void fill_randomly(std::span<std::byte> bytes) {
  if (RAND_bytes(octets(bytes.data()), static_cast<int>(bytes.size())) != 1) {
    throw error(errc::unavailable, "the system has no random bytes to give", {.transient = true});
  }
}

void wipe(std::span<std::byte> bytes) noexcept { OPENSSL_cleanse(bytes.data(), bytes.size()); }

}  // namespace HOLDFAST_NAMESPACE
