#include "store/sealed_envelope.hpp"

#include "base/base64.hpp"

#include <endian.h>

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

/// Copies the first and the last word; what is at most two words long is all there then.
template <std::size_t Word>
void copy_ends(std::byte* to, const char* from, std::size_t size) noexcept {
  std::memcpy(to, from, Word);
  std::memcpy(to + size - Word, from + size - Word, Word);
}

/// Names and keys are short: to call for their copy, with a size that nobody knows beforehand, takes longer than the copy.
void copy_short(std::byte* to, const char* from, std::size_t size) noexcept {
  if (size > 64) {
    std::memcpy(to, from, size);
  } else if (size >= 32) {
    copy_ends<32>(to, from, size);
  } else if (size >= 16) {
    copy_ends<16>(to, from, size);
  } else if (size >= 8) {
    copy_ends<8>(to, from, size);
  } else if (size >= 4) {
    copy_ends<4>(to, from, size);
  } else if (size >= 2) {
    copy_ends<2>(to, from, size);
  } else if (size == 1) {
    *to = static_cast<std::byte>(*from);
  }
}

/// What a payload is bound to. Most are short: no allocation for them.
class bound_to {
 public:
  explicit bound_to(const entry& e) {
    const std::size_t size = 1 + 4 * length_size + e.realm.size() + e.name.size() + e.key.size() + e.payload_class.size();
    if (size > near_.size()) far_.resize(size);
    std::byte* at = size > near_.size() ? far_.data() : near_.data();
    bytes_ = {at, size};
    *at++ = bound_version;
    at = add(at, e.realm);
    at = add(at, e.name);
    at = add(at, e.key);
    add(at, e.payload_class);
  }
  bound_to(const bound_to&) = delete;
  bound_to& operator=(const bound_to&) = delete;
  ~bound_to() = default;
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }

 private:
  static constexpr std::size_t length_size = sizeof(std::uint32_t);

  static std::byte* add(std::byte* at, std::string_view part) noexcept {
    const std::uint32_t highest_first = htobe32(static_cast<std::uint32_t>(part.size()));
    std::memcpy(at, &highest_first, length_size);
    at += length_size;
    copy_short(at, part.data(), part.size());
    return at + part.size();
  }

  std::array<std::byte, 384> near_;
  std::vector<std::byte> far_{};
  std::span<const std::byte> bytes_;
};

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

/// `ENC(id:`, then the header, the ciphertext and the tag as one Base64, then `)`. The message has begun.
void sealed_text(std::string& out, std::string_view beginning, std::span<const std::byte> header, aes_gcm& run, std::string_view plain) {
  constexpr std::size_t tag = aes_gcm::tag_size;
  out.resize(beginning.size() + base64_size(header.size() + plain.size() + tag) + 1);
  char* to = out.data();
  to = std::copy(beginning.begin(), beginning.end(), to);

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
bool open_text(const entry& e, std::string& payload, std::string_view text, aes_gcm& cipher, header_shape header,
               std::span<const std::byte> associated) {
  constexpr std::size_t tag = aes_gcm::tag_size;
  const auto size = decoded_base64_size(text);
  if (!size || *size < header.size + tag) fail_damaged(e);
  std::array<std::byte, 64 + piece + tag> room;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled before it is read
  const std::span<const std::byte> nonce(room.data() + header.nonce_at, header.size - header.nonce_at);
  auto* to = reinterpret_cast<std::byte*>(payload.data());

  if (*size <= piece) {
    if (!decode_base64(text, room.data())) fail_damaged(e);
    const std::size_t plain = *size - header.size - tag;
    cipher.open(nonce, associated);
    cipher.update({room.data() + header.size, plain}, to);
    payload.resize(plain);
    return cipher.verify(aes_gcm::tag_span(room.data() + header.size + plain, tag));
  }

  std::size_t held = 0;
  const auto take = [&](std::size_t characters) {
    const auto part = text.substr(0, characters);
    text.remove_prefix(part.size());
    if (!decode_base64(part, room.data() + held) || (!text.empty() && part.back() == '=')) fail_damaged(e);
    held += decoded_base64_size(part).value_or(0);
  };
  // The first time as much ciphertext comes along as makes whole groups of Base64 and whole blocks of AES.
  std::size_t first = header.size + tag;
  while (first % 3 != 0) first += 16;
  take(base64_size(first));
  cipher.open(nonce, associated);
  std::size_t done = header.size;
  for (;;) {
    // The last bytes may be the tag: they are held back.
    const std::size_t ready = held - done - tag;
    cipher.update({room.data() + done, ready}, to);
    to += ready;
    std::memmove(room.data(), room.data() + done + ready, tag);
    held = tag;
    done = 0;
    if (text.empty()) break;
    take(base64_size(piece));
  }
  payload.resize(*size - header.size - tag);
  return cipher.verify(aes_gcm::tag_span(room.data(), tag));
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
    keys_.emplace_back(std::make_shared<const named_key>(id, key.reveal()));
  }
  beginning_.append(opening).append(keys_.front().id()).append(":");
  current_ = java_ ? beginning_ : beginning_ + std::string(magic_text);
}

