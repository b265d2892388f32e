#include "store/sealed_envelope.hpp"

#include "base/base64.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace HOLDFAST_NAMESPACE {

namespace {

constexpr std::string_view opening = "ENC(";
constexpr std::array magic{std::byte{'H'}, std::byte{'F'}, std::byte{1}};
constexpr std::string_view magic_text = "SEYB";  // the same in Base64
constexpr std::byte bound_version{1};
constexpr std::size_t java_nonce = 16;
constexpr std::string_view base64_id = "b64";
/// Ciphertext is turned into text while it is still in the nearest cache: as many blocks of AES as are whole groups of Base64.
constexpr std::size_t piece = 12288;
static_assert(piece % 48 == 0);

[[noreturn]] void fail(errc code, const std::string& why, const entry& of) { throw error(code, why, {.path = of.name + "/" + of.key}); }

/// What a payload is bound to. Most are short: no allocation for them.
class bound_to {
 public:
  explicit bound_to(const entry& e) {
    const std::size_t size = 1 + 4 * length_size + e.realm.size() + e.name.size() + e.key.size() + e.payload_class.size();
    if (size > near_.size()) far_.resize(size);
    std::byte* at = size > near_.size() ? far_.data() : near_.data();
    bytes_ = {at, size};
    *at++ = bound_version;
    for (const std::string* part : {&e.realm, &e.name, &e.key, &e.payload_class}) {
      const auto length = static_cast<std::uint32_t>(part->size());
      const std::array highest_first{std::byte(length >> 24U), std::byte(length >> 16U & 0xffU), std::byte(length >> 8U & 0xffU),
                                     std::byte(length & 0xffU)};
      std::memcpy(at, highest_first.data(), length_size);
      std::memcpy(at + length_size, part->data(), part->size());
      at += length_size + part->size();
    }
  }
  bound_to(const bound_to&) = delete;
  bound_to& operator=(const bound_to&) = delete;
  ~bound_to() = default;
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }

 private:
  static constexpr std::size_t length_size = 4;
  std::array<std::byte, 384> near_;
  std::vector<std::byte> far_{};
  std::span<const std::byte> bytes_;
};

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

/// `ENC(id:`, then the header, the ciphertext and the tag as one Base64, then `)`.
void sealed_text(std::string& out, std::string_view id, std::span<const std::byte> header, aes_gcm::run run, std::string_view plain) {
  constexpr std::size_t tag = aes_gcm::tag_size;
  const std::size_t before = opening.size() + id.size() + 1;
  out.resize(before + base64_size(header.size() + plain.size() + tag) + 1);
  char* to = out.data();
  to = std::copy(opening.begin(), opening.end(), to);
  to = std::copy(id.begin(), id.end(), to);
  *to++ = ':';

  std::array<std::byte, 64 + piece + tag> room;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled before it is read
  std::size_t held = header.size();
  std::copy(header.begin(), header.end(), room.begin());
  for (auto left = bytes_of(plain); !left.empty();) {
    const auto part = left.first(std::min(left.size(), piece));
    left = left.subspan(part.size());
    run.update(part, room.data() + held);
    held += part.size();
    if (left.empty()) break;
    const std::size_t whole = held / 3 * 3;
    encode_base64({room.data(), whole}, to);
    to += whole / 3 * 4;
    std::copy(room.begin() + static_cast<std::ptrdiff_t>(whole), room.begin() + static_cast<std::ptrdiff_t>(held), room.begin());
    held -= whole;
  }
  run.finish(std::span<std::byte, tag>(room.data() + held, tag));
  encode_base64({room.data(), held + tag}, to);
  out.back() = ')';
}

constexpr std::string_view damaged = "the sealed payload is cut off or damaged; is its column wide enough? erase the row or restore it";
[[noreturn]] void fail_damaged(const entry& of) { fail(errc::malformed, std::string(damaged), of); }

bool begins_sealed(std::string_view payload) noexcept { return payload.starts_with(opening); }

