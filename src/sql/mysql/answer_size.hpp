#pragma once

/// \file
/// Counts the memory that an answer of a MySQL or MariaDB server costs, while it arrives.

#include <holdfast/version.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace HOLDFAST_NAMESPACE::detail::sql::mysql {

/// Counts the packets of one connection. The client library keeps each packet in structures of its
/// own, so a packet costs more than its bytes.
class HOLDFAST_API answer_size {
 public:
  static constexpr std::size_t cost_of_packet = 64;

  /// Starts the next answer. It may start inside a packet, because the client library reads ahead.
  void restart() noexcept { cost_ = 0; }
  /// Must get all bytes that arrive, in their order.
  void add(std::span<const std::byte> bytes) noexcept;
  [[nodiscard]] std::size_t cost() const noexcept { return cost_; }

 private:
  std::size_t cost_ = 0;
  std::uint32_t header_ = 0;         // the bytes of the header that have arrived, the first lowest
  std::size_t header_bytes_ = 0;     // their number
  std::size_t payload_missing_ = 0;  // bytes until the next header
};

}  // namespace HOLDFAST_NAMESPACE::detail::sql::mysql