sealer::own_key* sealer::key_of(std::string_view id) noexcept {
  const auto found = std::ranges::find(keys_, id, &own_key::id);
  return found == keys_.end() ? nullptr : &*found;
}

std::string sealer::seal(const entry& plain) {
  std::string made;
  seal(plain, made);
  return made;
}

void sealer::seal(const entry& plain, std::string& into) {
  if (!plain.payload) fail(errc::internal, "a tombstone has nothing to seal", plain);
  const std::string& payload = *plain.payload;
  if (payload.size() > aes_gcm::max_size) fail(errc::too_large, "a payload of more than 1 GiB cannot be sealed", plain);
  aes_gcm& cipher = keys_.front().cipher();
  if (java_) {
    std::array<std::byte, java_nonce> header{};
    fill_randomly(header);
    cipher.seal(header, {});
    return sealed_text(into, beginning_, header, cipher, payload);
  }
  std::array<std::byte, magic.size() + sizeof(nonce)> header{};
  const nonce once = nonces_.next();
  std::copy(once.begin(), once.end(), std::copy(magic.begin(), magic.end(), header.begin()));
  cipher.seal(once, bound_to(plain).bytes());
  sealed_text(into, beginning_, header, cipher, payload);
}

bool sealer::is_current(std::string_view payload) const noexcept { return payload.starts_with(current_); }

/// Which key an envelope names. Throws for what must not be read.
sealer::chosen sealer::choose(const entry& sealed, std::string_view payload) {
  // Nearly always it is what `seal` makes now: then nothing has to be looked for.
  if (is_current(payload) && payload.ends_with(')')) {
    return {.key = &keys_.front(), .text = payload.substr(beginning_.size(), payload.size() - beginning_.size() - 1)};
  }
  if (!begins_sealed(payload)) {
    if (read_plaintext_) return {};
    fail(errc::permission,
         "the payload is not encrypted, and this store requires it; to migrate a table, allow read_plaintext (--allow-plaintext) and rekey "
         "it",
         sealed);
  }
  const auto [id, text] = parts_of(payload);
  if (id.data() == nullptr) fail_damaged(sealed);
  if (id == base64_id) {
    if (read_base64_) return {.key = nullptr, .text = text};
    fail(errc::permission, "the payload is in Base64, which is no encryption; to migrate a table, allow read_base64 and rekey it", sealed);
  }
  if (id == sealing_ring::java_id && !read_java_) {
    fail(errc::permission, "the payload was sealed by the Java library, which does not bind it to its row; allow it with read_java",
         sealed);
  }
  own_key* const key = key_of(id);
  if (key != nullptr) {
    if (id != sealing_ring::java_id && !text.starts_with(magic_text)) {
      fail(errc::malformed, "the payload was not sealed by this library, although it names a key of its ring", sealed);
    }
    return {.key = key, .text = text};
  }
  const bool printable = id.size() <= sealing_ring::max_id_length && std::ranges::all_of(id, [](char c) { return c > ' ' && c <= '~'; });
  if (id.empty() || !printable) fail_damaged(sealed);
  fail(errc::not_found, "the payload was sealed with the key '" + std::string(id) + "', which is not in the key ring; add it", sealed);
}

bool sealer::open(entry& sealed) {
  if (!sealed.payload) return true;
  std::string& payload = *sealed.payload;
  const auto [key, text] = choose(sealed, payload);
  if (text.size() > 2 * aes_gcm::max_size) fail(errc::too_large, "the sealed payload is too large", sealed);
  if (key == nullptr) {
    if (text.data() == nullptr) return false;  // plaintext
    const auto size = decoded_base64_size(text);
    std::string plain(size.value_or(0), '\0');
    if (!size || !decode_base64(text, reinterpret_cast<std::byte*>(plain.data()))) fail_damaged(sealed);
    payload = std::move(plain);
    return false;
  }
  bool good = false;
  try {
    if (key->id() == sealing_ring::java_id) {
      good = open_text(sealed, payload, text, key->cipher(), {.size = java_nonce, .nonce_at = 0}, {});
    } else {
      const bound_to row(sealed);
      good = open_text(sealed, payload, text, key->cipher(), {.size = magic.size() + sizeof(nonce), .nonce_at = magic.size()}, row.bytes());
    }
  } catch (...) {
    wipe(std::as_writable_bytes(std::span(payload)));
    throw;
  }
  if (good) return key == &keys_.front();
  wipe(std::as_writable_bytes(std::span(payload)));
  fail(errc::tampered,
       "the sealed payload does not fit: it was changed, belongs to another row, or was sealed with another key than the ring has as '" +
           key->id() + "'",
       sealed);
}

}  // namespace HOLDFAST_NAMESPACE
