#pragma once

/// \file
/// uuid: 16 bytes that are different from all others, without a store (RFC 9562).

#include <holdfast/version.hpp>

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE {

/// A UUID as a value of 16 bytes. The default is the nil UUID, all zeros. Compared byte by byte,
/// which is also the order of the texts.
/// Thread-safety: as a value. The static functions may be called from any thread.
struct uuid {
  std::array<std::uint8_t, 16> bytes{};

  /// A random UUID. Throws errc::internal if the system cannot provide random numbers.
  [[nodiscard]] HOLDFAST_API static uuid v4();
  /// A UUID that is ordered by time. It is larger than all that were made before in this process,
  /// even if the clock goes back. After fork the two processes make different UUIDs. Throws as
  /// `v4`.
  [[nodiscard]] HOLDFAST_API static uuid v7();
  /// Reads `550e8400-e29b-41d4-a716-446655440000`, either case. Throws errc::invalid_argument.
  [[nodiscard]] HOLDFAST_API static uuid parse(std::string_view text);

  /// 36 characters, lower case with hyphens.
  [[nodiscard]] HOLDFAST_API std::string to_string() const;
  /// 4 for `v4`, 7 for `v7`.
  [[nodiscard]] constexpr int version() const noexcept { return bytes[6] >> 4U; }

  auto operator<=>(const uuid&) const = default;
};

}  // namespace HOLDFAST_NAMESPACE

template <>
struct std::hash<holdfast::uuid> {
  std::size_t operator()(const holdfast::uuid& id) const noexcept {
    // The last 8 bytes are random in both versions, but for two bits.
    std::uint64_t tail = 0;
    std::memcpy(&tail, id.bytes.data() + 8, sizeof tail);
    return std::hash<std::uint64_t>()(tail);
  }
};
