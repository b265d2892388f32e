#include <holdfast/cachekit/encryption.hpp>

#include "base/aes_gcm.hpp"
#include "base/hex.hpp"
#include "base/nonce_source.hpp"
#include "base/utf8.hpp"
#include "cachekit/sealing.hpp"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace HOLDFAST_NAMESPACE::key {

using namespace holdfast::detail::cachekit;

namespace {

// Limits of the protocol.
constexpr std::size_t max_tenant_size = 1024;
constexpr std::size_t max_domain_size = 255;

/// Other libraries read the parts of salts and associated data as text.
void require_utf8(std::string_view text, const char* role) {
  if (!holdfast::detail::is_utf8(text))
    throw error(errc::ill_formed_text, std::string(role) + " is not well-formed UTF-8");
}

void append(byte_string& out, std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  out.insert(out.end(), bytes.begin(), bytes.end());
}

void append_big_endian(byte_string& out, std::size_t number, unsigned bytes) {
  for (unsigned i = bytes; i-- > 0;) out.push_back(static_cast<std::byte>(number >> (8 * i)));
}

/// Each part is preceded by its length, so that different pairs of tenant and domain have different
/// salts.
byte_string salt_of(std::string_view tenant, std::string_view domain) {
  byte_string salt;
  append(salt, "cachekit_v1_");
  append_big_endian(salt, domain.size(), 1);
  append(salt, domain);
  append_big_endian(salt, tenant.size(), 2);
  append(salt, tenant);
  return salt;
}

void check_name(std::string_view text, std::size_t max_size, const char* role) {
  if (text.empty()) throw error(errc::invalid_argument, std::string(role) + " is empty; name one");
  if (text.size() > max_size)
    throw error(errc::too_large,
                std::string(role) + " is longer than " + std::to_string(max_size) + " bytes");
  require_utf8(text, role);
}

void hkdf_sha256(std::span<const std::byte> secret_input, byte_string salt, std::string_view info,
                 std::span<std::byte> out) {
  const std::unique_ptr<EVP_KDF, decltype(&EVP_KDF_free)> algorithm(
      EVP_KDF_fetch(nullptr, "HKDF", nullptr), &EVP_KDF_free);
  const std::unique_ptr<EVP_KDF_CTX, decltype(&EVP_KDF_CTX_free)> context(
      algorithm ? EVP_KDF_CTX_new(algorithm.get()) : nullptr, &EVP_KDF_CTX_free);
  // OpenSSL's parameters are not const, although it only reads them.
  char digest[] = "SHA256";
  const std::array parameters{
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
      OSSL_PARAM_construct_octet_string(
          OSSL_KDF_PARAM_KEY, const_cast<std::byte*>(secret_input.data()), secret_input.size()),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SALT, salt.data(), salt.size()),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, const_cast<char*>(info.data()),
                                        info.size()),
      OSSL_PARAM_construct_end()};
  if (!context || EVP_KDF_derive(context.get(), reinterpret_cast<unsigned char*>(out.data()),
                                 out.size(), parameters.data()) != 1) {
    throw error(errc::internal,
                "OpenSSL could not run HKDF-SHA256; is its default provider loaded?");
  }
}

holdfast::detail::nonce_source::instance_id random_instance() {
  holdfast::detail::nonce_source::instance_id id{};
  holdfast::detail::fill_random(id);
  return id;
}

void append_part(byte_string& out, std::string_view text, const char* role) {
  if (text.size() > UINT32_MAX)
    throw error(errc::too_large, std::string(role) + " has 4 GiB or more; shorten it");
  require_utf8(text, role);
  append_big_endian(out, text.size(), 4);
  append(out, text);
}

/// Secret bytes that are wiped on destruction.
struct wiped_buffer {
  std::array<std::byte, secret::size> bytes{};
  wiped_buffer() = default;
  wiped_buffer(const wiped_buffer&) = delete;
  wiped_buffer& operator=(const wiped_buffer&) = delete;
  ~wiped_buffer() { OPENSSL_cleanse(bytes.data(), bytes.size()); }
};

}  // namespace

secret::secret(std::span<const std::byte, size> bytes) noexcept {
  std::ranges::copy(bytes, bytes_.begin());
}
secret::~secret() { OPENSSL_cleanse(bytes_.data(), bytes_.size()); }

bool secret::operator==(const secret& other) const noexcept {
  return CRYPTO_memcmp(bytes_.data(), other.bytes_.data(), size) == 0;
}

master_key master_key::from_hex(std::string_view digits) {
  wiped_buffer raw;
  if (digits.size() != 2 * size ||
      !holdfast::detail::from_hex(digits, reinterpret_cast<unsigned char*>(raw.bytes.data()))) {
    throw error(errc::invalid_argument,
                "a master key must have exactly 64 hexadecimal digits, without prefix or spaces; "
                "make one with: openssl rand -hex 32");
  }
  return master_key(raw.bytes);
}

master_key master_key::from_bytes(std::span<const std::byte> bytes) {
  if (bytes.size() != size) {
    throw error(errc::invalid_argument, "a master key must have exactly 32 bytes, not " +
                                            std::to_string(bytes.size()) +
                                            "; use from_hex for hexadecimal digits");
  }
  return master_key(bytes.first<size>());
}

