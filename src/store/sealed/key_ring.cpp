// sealing_key and sealing_ring.

#include <holdfast/store/sealed.hpp>

#include "base/aes_gcm.hpp"
#include "base/base64.hpp"
#include "base/secret.hpp"
#include "base/trim.hpp"
#include "base/url.hpp"

#include <openssl/crypto.h>

#include <algorithm>
#include <cstdlib>

namespace HOLDFAST_NAMESPACE {

namespace {

constexpr std::size_t max_ring_text = 64U << 10U;

void check_key_id(std::string_view id) {
  const auto fail = [](const std::string& message) {
    throw error(errc::invalid_argument, message, {.path = "keys"});
  };
  if (id.empty()) fail("a key has no id; write it as id:key");
  // Messages do not contain the id, since it may be a key in the wrong position.
  if (id.size() > sealing_ring::max_id_length) fail("the id of a key is longer than 64 characters");
  if (!std::ranges::all_of(
          id, [](char c) { return c > ' ' && c <= '~' && c != ':' && c != ')' && c != ','; })) {
    fail(
        "the id of a key may only contain printable ASCII characters, but no space, colon, comma "
        "or closing parenthesis");
  }
  if (id == "b64")
    fail("the id b64 is the Java library's for Base64, which is not encryption; choose another id");
}

[[noreturn]] void refuse_key() {
  throw error(errc::invalid_argument,
              "a key is the Base64 of exactly 32 bytes; make one with: openssl rand -base64 32",
              {.path = "keys"});
}

}  // namespace

sealing_key sealing_key::from_base64(std::string_view text) {
  // At most 44 characters, so that they fit into a buffer of fixed size, which is wiped.
  const auto decoded = detail::decoded_base64_size(text);
  if (!decoded || *decoded > size) refuse_key();
  sealing_key raw;
  if (!detail::decode_base64(text, raw.bytes_.data())) refuse_key();
  raw.used_ = *decoded;
  return from_bytes(raw.reveal());
}

sealing_key sealing_key::from_bytes(std::span<const std::byte> bytes) {
  if (bytes.size() != 16 && bytes.size() != 24 && bytes.size() != 32) refuse_key();
  sealing_key key;
  std::ranges::copy(bytes, key.bytes_.begin());
  key.used_ = bytes.size();
  return key;
}

sealing_key::sealing_key(sealing_key&& other) noexcept
    : bytes_(other.bytes_), used_(std::exchange(other.used_, 0)) {
  detail::wipe(other.bytes_);
}
sealing_key& sealing_key::operator=(sealing_key&& other) noexcept {
  if (this == &other) return *this;
  bytes_ = other.bytes_;
  used_ = std::exchange(other.used_, 0);
  detail::wipe(other.bytes_);
  return *this;
}
sealing_key::~sealing_key() { detail::wipe(bytes_); }

bool sealing_key::operator==(const sealing_key& other) const noexcept {
  return used_ == other.used_ && CRYPTO_memcmp(bytes_.data(), other.bytes_.data(), size) == 0;
}

sealing_ring& sealing_ring::add(std::string id, sealing_key key) {
  check_key_id(id);
  if (id != java_id && key.reveal().size() != sealing_key::size) refuse_key();
  if (keys_.size() == max_keys)
    throw error(errc::too_large, "a key ring has at most 64 keys; remove the oldest",
                {.path = "keys"});
  for (const auto& [other_id, other] : keys_) {
    if (other_id == id)
      throw error(errc::duplicate,
                  "the key id '" + id + "' is used twice; give each key its own id",
                  {.path = "keys"});
    if (other == key) {
      std::string message = "the keys '";
      message.append(other_id).append("' and '").append(id).append("' are the same; remove one");
      throw error(errc::duplicate, message, {.path = "keys"});
    }
  }
  keys_.emplace_back(std::move(id), std::move(key));
  return *this;
}

sealing_ring sealing_ring::from_text(std::string_view text) {
  if (text.size() > max_ring_text)
    throw error(errc::too_large, "the keys are longer than 64 KiB; is it the right file?",
                {.path = "keys"});
  sealing_ring ring;
  while (!text.empty()) {
    const auto end = text.find_first_of("\n,");
    const auto line = detail::trimmed(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty() || line.front() == '#') continue;
    const auto colon = line.find(':');
    if (colon == std::string_view::npos) {
      throw error(errc::invalid_argument, "a key has no id; write one key per line, as id:key",
                  {.path = "keys"});
    }
    ring.add(std::string(detail::trimmed(line.substr(0, colon))),
             sealing_key::from_base64(detail::trimmed(line.substr(colon + 1))));
  }
  if (ring.empty())
    throw error(errc::invalid_argument,
                "there is no key; write one per line, as id:key, the current one first",
                {.path = "keys"});
  return ring;
}

sealing_ring sealing_ring::from_file(const std::filesystem::path& file) {
  const auto text = detail::read_key_file(file.string(), max_ring_text);
  return from_text(text.view());
}

sealing_ring sealing_ring::from_environment(const std::string& variable) {
  // The message does not repeat the name: it may be the keys themselves.
  if (detail::without_secrets(variable) != variable ||
      variable.find_first_of(":=,\n") != std::string::npos)
    throw error(errc::invalid_argument,
                "the keys are in an environment variable: give its name, not the keys",
                {.path = "keys"});
  // This library never sets variables.
  // NOLINTNEXTLINE(concurrency-mt-unsafe)
  const char* text = std::getenv(variable.c_str());
  if (text == nullptr)
    throw error(errc::not_found,
                "the environment variable " + variable + " with the keys is not set");
  return from_text(text);
}

sealing_ring sealing_ring::from_callback(const std::function<std::string()>& load_keys) {
  const detail::secret_text text(load_keys());
  return from_text(text.view());
}

}  // namespace HOLDFAST_NAMESPACE
