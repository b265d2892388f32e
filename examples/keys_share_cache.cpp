// One cache for services in several languages: the key, the value, and what protects it on the way.

#include <holdfast/cachekit.hpp>
#include <holdfast/key.hpp>

#include <iostream>
#include <map>
#include <string>

namespace key = holdfast::key;

int main() {
  // region value
  const std::string cache_key = key::interop("users", "get_user", 42);
  const std::map<std::string, std::string> user{{"name", "Alice"}, {"city", "Paris"}};
  // One MessagePack document, the same in every language
  const key::byte_string document = key::encode_value(user);

  const key::value back = key::decode_value(document);
  std::cout << document.size() << " bytes, "
            << (back == key::to_value(user) ? "same value" : "another value") << '\n';
  // endregion

  // region envelope
  const key::byte_string text(1000, std::byte{'x'});
  const key::byte_string packed = key::wrap(text);  // LZ4, and a checksum of what it unpacks to
  const key::unwrapped again = key::unwrap(packed);
  std::cout << text.size() << " bytes packed to " << packed.size() << ", format " << again.format
            << '\n';
  // endregion

  // region frame
  const key::byte_string stored = key::wrap_frame(document);  // under a key of auto mode
  std::cout << (key::unwrap_frame(stored) == document ? "the same document" : "another document")
            << '\n';
  // endregion

  // region encryption
  // In a service: the 64 digits of CACHEKIT_MASTER_KEY, made with `openssl rand -hex 32`.
  const auto old_key = key::master_key::from_hex(std::string(64, 'a'));
  const auto new_key = key::master_key::from_hex(std::string(64, 'b'));

  const key::value_cipher before(key::key_ring(old_key), "acme");
  const key::byte_string sealed = before.seal(document, cache_key);

  // rotated: seals with the new key, opens both
  const key::value_cipher after(key::key_ring(new_key, {old_key}), "acme");
  std::cout << (after.open(sealed, cache_key) == document ? "opened with the old key" : "damaged")
            << '\n';

  try {
    // The value was moved to another key
    static_cast<void>(after.open(sealed, key::interop("users", "get_user", 43)));
  } catch (const holdfast::error& refused) {
    std::cout << to_string(refused.code()) << '\n';
  }
  // endregion
}
