#include "store/sealed/envelope.hpp"

#include "base/base64.hpp"

#include <endian.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace HOLDFAST_NAMESPACE::detail::store {

namespace {

constexpr std::byte associated_data_version{1};
constexpr std::size_t length_size = sizeof(std::uint32_t);
constexpr std::size_t tag_size = aes_gcm::tag_size;
/// Payloads are processed in chunks that stay in the first-level cache. A chunk consists of whole
/// AES blocks and whole Base64 groups.
constexpr std::size_t chunk_size = 12288;
static_assert(chunk_size % 48 == 0);
/// Room for a chunk and for header, tag and the rest of a Base64 group.
using chunk_buffer = std::array<std::byte, 64 + chunk_size + tag_size>;

/// Copies the first and the last word of a text that is one to two words long.
template <std::size_t Word>
void copy_two_words(std::byte* target, const char* source, std::size_t size) noexcept {
  std::memcpy(target, source, Word);
  std::memcpy(target + size - Word, source + size - Word, Word);
}

/// For names and keys, which are short: a call of memcpy with a variable size takes longer than the
/// copy itself.
void copy_short(std::byte* target, const char* source, std::size_t size) noexcept {
  if (size > 64) std::memcpy(target, source, size);
  else if (size >= 32) copy_two_words<32>(target, source, size);
  else if (size >= 16) copy_two_words<16>(target, source, size);
  else if (size >= 8) copy_two_words<8>(target, source, size);
  else if (size >= 4) copy_two_words<4>(target, source, size);
  else if (size >= 2) copy_two_words<2>(target, source, size);
  else if (size == 1) *target = static_cast<std::byte>(*source);
}

/// Appends a text with its length and returns the end.
std::byte* append(std::byte* target, std::string_view text) noexcept {
  const std::uint32_t length = htobe32(static_cast<std::uint32_t>(text.size()));
  std::memcpy(target, &length, length_size);
  target += length_size;
  copy_short(target, text.data(), text.size());
  return target + text.size();
}

/// Opens an envelope that is larger than one chunk. The plaintext overwrites the payload from its
/// start; it is shorter than the Base64, so it never overtakes the text that is still to be read.
bool open_in_chunks(const entry& e, std::string& payload, std::string_view base64, aes_gcm& cipher,
                    envelope_header header, std::span<const std::byte> associated,
                    std::size_t plaintext_size) {
  chunk_buffer buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init): written before it is read
  std::size_t filled = 0;
  const auto decode = [&](std::size_t characters) {
    const auto part = base64.substr(0, characters);
    base64.remove_prefix(part.size());
    if (!decode_base64(part, buffer.data() + filled) || (!base64.empty() && part.back() == '='))
      fail_damaged(e);
    filled += decoded_base64_size(part).value_or(0);
  };
  // The first part is the header and as much ciphertext as makes whole Base64 groups and AES
  // blocks.
  std::size_t first_size = header.size + tag_size;
  while (first_size % 3 != 0) first_size += 16;
  decode(base64_size(first_size));
  cipher.open({buffer.data() + header.nonce_offset, header.size - header.nonce_offset}, associated);
  auto* plaintext = reinterpret_cast<std::byte*>(payload.data());
  std::size_t start = header.size;
  for (;;) {
    // The last bytes are kept: they may be the tag.
    const std::size_t ready = filled - start - tag_size;
    cipher.update({buffer.data() + start, ready}, plaintext);
    plaintext += ready;
    std::memmove(buffer.data(), buffer.data() + start + ready, tag_size);
    filled = tag_size;
    start = 0;
    if (base64.empty()) break;
    decode(base64_size(chunk_size));
  }
  payload.resize(plaintext_size);
  return cipher.verify(aes_gcm::tag_span(buffer.data(), tag_size));
}

}  // namespace

void fail_payload(errc code, const std::string& message, const entry& e) {
  throw error(code, message, {.path = e.name + "/" + e.key});
}

void fail_damaged(const entry& e) {
  fail_payload(errc::malformed,
               "the sealed payload is truncated or damaged; is its column wide enough? erase the "
               "row or restore it",
               e);
}

envelope_parts split_envelope(std::string_view payload) noexcept {
  const auto colon = payload.find(':');
  if (colon == std::string_view::npos || payload.back() != ')') return {};
  return {.id = payload.substr(envelope_prefix.size(), colon - envelope_prefix.size()),
          .base64 = payload.substr(colon + 1, payload.size() - colon - 2)};
}

associated_data::associated_data(const entry& e) {
  const std::size_t size =
      1 + 4 * length_size + e.realm.size() + e.name.size() + e.key.size() + e.payload_class.size();
  if (size > short_.size()) long_.resize(size);
  std::byte* target = size > short_.size() ? long_.data() : short_.data();
  bytes_ = {target, size};
  *target++ = associated_data_version;
  target = append(target, e.realm);
  target = append(target, e.name);
  target = append(target, e.key);
  append(target, e.payload_class);
}

void write_envelope(std::string& envelope, std::string_view prefix,
                    std::span<const std::byte> header, aes_gcm& cipher,
                    std::string_view plaintext) {
  envelope.resize(prefix.size() + base64_size(header.size() + plaintext.size() + tag_size) + 1);
  char* target = std::copy(prefix.begin(), prefix.end(), envelope.data());

  chunk_buffer buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init): written before it is read
  std::copy(header.begin(), header.end(), buffer.begin());
  std::size_t filled = header.size();
  for (auto rest = std::as_bytes(std::span(plaintext)); !rest.empty();) {
    const auto chunk = rest.first(std::min(rest.size(), chunk_size));
    rest = rest.subspan(chunk.size());
    cipher.update(chunk, buffer.data() + filled);
    filled += chunk.size();
    if (rest.empty()) break;
    const std::size_t whole_groups = filled / 3 * 3;
    encode_base64({buffer.data(), whole_groups}, target);
    target += whole_groups / 3 * 4;
    std::copy(buffer.begin() + static_cast<std::ptrdiff_t>(whole_groups),
              buffer.begin() + static_cast<std::ptrdiff_t>(filled), buffer.begin());
    filled -= whole_groups;
  }
  cipher.finish(std::span<std::byte, tag_size>(buffer.data() + filled, tag_size));
  encode_base64({buffer.data(), filled + tag_size}, target);
  envelope.back() = ')';
}

bool open_envelope(const entry& e, std::string& payload, std::string_view base64, aes_gcm& cipher,
                   envelope_header header, std::span<const std::byte> associated) {
  const auto size = decoded_base64_size(base64);
  if (!size || *size < header.size + tag_size) fail_damaged(e);
  const std::size_t plaintext_size = *size - header.size - tag_size;
  if (*size > chunk_size)
    return open_in_chunks(e, payload, base64, cipher, header, associated, plaintext_size);

  chunk_buffer buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init): written before it is read
  if (!decode_base64(base64, buffer.data())) fail_damaged(e);
  cipher.open({buffer.data() + header.nonce_offset, header.size - header.nonce_offset}, associated);
  cipher.update({buffer.data() + header.size, plaintext_size},
                reinterpret_cast<std::byte*>(payload.data()));
  payload.resize(plaintext_size);
  return cipher.verify(aes_gcm::tag_span(buffer.data() + header.size + plaintext_size, tag_size));
}

}  // namespace HOLDFAST_NAMESPACE::detail::store
