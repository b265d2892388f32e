// Any bytes, read as a stored payload, by a store that allows everything it can; and as a payload
// to be sealed, and as a key ring.

#include <holdfast/store/sealed.hpp>

#include "support/model_store.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

namespace {

using holdfast::errc;

void require(bool condition) {
  if (!condition) std::abort();
}

holdfast::entry make(std::string payload) {
  const auto now = holdfast::system_clock()->now();
  holdfast::entry made{
      .name = "n", .key = "k", .as_of = now, .expire_on = now + std::chrono::hours(1)};
  made.payload = std::move(payload);
  made.payload_class = "c";
  return made;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string input(reinterpret_cast<const char*>(data), size);
  static const auto below = std::make_shared<holdfast::test::model_store>();
  static const auto sealed =
      holdfast::make_sealed(below, {.keys = holdfast::sealing_ring::from_text(
                                        "k1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n"
                                        "aesgcm:ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8="),
                                    .read_java = true,
                                    .read_base64 = true,
                                    .read_plaintext = true});
  // What others may have stored.
  const auto stored = make(input);
  below->put({&stored, 1});
  try {
    const auto found = sealed->find("n", "k");
    require(found.has_value());
    require(input.starts_with("ENC(") || found->payload == input);
  } catch (const holdfast::error& refused) {
    const auto code = refused.code();
    require(code == errc::malformed || code == errc::tampered || code == errc::not_found);
    require(refused.path() == "n/k");
    require(input.starts_with("ENC("));
  }
  // What is sealed comes back, and only whole.
  sealed->put(stored);
  auto raw = below->find("n", "k").value();
  require(sealed->find("n", "k").value().payload == input);
  raw.payload->erase(raw.payload->size() / 2, 1);
  below->put({&raw, 1});
  try {
    (void)sealed->find("n", "k");
    std::abort();
  } catch (const holdfast::error&) {  // NOLINT(bugprone-empty-catch): as it should be
  }
  try {
    require(!holdfast::sealing_ring::from_text(input).empty());
  } catch (const holdfast::error&) {  // NOLINT(bugprone-empty-catch): most are none
  }
  return 0;
}
