// The plain MD5 functions: EVP allocates and wipes a context for every key, which costs more than the hash itself.
#define OPENSSL_API_COMPAT 10100

#include "key/digest.hpp"

#include <holdfast/error.hpp>

#include <openssl/evp.h>
#include <openssl/md5.h>

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

/// Asked once: a system may forbid MD5, and then we do not use it either.
void require_md5() {
  static const bool allowed = [] {
    EVP_MD* const found = EVP_MD_fetch(nullptr, "MD5", nullptr);
    EVP_MD_free(found);
    return found != nullptr;
  }();
  if (!allowed) throw error(errc::unavailable, "the system's cryptographic policy has no MD5; choose row_hash::blake2b for this point");
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

std::string to_hex(std::string_view bytes) {
  std::string text(bytes.size() * 2, '\0');
  to_hex(data_of(bytes), bytes.size(), text.data());
  return text;
}

}  // namespace HOLDFAST_NAMESPACE::key
