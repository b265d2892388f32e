#pragma once

/// \file
/// Examines the first packet of a server before the client library reads it.

#include <holdfast/version.hpp>

#include "sql/public_names.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace HOLDFAST_NAMESPACE::detail::sql::mysql {

/// The bytes of the longest first packet that is accepted. Greetings have about 100, errors at most
/// 521.
inline constexpr std::size_t longest_greeting = 1024;

enum class greeting : std::uint8_t {
  incomplete,   ///< more bytes must arrive
  offers_tls,   ///< the server can encrypt
  without_tls,  ///< the server cannot encrypt
  failure,      ///< an error packet; the client library explains it
  /// The client library must not read it: after another version of the protocol it does not use
  /// TLS, and a progress report crashes it.
  not_a_greeting
};

/// Reads the beginning of what a server sent. Like the client library, it ignores everything after
/// the first packet.
[[nodiscard]] HOLDFAST_API greeting read_greeting(std::span<const std::byte> bytes) noexcept;

}  // namespace HOLDFAST_NAMESPACE::detail::sql::mysql
