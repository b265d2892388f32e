#pragma once

/// \file
/// The slot map of a Cluster: which node serves which slot.

#include <holdfast/redis.hpp>

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::redis {

/// Thread-safety: as a value.
class HOLDFAST_API slot_map {
 public:
  static constexpr std::size_t slots = 16384;

  slot_map() { owner_.fill(no_owner); }
  /// Reads the reply to CLUSTER SLOTS that `node` sent. Throws errc::malformed, or the error that
  /// the reply holds.
  slot_map(const reply& answer, std::string_view node,
           const std::function<std::string(const std::string&)>& translate = {});

  /// Returns the address of the master of a slot, or null.
  [[nodiscard]] const std::string* master_of(std::uint16_t slot) const noexcept {
    const auto owner = owner_[slot];
    return owner == no_owner ? nullptr : &nodes_[owner].address;
  }
  /// Makes a node the master of a slot.
  void move(std::uint16_t slot, const std::string& address);
  [[nodiscard]] const std::vector<node>& nodes() const noexcept { return nodes_; }
  /// Returns the number of slots that have a master.
  [[nodiscard]] std::size_t covered() const noexcept;

 private:
  static constexpr std::uint16_t no_owner = 0xFFFF;
  std::uint16_t find_or_add(const std::string& address, bool master);

  std::vector<node> nodes_{};
  std::array<std::uint16_t, slots> owner_{};  // index in nodes_
};

}  // namespace HOLDFAST_NAMESPACE::detail::redis
