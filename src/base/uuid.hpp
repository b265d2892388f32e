#pragma once

/// \file
/// UUIDs of RFC 9562, as text in lower case with hyphens.

#include <holdfast/version.hpp>

#include "base/hex.hpp"

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail {

using uuid_bytes = std::array<std::uint8_t, 16>;

/// The text of a UUID: `550e8400-e29b-41d4-a716-446655440000`.
[[nodiscard]] inline std::string uuid_text(const uuid_bytes& bytes) {
  char hex[32];   // NOLINT(*-avoid-c-arrays)
  char text[36];  // NOLINT(*-avoid-c-arrays)
  to_hex(bytes.data(), bytes.size(), hex);
  std::memcpy(text, hex, 8);
  text[8] = '-';
  std::memcpy(text + 9, hex + 8, 4);
  text[13] = '-';
  std::memcpy(text + 14, hex + 12, 4);
  text[18] = '-';
  std::memcpy(text + 19, hex + 16, 4);
  text[23] = '-';
  std::memcpy(text + 24, hex + 20, 12);
  return {text, sizeof text};
}
/// Returns true if the text is 8-4-4-4-12 hexadecimal digits in lower case.
[[nodiscard]] HOLDFAST_API bool is_uuid(std::string_view text) noexcept;

/// A random UUID. Throws errc::internal if the system cannot provide random numbers.
[[nodiscard]] HOLDFAST_API uuid_bytes uuid_v4_bytes();
[[nodiscard]] HOLDFAST_API std::string uuid_v4();

/// A UUID that is ordered by wall time in milliseconds, then by a counter. It is larger, as bytes
/// and as text, than all earlier ones of this process, even if the clock goes back. After fork,
/// parent and child create different UUIDs.
/// Thread-safety: may be called from any thread.
[[nodiscard]] HOLDFAST_API uuid_bytes uuid_v7_bytes();
[[nodiscard]] HOLDFAST_API std::string uuid_v7();

/// The UUID of a name in a namespace (SHA-1). The same name always has the same UUID.
[[nodiscard]] HOLDFAST_API std::string uuid_v5(const uuid_bytes& name_space, std::string_view name);
/// The namespace OID of RFC 9562, for names that are not DNS names, URLs or X.500 names.
inline constexpr uuid_bytes uuid_namespace_oid{0x6b, 0xa7, 0xb8, 0x12, 0x9d, 0xad, 0x11, 0xd1,
                                               0x80, 0xb4, 0x00, 0xc0, 0x4f, 0xd4, 0x30, 0xc8};

}  // namespace HOLDFAST_NAMESPACE::detail
