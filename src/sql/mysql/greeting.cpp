#include "sql/mysql/greeting.hpp"

#include <algorithm>

namespace HOLDFAST_NAMESPACE::detail::sql::mysql {

namespace {

/// Reads an error packet. The error number 0xffff reports the progress of a statement, and a server
/// that greets does not run a statement.
greeting read_failure(std::span<const std::byte> payload) noexcept {
  constexpr std::byte progress{0xff};
  if (payload.size() < 3) return greeting::incomplete;
  return payload[1] == progress && payload[2] == progress ? greeting::not_a_greeting
                                                          : greeting::failure;
}

greeting read_protocol_10(std::span<const std::byte> payload) noexcept {
  // Fields and their bytes: protocol 1, version text and NUL, thread id 4, challenge 8, filler 1,
  // capabilities 2, ...
  constexpr std::size_t after_version = 4 + 8 + 1;
  constexpr std::byte tls_in_second_byte{0x08};  // of the capabilities: CLIENT_SSL is 0x0800
  const auto version = payload.subspan(1);
  const auto end = std::find(version.begin(), version.end(), std::byte{0});
  const auto capabilities = static_cast<std::size_t>(end - version.begin()) + 1 + after_version;
  if (end == version.end() || version.size() < capabilities + 2) return greeting::incomplete;
  return (version[capabilities + 1] & tls_in_second_byte) != std::byte{0} ? greeting::offers_tls
                                                                          : greeting::without_tls;
}

}  // namespace

greeting read_greeting(std::span<const std::byte> bytes) noexcept {
  constexpr std::size_t header_size = 4;  // length 3, sequence 1
  constexpr std::byte error_packet{0xff};
  constexpr std::byte protocol_10{10};
  if (bytes.size() < header_size) return greeting::incomplete;
  const auto length = std::to_integer<std::size_t>(bytes[0]) |
                      std::to_integer<std::size_t>(bytes[1]) << 8U |
                      std::to_integer<std::size_t>(bytes[2]) << 16U;
  if (length == 0 || length > longest_greeting) return greeting::not_a_greeting;
  const auto payload = bytes.subspan(header_size, std::min(length, bytes.size() - header_size));
  if (payload.empty()) return greeting::incomplete;
  if (payload[0] != error_packet && payload[0] != protocol_10) return greeting::not_a_greeting;
  const auto kind = payload[0] == error_packet ? read_failure(payload) : read_protocol_10(payload);
  const bool complete = payload.size() == length;
  return complete && kind == greeting::incomplete ? greeting::not_a_greeting : kind;
}

}  // namespace HOLDFAST_NAMESPACE::detail::sql::mysql
