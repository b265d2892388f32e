#include "base/aes_gcm.hpp"

#include <holdfast/error.hpp>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/rand.h>

#include <array>
#include <cstring>

namespace HOLDFAST_NAMESPACE::detail {

namespace {

const unsigned char* octets(std::span<const std::byte> bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}
unsigned char* octets(std::byte* bytes) { return reinterpret_cast<unsigned char*>(bytes); }

void require(bool done) {
  if (!done)
    throw error(errc::internal, "OpenSSL could not run AES-GCM; is its default provider loaded?");
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

/// Ends a message. GCM writes no bytes in this step, but OpenSSL requires a buffer.
bool finish_message(EVP_CIPHER_CTX* context) {
  int written = 0;
  std::array<unsigned char, 16> unused;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  return EVP_CipherFinal_ex(context, unused.data(), &written) == 1;
}

/// The parameter list that reads or sets a tag. EVP_CIPHER_CTX_ctrl would build the same list, more
/// slowly.
class tag_parameter {
 public:
  explicit tag_parameter(std::byte* tag)
      : parameters_{
            OSSL_PARAM_construct_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, tag, aes_gcm::tag_size),
            OSSL_PARAM_construct_end()} {}
  [[nodiscard]] OSSL_PARAM* data() noexcept { return parameters_.data(); }

 private:
  std::array<OSSL_PARAM, 2> parameters_;
};

}  // namespace

aes_gcm::aes_gcm(std::span<const std::byte> key) : context_(EVP_CIPHER_CTX_new()) {
  require(context_ != nullptr);
  require(EVP_CipherInit_ex(context_.get(), cipher_of(key.size()), nullptr, octets(key), nullptr,
                            1) == 1);
}

aes_gcm::aes_gcm(const aes_gcm& other)
    : context_(EVP_CIPHER_CTX_new()), nonce_size_(other.nonce_size_) {
  require(context_ != nullptr && EVP_CIPHER_CTX_copy(context_.get(), other.context_.get()) == 1);
}

aes_gcm::~aes_gcm() = default;

void aes_gcm::context_deleter::operator()(evp_cipher_ctx_st* context) const noexcept {
  EVP_CIPHER_CTX_free(context);
}

void aes_gcm::begin(bool encrypt, std::span<const std::byte> nonce,
                    std::span<const std::byte> associated) {
  if (nonce_size_ != nonce.size()) {
    require(EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_AEAD_SET_IVLEN,
                                static_cast<int>(nonce.size()), nullptr) == 1);
    nonce_size_ = nonce.size();
  }
  require(EVP_CipherInit_ex2(context_.get(), nullptr, nullptr, octets(nonce), encrypt ? 1 : 0,
                             nullptr) == 1);
  if (associated.empty()) return;
  int written = 0;
  require(EVP_CipherUpdate(context_.get(), nullptr, &written, octets(associated),
                           static_cast<int>(associated.size())) == 1);
}

void aes_gcm::seal(std::span<const std::byte> nonce, std::span<const std::byte> associated) {
  begin(true, nonce, associated);
}

void aes_gcm::open(std::span<const std::byte> nonce, std::span<const std::byte> associated) {
  begin(false, nonce, associated);
}

void aes_gcm::update(std::span<const std::byte> input, std::byte* output) {
  if (input.empty()) return;
  int written = 0;
  require(EVP_CipherUpdate(context_.get(), octets(output), &written, octets(input),
                           static_cast<int>(input.size())) == 1);
}

void aes_gcm::finish(std::span<std::byte, tag_size> tag) {
  require(finish_message(context_.get()));
  require(EVP_CIPHER_CTX_get_params(context_.get(), tag_parameter(tag.data()).data()) == 1);
}

bool aes_gcm::verify(tag_span tag) {
  // A copy, because the parameter of OpenSSL is not const, although OpenSSL only reads it.
  std::array<std::byte, tag_size> expected;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  std::memcpy(expected.data(), tag.data(), tag_size);
  require(EVP_CIPHER_CTX_set_params(context_.get(), tag_parameter(expected.data()).data()) == 1);
  return finish_message(context_.get());
}

void fill_random(std::span<std::byte> bytes) {
  if (RAND_bytes(octets(bytes.data()), static_cast<int>(bytes.size())) != 1) {
    throw error(errc::unavailable, "the system cannot provide random bytes; try again",
                {.transient = true});
  }
}

void wipe(std::span<std::byte> bytes) noexcept { OPENSSL_cleanse(bytes.data(), bytes.size()); }

}  // namespace HOLDFAST_NAMESPACE::detail
