#pragma once

/// \file
/// The first packet of a MySQL or MariaDB server, as far as it must be known before anything is answered.

#include <holdfast/version.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace HOLDFAST_NAMESPACE::sql::mysql {

/// Bytes of the greeting that are looked at. The version of a server is shorter by far.
inline constexpr std::size_t longest_greeting = 512;

enum class greeting : std::uint8_t {
  incomplete,   ///< more bytes must arrive
  offers_tls,   ///< the server can encrypt
  without_tls,  ///< the server cannot, or its greeting is too long to be one
  other         ///< not a greeting: an error packet, or another protocol. The client library answers neither
};

/// Reads the beginning of what a server sent.
[[nodiscard]] HOLDFAST_API greeting read_greeting(std::span<const std::byte> bytes) noexcept;

}  // namespace HOLDFAST_NAMESPACE::sql::mysql
