#include "store/sealed/sealer.hpp"

#include "base/base64.hpp"
#include "store/sealed/envelope.hpp"

#include <algorithm>
#include <array>

namespace HOLDFAST_NAMESPACE::detail::store {

namespace {

constexpr std::string_view base64_id = "b64";
constexpr envelope_header java_header{.size = java_nonce_size, .nonce_offset = 0};
constexpr envelope_header standard_header{.size = envelope_magic.size() + sizeof(nonce),
                                          .nonce_offset = envelope_magic.size()};

void wipe_text(std::string& text) { wipe(std::as_writable_bytes(std::span(text))); }

bool is_printable_id(std::string_view id) {
  return !id.empty() && id.size() <= sealing_ring::max_id_length &&
         std::ranges::all_of(id, [](char c) { return c > ' ' && c <= '~'; });
}

}  // namespace

sealer::sealer(const sealing_ring& keys, const sealed_options& options, peer table_peer,
               nonce_source& nonces)
    : java_(table_peer == peer::java),
      read_java_(options.read_java || java_),
      read_base64_(options.read_base64),
      read_plaintext_(options.read_plaintext),
      nonces_(nonces) {
  const auto refuse = [](const std::string& message) {
    throw error(errc::invalid_argument, message, {.path = "keys"});
  };
  if (keys.empty()) refuse("the key ring is empty; add a current key");
  const bool java_is_current = keys.keys().front().first == sealing_ring::java_id;
  if (java_ && !java_is_current)
    refuse(
        "the table is shared with the Java library: the current key must have the id aesgcm, the "
        "only id that the Java library knows");
  if (!java_ && java_is_current)
    refuse(
        "the key aesgcm is the Java library's; share the table (store_options::peer), or make "
        "another key the current one");
  for (const auto& [id, key] : keys.keys()) {
    if (id == sealing_ring::java_id && !read_java_)
      refuse(
          "the key aesgcm only opens payloads of the Java library; allow them with read_java, or "
          "remove the key");
    keys_.emplace_back(std::make_shared<const prepared_key>(id, key.reveal()));
  }
  prefix_.append(envelope_prefix).append(keys_.front().id()).append(":");
  current_prefix_ = java_ ? prefix_ : prefix_ + std::string(envelope_magic_base64);
}

std::string sealer::seal(const entry& plain) {
  std::string envelope;
  seal(plain, envelope);
  return envelope;
}

void sealer::seal(const entry& plain, std::string& envelope) {
  if (!plain.payload) fail_payload(errc::internal, "a tombstone has no payload to seal", plain);
  const std::string& payload = *plain.payload;
  if (payload.size() > aes_gcm::max_size)
    fail_payload(errc::too_large, "a payload of more than 1 GiB cannot be sealed", plain);
  aes_gcm& cipher = keys_.front().cipher();
  if (java_) {
    std::array<std::byte, java_header.size> header{};
    fill_random(header);
    cipher.seal(header, {});
    return write_envelope(envelope, prefix_, header, cipher, payload);
  }
  std::array<std::byte, standard_header.size> header{};
  const nonce unique = nonces_.next();
  std::copy(unique.begin(), unique.end(),
            std::copy(envelope_magic.begin(), envelope_magic.end(), header.begin()));
  cipher.seal(unique, associated_data(plain).bytes());
  write_envelope(envelope, prefix_, header, cipher, payload);
}

bool sealer::is_current(std::string_view payload) const noexcept {
  return payload.starts_with(current_prefix_);
}

/// Finds the key that a payload names. Throws if the payload must not be read.
sealer::sealed_text sealer::parse(const entry& sealed, std::string_view payload) {
  // The usual case: the current form and key.
  if (is_current(payload) && payload.ends_with(')')) {
    return {.key = &keys_.front(),
            .base64 = payload.substr(prefix_.size(), payload.size() - prefix_.size() - 1)};
  }
  if (!payload.starts_with(envelope_prefix)) {
    if (read_plaintext_) return {};
    fail_payload(errc::permission,
                 "the payload is not encrypted, but this store requires encryption; to migrate a "
                 "table, allow read_plaintext (--allow-plaintext) and rekey it",
                 sealed);
  }
  const auto [id, base64] = split_envelope(payload);
  if (id.data() == nullptr) fail_damaged(sealed);
  if (id == base64_id) {
    if (read_base64_) return {.key = nullptr, .base64 = base64};
    fail_payload(errc::permission,
                 "the payload is in Base64, which is not encryption; to migrate a table, allow "
                 "read_base64 and rekey it",
                 sealed);
  }
  const bool from_java = id == sealing_ring::java_id;
  if (from_java && !read_java_) {
    fail_payload(errc::permission,
                 "the payload was sealed by the Java library, which does not bind it to its row; "
                 "allow it with read_java",
                 sealed);
  }
  const auto key = std::ranges::find(keys_, id, &ring_key::id);
  if (key == keys_.end()) {
    if (!is_printable_id(id)) fail_damaged(sealed);
    fail_payload(errc::not_found,
                 "the payload was sealed with the key '" + std::string(id) +
                     "', which is not in the key ring; add it",
                 sealed);
  }
  if (!from_java && !base64.starts_with(envelope_magic_base64)) {
    fail_payload(errc::malformed,
                 "the payload was not sealed by this library, although it names a key of its ring",
                 sealed);
  }
  return {.key = &*key, .base64 = base64};
}

bool sealer::open(entry& sealed) {
  if (!sealed.payload) return true;
  std::string& payload = *sealed.payload;
  const auto [key, base64] = parse(sealed, payload);
  if (base64.size() > 2 * aes_gcm::max_size)
    fail_payload(errc::too_large, "the sealed payload is too large", sealed);
  if (key == nullptr) {
    if (base64.data() == nullptr) return false;  // plaintext
    const auto size = decoded_base64_size(base64);
    std::string plain(size.value_or(0), '\0');
    if (!size || !decode_base64(base64, reinterpret_cast<std::byte*>(plain.data())))
      fail_damaged(sealed);
    payload = std::move(plain);
    return false;
  }
  bool authentic = false;
  try {
    authentic = decrypt(sealed, payload, base64, *key);
  } catch (...) {
    wipe_text(payload);
    throw;
  }
  if (authentic) return key == &keys_.front();
  wipe_text(payload);
  fail_payload(errc::tampered,
               "the sealed payload is not authentic: it was changed, belongs to another row, or "
               "was sealed with another key than the ring has as '" +
                   key->id() + "'",
               sealed);
}

bool sealer::decrypt(const entry& sealed, std::string& payload, std::string_view base64,
                     ring_key& key) {
  if (key.id() == sealing_ring::java_id)
    return open_envelope(sealed, payload, base64, key.cipher(), java_header, {});
  const associated_data row(sealed);
  return open_envelope(sealed, payload, base64, key.cipher(), standard_header, row.bytes());
}

}  // namespace HOLDFAST_NAMESPACE::detail::store