derived_key derive_key(const master_key& master, std::string_view tenant, std::string_view domain) {
  check_name(tenant, max_tenant_size, "the tenant");
  check_name(domain, max_domain_size, "the domain of a key");
  wiped_buffer raw;
  hkdf_sha256(master.reveal(), salt_of(tenant, domain), domain, raw.bytes);
  return derived_key(raw.bytes);
}

std::array<std::byte, 16> fingerprint(const derived_key& key) {
  static constexpr std::string_view label = "key_fingerprint_v1";
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        &EVP_MD_CTX_free);
  std::array<std::byte, 32> digest{};
  if (!context || EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) != 1 ||
      EVP_DigestUpdate(context.get(), label.data(), label.size()) != 1 ||
      EVP_DigestUpdate(context.get(), key.reveal().data(), key.reveal().size()) != 1 ||
      EVP_DigestFinal_ex(context.get(), reinterpret_cast<unsigned char*>(digest.data()), nullptr) !=
          1) {
    throw error(errc::internal, "OpenSSL could not run SHA-256; is its default provider loaded?");
  }
  std::array<std::byte, 16> result{};
  std::copy_n(digest.begin(), result.size(), result.begin());
  return result;
}

byte_string aad_v3(std::string_view tenant, std::string_view cache_key, std::string_view format,
                   bool compressed, std::optional<std::string_view> original_type) {
  byte_string out;
  out.push_back(std::byte{3});
  append_part(out, tenant, "the tenant");
  append_part(out, cache_key, "the cache key");
  append_part(out, format, "the format");
  append_part(out, compressed ? "True" : "False", "the compression flag");
  if (original_type) append_part(out, *original_type, "the original type");
  return out;
}

key_ring::key_ring(const master_key& current, std::vector<master_key> decrypt_only)
    : current_(current), decrypt_only_(std::move(decrypt_only)) {
  if (decrypt_only_.size() > max_decrypt_only) {
    throw error(errc::too_large, "a key ring can have at most " + std::to_string(max_decrypt_only) +
                                     " old keys; drop the oldest");
  }
  if (std::find(decrypt_only_.begin(), decrypt_only_.end(), current_) != decrypt_only_.end()) {
    throw error(errc::duplicate,
                "the current master key is also in the list of old keys; remove it there");
  }
  for (auto old = decrypt_only_.begin(); old != decrypt_only_.end(); ++old) {
    if (std::find(old + 1, decrypt_only_.end(), *old) != decrypt_only_.end())
      throw error(errc::duplicate, "an old master key is in the list twice; remove one of them");
  }
}

struct value_cipher::state {
  state(const key_ring& ring, std::string_view tenant_name) : tenant(tenant_name) {
    keys.reserve(1 + ring.decrypt_only().size());
    keys.push_back(derive_key(ring.current(), tenant));
    for (const auto& old : ring.decrypt_only()) keys.push_back(derive_key(old, tenant));
  }

  std::string tenant;
  std::vector<derived_key> keys{};  // the first key seals
  mutable holdfast::detail::nonce_source nonces{&random_instance};
};

value_cipher::value_cipher(const key_ring& keys, std::string_view tenant)
    : state_(std::make_unique<const state>(keys, tenant)) {}
value_cipher::value_cipher(value_cipher&&) noexcept = default;
value_cipher& value_cipher::operator=(value_cipher&&) noexcept = default;
value_cipher::~value_cipher() = default;

namespace {

/// With another format, no other library would build the same associated data.
void check_format(std::string_view format) {
  if (format != "msgpack" && format != "orjson" && format != "arrow")
    throw error(errc::invalid_argument,
                "the format of a sealed value must be msgpack, orjson or arrow");
}

void check_message_size(std::size_t size, const byte_string& associated) {
  if (size > value_cipher::max_size || associated.size() > value_cipher::max_size) {
    throw error(errc::too_large, "a sealed value can have at most " +
                                     std::to_string(value_cipher::max_size) +
                                     " bytes; split the value");
  }
}

}  // namespace

byte_string value_cipher::seal(std::span<const std::byte> plaintext, std::string_view cache_key,
                               std::string_view format, bool compressed,
                               std::optional<std::string_view> original_type) const {
  check_format(format);
  const byte_string associated =
      aad_v3(state_->tenant, cache_key, format, compressed, original_type);
  check_message_size(plaintext.size(), associated);
  return seal_with_nonce(state_->keys.front(), state_->nonces.next(), plaintext, associated);
}

byte_string value_cipher::open(std::span<const std::byte> sealed, std::string_view cache_key,
                               std::string_view format, bool compressed,
                               std::optional<std::string_view> original_type) const {
  if (sealed.size() < seal_overhead) {
    throw error(errc::malformed, "a sealed value must have at least " +
                                     std::to_string(seal_overhead) + " bytes, not " +
                                     std::to_string(sealed.size()));
  }
  check_format(format);
  const byte_string associated =
      aad_v3(state_->tenant, cache_key, format, compressed, original_type);
  check_message_size(sealed.size() - seal_overhead, associated);
  for (const auto& key : state_->keys) {
    if (auto plaintext = open_with_key(key, sealed, associated)) return std::move(*plaintext);
  }
  throw error(errc::tampered,
              "no key of the ring opens this value: it was changed, sealed with another key, or "
              "belongs to another tenant, cache key or format");
}

const std::string& value_cipher::tenant() const noexcept { return state_->tenant; }
std::array<std::byte, 16> value_cipher::key_fingerprint() const {
  return fingerprint(state_->keys.front());
}

}  // namespace HOLDFAST_NAMESPACE::key
