#pragma once

/// \file
/// Packets of a MySQL or MariaDB server that a test plays.

#include <cstddef>
#include <cstdint>
#include <string>

namespace holdfast::test::mysql_wire {

using namespace std::string_literals;

inline constexpr std::uint32_t offers_tls = 0x800;

inline std::string packet(std::uint8_t sequence, const std::string& payload) {
  std::string bytes;
  for (unsigned shift = 0; shift < 24; shift += 8)
    bytes += static_cast<char>((payload.size() >> shift) & 0xFFU);
  return bytes + static_cast<char>(sequence) + payload;
}

/// From a client of a recording_server, or a session on top of it.
template <class Source>
std::string read_packet(Source& from) {
  const auto header = from.receive(4);
  if (header.size() < 4) return {};
  const auto byte = [&](std::size_t i) {
    return static_cast<std::size_t>(static_cast<unsigned char>(header[i]));
  };
  return from.receive(byte(0) | byte(1) << 8U | byte(2) << 16U);
}

/// For `dialog` the challenge is a question: 4 asks for the password.
inline std::string greeting(const std::string& plugin, std::uint32_t more_capabilities = 0,
                            char version = 10) {
  constexpr std::uint32_t long_password = 0x1;
  constexpr std::uint32_t with_database = 0x8;
  constexpr std::uint32_t protocol_41 = 0x200;
  constexpr std::uint32_t secure_connection = 0x8000;
  constexpr std::uint32_t plugin_auth = 0x80000;
  const std::uint32_t capabilities = long_password | with_database | protocol_41 |
                                     secure_connection | plugin_auth | more_capabilities;
  const auto byte = [&](unsigned shift) {
    return std::string(1, static_cast<char>((capabilities >> shift) & 0xFFU));
  };
  return packet(0, std::string(1, version) + "10.11.0-MariaDB\0"s + "\1\0\0\0"s +
                       (plugin == "dialog" ? "\4"s : "a"s) + "bcdefgh\0"s + byte(0) + byte(8) +
                       "\x2d\2\0"s + byte(16) + byte(24) + "\x15"s + std::string(10, '\0') +
                       "ijklmnopqrst\0"s + plugin + "\0"s);
}

/// Asks for another login method than the one of the greeting.
inline std::string switch_to(const std::string& plugin) {
  return "\xfe"s + plugin + "\0abcdefghijklmnopqrst\0"s;
}

inline const std::string refused = "\xff\x15\x04#28000Access denied"s;
inline const std::string fine = "\0\0\0\2\0\0\0"s;
inline const std::string end_of_rows = "\xfe\0\0\2\0"s;
/// A column of text.
inline const std::string column = "\3def\0\0\0\1a\0\x0c\x21\0\xff\0\0\0\xfd\0\0\0\0\0"s;

}  // namespace holdfast::test::mysql_wire
