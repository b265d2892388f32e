#pragma once

/// \file
/// UUIDs as RFC 9562 has them, in lower case with hyphens.

#include <holdfast/version.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE {

using uuid_bytes = std::array<std::uint8_t, 16>;

/// The 36 characters of a UUID.
[[nodiscard]] HOLDFAST_API std::string uuid_text(const uuid_bytes& bytes);
/// Is it 8-4-4-4-12 hexadecimal digits in lower case?
[[nodiscard]] HOLDFAST_API bool is_uuid(std::string_view text) noexcept;

/// Random. Throws errc::internal when the system has no random numbers.
[[nodiscard]] HOLDFAST_API std::string uuid_v4();

/// By time (wall clock, milliseconds), then by a counter: larger, as bytes and as text, than every one made before in this process, also when
/// the clock goes back. Thread-safety: any thread. After fork, parent and child make different ones.
[[nodiscard]] HOLDFAST_API std::string uuid_v7();

/// By SHA-1 of a namespace and a name: the same for the same.
[[nodiscard]] HOLDFAST_API std::string uuid_v5(const uuid_bytes& space, std::string_view name);
/// The namespace for names that are no DNS name, URL or X.500 name (RFC 9562: OID).
inline constexpr uuid_bytes uuid_namespace_oid{0x6b, 0xa7, 0xb8, 0x12, 0x9d, 0xad, 0x11, 0xd1,
                                               0x80, 0xb4, 0x00, 0xc0, 0x4f, 0xd4, 0x30, 0xc8};

}  // namespace HOLDFAST_NAMESPACE
