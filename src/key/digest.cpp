// Uses OpenSSL's older MD5 functions: EVP allocates and wipes a context for every key, which takes
// longer than the hash itself.
#define OPENSSL_API_COMPAT 10100

#include "key/digest.hpp"

#include <holdfast/error.hpp>

#include <openssl/evp.h>
#include <openssl/md5.h>

namespace HOLDFAST_NAMESPACE::detail::key {

namespace {

/// libsodium selects its fastest code when it is initialised. Without it BLAKE2b takes 50 % longer.
void ensure_sodium() {
  static const int ready = sodium_init();
  if (ready < 0)
    throw error(errc::unavailable,
                "libsodium could not be initialised: no source of randomness; check /dev/urandom");
}

const unsigned char* data_of(std::string_view bytes) noexcept {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

void require_success(int result, const char* function) {
  if (result != 0) throw error(errc::internal, std::string(function) + " failed");
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
  if (!out.drained()) return blake2b_256(out.buffered());
  out.flush();
  digest256 digest;
  crypto_generichash_final(&state_, digest.data(), digest.size());
  return digest;
}

digest128 blake2b_128(std::string_view first, std::string_view second, std::string_view key) {
  ensure_sodium();
  digest128 digest;
  crypto_generichash_state state;
  require_success(crypto_generichash_init(&state, key.empty() ? nullptr : data_of(key), key.size(),
                                          digest.size()),
                  "BLAKE2b");
  crypto_generichash_update(&state, data_of(first), first.size());
  crypto_generichash_update(&state, data_of(second), second.size());
  crypto_generichash_final(&state, digest.data(), digest.size());
  return digest;
}

std::array<unsigned char, 2> blake2b_16(std::string_view bytes) {
  ensure_sodium();
  std::array<unsigned char, 2> digest;
  require_success(
      crypto_generichash(digest.data(), digest.size(), data_of(bytes), bytes.size(), nullptr, 0),
      "BLAKE2b with a 2-byte digest");
  return digest;
}

namespace {

/// A system's policy may forbid MD5. The functions below would ignore that, so ask EVP once.
void require_md5() {
  static const bool allowed = [] {
    EVP_MD* const md5 = EVP_MD_fetch(nullptr, "MD5", nullptr);
    EVP_MD_free(md5);
    return md5 != nullptr;
  }();
  if (!allowed)
    throw error(
        errc::unavailable,
        "the system's cryptographic policy forbids MD5; choose row_hash::blake2b for this point");
}

MD5_CTX* context_of(void* bytes) noexcept { return static_cast<MD5_CTX*>(bytes); }

}  // namespace

md5_stream::md5_stream() {
  static_assert(sizeof(context) >= sizeof(MD5_CTX) && alignof(context) >= alignof(MD5_CTX));
  require_md5();
  MD5_Init(context_of(&context_));
}

void md5_stream::drain(void* self, std::string_view piece) {
  MD5_Update(context_of(&static_cast<md5_stream*>(self)->context_), piece.data(), piece.size());
}

digest128 md5_stream::finish(output& out) {
  out.flush();
  digest128 digest;
  MD5_Final(digest.data(), context_of(&context_));
  return digest;
}

}  // namespace HOLDFAST_NAMESPACE::detail::key
