#include "sql/mysql_greeting.hpp"

#include <algorithm>

namespace HOLDFAST_NAMESPACE::sql::mysql {

greeting read_greeting(std::span<const std::byte> bytes) noexcept {
  // Header (length 3, sequence 1), protocol 1, version text with its NUL, thread id 4, challenge 8, filler 1, capabilities 2, ...
  constexpr std::size_t header = 4;
  constexpr std::size_t after_version = 4 + 8 + 1;
  constexpr std::byte protocol_10{10};
  constexpr std::byte tls_in_second_byte{0x08};  // CLIENT_SSL is 0x0800
  if (bytes.size() <= header) return greeting::incomplete;
  if (bytes[header] != protocol_10) return greeting::other;
  const auto version = bytes.subspan(header + 1);
  const auto end = std::find(version.begin(), version.end(), std::byte{0});
  const auto capabilities = static_cast<std::size_t>(end - version.begin()) + 1 + after_version;
  if (end == version.end() || version.size() < capabilities + 2)
    return bytes.size() >= longest_greeting ? greeting::without_tls : greeting::incomplete;
  return (version[capabilities + 1] & tls_in_second_byte) != std::byte{0} ? greeting::offers_tls : greeting::without_tls;
}

}  // namespace HOLDFAST_NAMESPACE::sql::mysql
