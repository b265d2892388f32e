#include <holdfast/error.hpp>
#include <holdfast/key/redis.hpp>

#include "base/utf8.hpp"

#include <algorithm>
#include <array>

namespace HOLDFAST_NAMESPACE::key {

namespace {

constexpr std::uint16_t slot_count = 16384;
constexpr std::size_t max_prefix_size = 200;

/// CRC16/XMODEM: polynomial 0x1021, initial value 0.
constexpr std::array<std::uint16_t, 256> crc_table = [] {
  std::array<std::uint16_t, 256> table{};
  for (unsigned i = 0; i < 256; ++i) {
    unsigned crc = i << 8U;
    for (int bit = 0; bit < 8; ++bit)
      crc = (crc & 0x8000U) != 0 ? (crc << 1U) ^ 0x1021U : crc << 1U;
    table[i] = static_cast<std::uint16_t>(crc);
  }
  return table;
}();

std::uint16_t crc16(std::string_view bytes) noexcept {
  unsigned crc = 0;
  for (const char c : bytes)
    crc = ((crc << 8U) & 0xFFFFU) ^ crc_table[(crc >> 8U) ^ static_cast<unsigned char>(c)];
  return static_cast<std::uint16_t>(crc);
}

/// The hash tag, or the whole key if it has none.
std::string_view hashed_part(std::string_view key) noexcept {
  const auto open = key.find('{');
  if (open == std::string_view::npos) return key;
  const auto close = key.find('}', open + 1);
  if (close == std::string_view::npos || close == open + 1) return key;
  return key.substr(open + 1, close - open - 1);
}

}  // namespace

std::uint16_t redis_slot(std::string_view key) noexcept {
  return crc16(hashed_part(key)) % slot_count;
}

redis_prefix::redis_prefix(std::string_view text) : text_(text), slot_(redis_slot(text)) {
  const auto fail = [](const std::string& message) {
    throw error(errc::invalid_argument, message, {.path = "prefix"});
  };
  if (text.empty()) fail("the prefix is empty; use one with a hash tag, like {identity:outbox}");
  if (text.size() > max_prefix_size)
    fail("the prefix has " + std::to_string(text.size()) + " bytes; at most " +
         std::to_string(max_prefix_size) + " are allowed");
  if (!holdfast::detail::is_utf8(text)) fail("the prefix is not well-formed UTF-8");
  const auto unprintable = [](char c) {
    return static_cast<unsigned char>(c) <= 0x20 || c == 0x7F;
  };
  if (std::any_of(text.begin(), text.end(), unprintable))
    fail("the prefix contains a space or a control character; remove it");
  const auto opens = std::count(text.begin(), text.end(), '{');
  const auto closes = std::count(text.begin(), text.end(), '}');
  if (opens == 0 || closes == 0)
    fail(
        "the prefix has no hash tag, so its keys would be scattered over the cluster; put braces "
        "around a part, like {identity:outbox}");
  if (opens != 1 || closes != 1)
    fail("the prefix must have exactly one hash tag and no other brace");
  if (text.find('}') < text.find('{')) fail("the prefix has a '}' before its '{'; swap them");
  if (tag().empty())
    fail(
        "the hash tag of the prefix is empty, so it would have no effect; put a name between the "
        "braces");
}

std::string_view redis_prefix::tag() const noexcept {
  const auto open = text_.find('{');
  return std::string_view(text_).substr(open + 1, text_.find('}') - open - 1);
}

outbox_keys::outbox_keys(const redis_prefix& prefix)
    : entries_(prefix.text() + ":entries"),
      pending_(prefix.text() + ":pending"),
      expiry_due_(prefix.text() + ":expiry-due"),
      lock_(prefix.text() + ":lock"),
      slot_(prefix.slot()) {}

}  // namespace HOLDFAST_NAMESPACE::key