/// Of what begins like an envelope; without an id when it is none.
envelope_parts parts_of(std::string_view payload) noexcept {
  const auto colon = payload.find(':');
  if (colon == std::string_view::npos || payload.back() != ')') return {};
  return {.id = payload.substr(opening.size(), colon - opening.size()), .text = payload.substr(colon + 1, payload.size() - colon - 2)};
}

/// Where in the header of an envelope the nonce is: from there to its end.
struct header_shape {
  std::size_t size;
  std::size_t nonce_at;
};

/// The other way, in place: plaintext takes less room than its envelope, and is written behind what is being read. `text` is part of the
/// payload. False when the tag does not fit. If it is false or throws, the payload is worth nothing any more.
bool open_text(const entry& e, std::string& payload, std::string_view text, const aes_gcm& cipher, header_shape header,
               std::span<const std::byte> associated) {
  constexpr std::size_t tag = aes_gcm::tag_size;
  const auto size = decoded_base64_size(text);
  if (!size || *size < header.size + tag) fail_damaged(e);
  std::array<std::byte, 64 + piece + tag> room;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled before it is read
  auto* to = reinterpret_cast<std::byte*>(payload.data());

  std::size_t held = 0;
  const auto take = [&](std::size_t characters) {
    const auto part = text.substr(0, characters);
    text.remove_prefix(part.size());
    if (!decode_base64(part, room.data() + held) || (!text.empty() && part.back() == '=')) fail_damaged(e);
    held += decoded_base64_size(part).value_or(0);
  };
  // The first time as much ciphertext comes along as makes whole groups of Base64 and whole blocks of AES; or all, if it fits.
  std::size_t first = header.size + tag;
  while (first % 3 != 0) first += 16;
  take(*size <= piece ? text.size() : base64_size(first));
  auto run = cipher.open(std::span<const std::byte>(room).subspan(header.nonce_at, header.size - header.nonce_at), associated);
  std::size_t done = header.size;
  for (;;) {
    // The last bytes may be the tag: they are held back.
    const std::size_t ready = held - done - tag;
    run.update({room.data() + done, ready}, to);
    to += ready;
    std::memmove(room.data(), room.data() + done + ready, tag);
    held = tag;
    done = 0;
    if (text.empty()) break;
    take(base64_size(piece));
  }
  payload.resize(*size - header.size - tag);
  return run.verify(std::span<const std::byte, tag>(room.data(), tag));
}

}  // namespace

std::optional<envelope_parts> envelope_of(std::string_view payload) {
  if (!begins_sealed(payload)) return std::nullopt;
  const auto parts = parts_of(payload);
  if (parts.id.data() == nullptr) throw error(errc::malformed, std::string(damaged));
  return parts;
}

sealer::sealer(const sealing_ring& keys, const sealed_options& how, peer with, nonce_source& nonces)
    : java_(with == peer::java),
      read_java_(how.read_java || java_),
      read_base64_(how.read_base64),
      read_plaintext_(how.read_plaintext),
      nonces_(nonces) {
  const auto refuse = [](const std::string& why) { throw error(errc::invalid_argument, why, {.path = "keys"}); };
  if (keys.empty()) refuse("the key ring is empty; give it a current key");
  const bool java_is_current = keys.keys().front().first == sealing_ring::java_id;
  if (java_ && !java_is_current)
    refuse("the table is shared with the Java library: the current key must have the id aesgcm, the only one that it knows");
  if (!java_ && java_is_current)
    refuse("the key aesgcm is the Java library's; share the table (store_options::peer), or make another key the current one");
  for (const auto& [id, key] : keys.keys()) {
    if (id == sealing_ring::java_id && !read_java_)
      refuse("the key aesgcm opens only what the Java library sealed; allow it with read_java, or remove the key");
    keys_.push_back(std::make_unique<const named_key>(id, key.reveal()));
  }
}

const sealer::named_key* sealer::key_of(std::string_view id) const noexcept {
  const auto found = std::ranges::find_if(keys_, [id](const auto& each) { return each->id == id; });
  return found == keys_.end() ? nullptr : found->get();
}

