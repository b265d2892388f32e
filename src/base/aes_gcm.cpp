#include "base/aes_gcm.hpp"

#include <holdfast/error.hpp>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

namespace HOLDFAST_NAMESPACE {

namespace {

constexpr std::size_t usual_nonce = 12;
constexpr std::size_t most_spares = 8;  // what more run at once is made anew, and freed

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
  std::array<unsigned char, 16> nothing{};
  return EVP_CipherFinal_ex(with, nothing.data(), &written) == 1;
}

}  // namespace

struct aes_gcm::context {
  context() : with(EVP_CIPHER_CTX_new()) { require(with != nullptr); }
  context(const context&) = delete;
  context& operator=(const context&) = delete;
  ~context() { EVP_CIPHER_CTX_free(with); }  // wipes the key's schedule

  EVP_CIPHER_CTX* const with;
  std::size_t nonce_size = usual_nonce;
};

/// To look a cipher up and to schedule a key takes longer than to encrypt a small payload: contexts are kept and used again. Each place holds
/// one or none, and is emptied and filled by an exchange: nobody waits, not even for a thread that a fork left behind.
struct aes_gcm::spares {
  spares() = default;
  spares(const spares&) = delete;
  spares& operator=(const spares&) = delete;
  ~spares() {
    for (auto& each : places) delete each.load();
  }

  context first{};  // copied, never run
  std::array<std::atomic<context*>, most_spares> places{};
};

aes_gcm::aes_gcm(std::span<const std::byte> key) : spares_(std::make_unique<spares>()) {
  require(EVP_CipherInit_ex(spares_->first.with, cipher_of(key.size()), nullptr, octets(key), nullptr, 1) == 1);
}

aes_gcm::~aes_gcm() = default;

aes_gcm::run aes_gcm::start(std::span<const std::byte> nonce, std::span<const std::byte> associated, bool seals) const {
  std::unique_ptr<context> taken;
  for (auto& each : spares_->places) {
    taken.reset(each.exchange(nullptr, std::memory_order_acquire));
    if (taken) break;
  }
  if (!taken) {
    taken = std::make_unique<context>();
    require(EVP_CIPHER_CTX_copy(taken->with, spares_->first.with) == 1);
  }
  if (taken->nonce_size != nonce.size()) {
    require(EVP_CIPHER_CTX_ctrl(taken->with, EVP_CTRL_AEAD_SET_IVLEN, static_cast<int>(nonce.size()), nullptr) == 1);
    taken->nonce_size = nonce.size();
  }
  require(EVP_CipherInit_ex(taken->with, nullptr, nullptr, nullptr, octets(nonce), seals ? 1 : 0) == 1);
  int written = 0;
  if (!associated.empty()) {
    require(EVP_CipherUpdate(taken->with, nullptr, &written, octets(associated), static_cast<int>(associated.size())) == 1);
  }
  return run(*this, std::move(taken));
}

aes_gcm::run aes_gcm::seal(std::span<const std::byte> nonce, std::span<const std::byte> associated) const {
  return start(nonce, associated, true);
}
aes_gcm::run aes_gcm::open(std::span<const std::byte> nonce, std::span<const std::byte> associated) const {
  return start(nonce, associated, false);
}

void aes_gcm::give_back(std::unique_ptr<context> spare) const noexcept {
  for (auto& each : spares_->places) {
    context* none = nullptr;
    if (!each.compare_exchange_strong(none, spare.get(), std::memory_order_release, std::memory_order_relaxed)) continue;
    [[maybe_unused]] const context* const kept = spare.release();
    return;
  }
}

aes_gcm::run::run(const aes_gcm& of, std::unique_ptr<context> taken) : of_(of), held_(std::move(taken)) {}
aes_gcm::run::~run() { of_.give_back(std::move(held_)); }

void aes_gcm::run::update(std::span<const std::byte> from, std::byte* to) {
  if (from.empty()) return;
  int written = 0;
  require(EVP_CipherUpdate(held_->with, octets(to), &written, octets(from), static_cast<int>(from.size())) == 1);
}

void aes_gcm::run::finish(std::span<std::byte, tag_size> tag) {
  require(finished(held_->with));
  require(EVP_CIPHER_CTX_ctrl(held_->with, EVP_CTRL_AEAD_GET_TAG, static_cast<int>(tag_size), octets(tag.data())) == 1);
}

bool aes_gcm::run::verify(std::span<const std::byte, tag_size> tag) {
  std::array<std::byte, tag_size> expected{};  // OpenSSL's parameter is not const, although it only reads it
  std::copy(tag.begin(), tag.end(), expected.begin());
  require(EVP_CIPHER_CTX_ctrl(held_->with, EVP_CTRL_AEAD_SET_TAG, static_cast<int>(tag_size), octets(expected.data())) == 1);
  return finished(held_->with);
}

void fill_randomly(std::span<std::byte> bytes) {
  if (RAND_bytes(octets(bytes.data()), static_cast<int>(bytes.size())) != 1) {
    throw error(errc::unavailable, "the system has no random bytes to give", {.transient = true});
  }
}

void wipe(std::span<std::byte> bytes) noexcept { OPENSSL_cleanse(bytes.data(), bytes.size()); }

}  // namespace HOLDFAST_NAMESPACE
