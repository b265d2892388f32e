#include "key/digest.hpp"

#include <holdfast/error.hpp>

#include <openssl/evp.h>

namespace HOLDFAST_NAMESPACE::key {

namespace {

/// libsodium picks its fastest code only once it was initialised; without this BLAKE2b takes half as long again.
void ensure_sodium() {
  static const int ready = sodium_init();
  if (ready < 0) throw error(errc::unavailable, "libsodium could not be initialised: no source of randomness; check /dev/urandom");
}

const unsigned char* data_of(std::string_view bytes) noexcept { return reinterpret_cast<const unsigned char*>(bytes.data()); }

void require(bool good, const char* what) {
  if (!good) throw error(errc::internal, std::string(what) + " failed");
}

}  // namespace

digest256 blake2b_256(std::string_view bytes) {
  ensure_sodium();
  digest256 digest;
  crypto_generichash(digest.data(), digest.size(), data_of(bytes), bytes.size(), nullptr, 0);
  return digest;
}

void blake2b_256_stream::drain(void* self, std::string_view piece) {
  auto& stream = *static_cast<blake2b_256_stream*>(self);
  if (!stream.started_) {
    ensure_sodium();
    crypto_generichash_init(&stream.state_, nullptr, 0, digest256().size());
    stream.started_ = true;
  }
  crypto_generichash_update(&stream.state_, data_of(piece), piece.size());
}

digest256 blake2b_256_stream::finish(output& out) {
  if (!out.drained()) return blake2b_256(out.gathered());
  out.flush();
  digest256 digest;
  crypto_generichash_final(&state_, digest.data(), digest.size());
  return digest;
}

digest128 blake2b_128(std::string_view a, std::string_view b, std::string_view key) {
  ensure_sodium();
  digest128 digest;
  crypto_generichash_state state;
  require(crypto_generichash_init(&state, key.empty() ? nullptr : data_of(key), key.size(), digest.size()) == 0, "BLAKE2b");
  crypto_generichash_update(&state, data_of(a), a.size());
  crypto_generichash_update(&state, data_of(b), b.size());
  crypto_generichash_final(&state, digest.data(), digest.size());
  return digest;
}

std::array<unsigned char, 2> blake2b_16(std::string_view bytes) {
  ensure_sodium();
  std::array<unsigned char, 2> digest;
  require(crypto_generichash(digest.data(), digest.size(), data_of(bytes), bytes.size(), nullptr, 0) == 0, "BLAKE2b with a 2-byte digest");
  return digest;
}

namespace {

/// Fetched once: looking it up by name at every use costs as much as hashing.
const EVP_MD* md5() {
  static const EVP_MD* const algorithm = EVP_MD_fetch(nullptr, "MD5", nullptr);
  if (algorithm == nullptr) {
    throw error(errc::unavailable, "the system's cryptographic policy has no MD5; choose row_hash::blake2b for this point");
  }
  return algorithm;
}

}  // namespace

/// One context a thread. A user's own holdfast_key may make a key while one is being made: the inner one then gets a context of its own.
struct md5_stream::kept_context {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  bool taken = false;

  kept_context() = default;
  kept_context(const kept_context&) = delete;
  kept_context& operator=(const kept_context&) = delete;
  ~kept_context() { EVP_MD_CTX_free(context); }
};

void md5_stream::start() {
  thread_local kept_context kept;
  if (kept.taken) {
    context_ = EVP_MD_CTX_new();
  } else {
    kept.taken = true;
    kept_ = &kept;
    context_ = kept.context;
  }
  require(context_ != nullptr && EVP_DigestInit_ex2(context_, md5(), nullptr) == 1, "MD5");
}

md5_stream::~md5_stream() {
  if (kept_ != nullptr) kept_->taken = false;
  else EVP_MD_CTX_free(context_);
}

void md5_stream::drain(void* self, std::string_view piece) {
  auto& stream = *static_cast<md5_stream*>(self);
  if (stream.context_ == nullptr) stream.start();
  require(EVP_DigestUpdate(stream.context_, piece.data(), piece.size()) == 1, "MD5");
}

digest128 md5_stream::finish(output& out) {
  out.flush();
  if (context_ == nullptr) start();  // nothing was written
  digest128 digest;
  require(EVP_DigestFinal_ex(context_, digest.data(), nullptr) == 1, "MD5");
  return digest;
}

void to_hex(const unsigned char* bytes, std::size_t count, char* to) noexcept {
  static constexpr char digits[] = "0123456789abcdef";
  for (std::size_t i = 0; i < count; ++i) {
    *to++ = digits[bytes[i] >> 4U];
    *to++ = digits[bytes[i] & 15U];
  }
}

std::string to_hex(std::string_view bytes) {
  std::string text(bytes.size() * 2, '\0');
  to_hex(data_of(bytes), bytes.size(), text.data());
  return text;
}

}  // namespace HOLDFAST_NAMESPACE::key
