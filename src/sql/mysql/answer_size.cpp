#include "sql/mysql/answer_size.hpp"

#include <algorithm>

namespace HOLDFAST_NAMESPACE::detail::sql::mysql {

void answer_size::add(std::span<const std::byte> bytes) noexcept {
  constexpr std::size_t header_size = 4;  // length 3, sequence 1
  constexpr std::uint32_t length_mask = 0xff'ffff;
  cost_ += bytes.size();
  while (!bytes.empty()) {
    const auto skipped = std::min(payload_missing_, bytes.size());
    payload_missing_ -= skipped;
    bytes = bytes.subspan(skipped);
    while (!bytes.empty() && payload_missing_ == 0 && header_bytes_ < header_size) {
      header_ |= std::to_integer<std::uint32_t>(bytes.front()) << (8 * header_bytes_);
      ++header_bytes_;
      bytes = bytes.subspan(1);
    }
    if (header_bytes_ < header_size) continue;
    cost_ += cost_of_packet;
    payload_missing_ = header_ & length_mask;
    header_ = 0;
    header_bytes_ = 0;
  }
}

}  // namespace HOLDFAST_NAMESPACE::detail::sql::mysql
