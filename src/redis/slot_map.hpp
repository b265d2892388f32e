#pragma once

/// \file
/// Which node of a Cluster serves which slot.

#include <holdfast/redis.hpp>

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::redis {

/// Thread-safety: as a value.
class HOLDFAST_API slot_map {
 public:
  static constexpr std::size_t slots = 16384;

  slot_map() { owner_.fill(nobody); }
  /// From the reply of CLUSTER SLOTS; `asked` is the node that sent it. Throws errc::malformed, or what the reply holds.
  slot_map(const reply& answer, std::string_view asked, const std::function<std::string(const std::string&)>& translate = {});

  /// The master of a slot, or null.
  [[nodiscard]] const std::string* master_of(std::uint16_t slot) const noexcept {
    const auto owner = owner_[slot];
    return owner == nobody ? nullptr : &nodes_[owner].address;
  }
  /// A node says that the slot is there.
  void move(std::uint16_t slot, const std::string& address);
  [[nodiscard]] const std::vector<node>& nodes() const noexcept { return nodes_; }
  [[nodiscard]] std::size_t covered() const noexcept;

 private:
  static constexpr std::uint16_t nobody = 0xFFFF;
  std::uint16_t index_of(const std::string& address, bool master);

  std::vector<node> nodes_{};
  std::array<std::uint16_t, slots> owner_{};
};

}  // namespace HOLDFAST_NAMESPACE::redis