std::string sealer::seal(const entry& plain) const {
  std::string made;
  seal(plain, made);
  return made;
}

void sealer::seal(const entry& plain, std::string& into) const {
  if (!plain.payload) fail(errc::internal, "a tombstone has nothing to seal", plain);
  const std::string& payload = *plain.payload;
  if (payload.size() > aes_gcm::max_size) fail(errc::too_large, "a payload of more than 1 GiB cannot be sealed", plain);
  const named_key& key = *keys_.front();
  if (java_) {
    std::array<std::byte, java_nonce> header{};
    fill_randomly(header);
    return sealed_text(into, key.id, header, key.cipher.seal(header, {}), payload);
  }
  std::array<std::byte, magic.size() + sizeof(nonce)> header{};
  const nonce once = nonces_.next();
  std::copy(once.begin(), once.end(), std::copy(magic.begin(), magic.end(), header.begin()));
  sealed_text(into, key.id, header, key.cipher.seal(once, bound_to(plain).bytes()), payload);
}

bool sealer::is_current(std::string_view payload) const noexcept {
  const std::string& id = keys_.front()->id;
  if (!payload.starts_with(opening) || !payload.substr(opening.size()).starts_with(id)) return false;
  payload.remove_prefix(opening.size() + id.size());
  return payload.starts_with(':') && (java_ || payload.substr(1).starts_with(magic_text));
}

bool sealer::open(entry& sealed) const {
  if (!sealed.payload) return true;
  std::string& payload = *sealed.payload;
  if (!begins_sealed(payload)) {
    if (read_plaintext_) return false;
    fail(errc::permission,
         "the payload is not encrypted, and this store requires it; to migrate a table, allow read_plaintext and rekey it", sealed);
  }
  const auto [id, text] = parts_of(payload);
  if (id.data() == nullptr) fail_damaged(sealed);
  if (text.size() > 2 * aes_gcm::max_size) fail(errc::too_large, "the sealed payload is too large", sealed);
  if (id == base64_id) {
    if (!read_base64_) {
      fail(errc::permission, "the payload is in Base64, which is no encryption; to migrate a table, allow read_base64 and rekey it",
           sealed);
    }
    const auto size = decoded_base64_size(text);
    std::string plain(size.value_or(0), '\0');
    if (!size || !decode_base64(text, reinterpret_cast<std::byte*>(plain.data()))) fail_damaged(sealed);
    payload = std::move(plain);
    return false;
  }
  if (id == sealing_ring::java_id && !read_java_) {
    fail(errc::permission, "the payload was sealed by the Java library, which does not bind it to its row; allow it with read_java",
         sealed);
  }
  const named_key* const key = key_of(id);
  if (key == nullptr) {
    const bool printable = id.size() <= sealing_ring::max_id_length && std::ranges::all_of(id, [](char c) { return c > ' ' && c <= '~'; });
    if (id.empty() || !printable) fail_damaged(sealed);
    fail(errc::not_found, "the payload was sealed with the key '" + std::string(id) + "', which is not in the key ring; add it", sealed);
  }
  bool good = false;
  try {
    if (id == sealing_ring::java_id) {
      good = open_text(sealed, payload, text, key->cipher, {.size = java_nonce, .nonce_at = 0}, {});
    } else {
      if (!text.starts_with(magic_text)) {
        fail(errc::malformed, "the payload was not sealed by this library, although it names a key of its ring", sealed);
      }
      const bound_to row(sealed);
      good = open_text(sealed, payload, text, key->cipher, {.size = magic.size() + sizeof(nonce), .nonce_at = magic.size()}, row.bytes());
    }
  } catch (...) {
    wipe(std::as_writable_bytes(std::span(payload)));
    throw;
  }
  if (good) return key == keys_.front().get();
  wipe(std::as_writable_bytes(std::span(payload)));
  fail(errc::tampered,
       "the sealed payload does not fit: it was changed, belongs to another row, or was sealed with another key than the ring has as '" +
           key->id + "'",
       sealed);
}

}  // namespace HOLDFAST_NAMESPACE
