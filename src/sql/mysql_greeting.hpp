#pragma once

/// \file
/// The first packet of a MySQL or MariaDB server, as far as it must be known before the client library reads it.

#include <holdfast/version.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace HOLDFAST_NAMESPACE::sql::mysql {

/// Bytes of the longest first packet that is accepted. Greetings have about 100, errors at most 521.
inline constexpr std::size_t longest_greeting = 1024;

enum class greeting : std::uint8_t {
  incomplete,     ///< more bytes must arrive
  offers_tls,     ///< the server can encrypt
  without_tls,    ///< the server cannot
  failure,        ///< an error packet, for the client library to explain
  not_a_greeting  ///< the client library must not see it: it takes other versions of the protocol for plaintext, and progress crashes it
};

/// Reads the beginning of what a server sent. Looks at nothing behind the first packet, as the client library does.
[[nodiscard]] HOLDFAST_API greeting read_greeting(std::span<const std::byte> bytes) noexcept;

}  // namespace HOLDFAST_NAMESPACE::sql::mysql
