#pragma once

/// \file
/// The keys of a lane: the seed's four, and those beside them under the same hash tag.

#include <holdfast/redis.hpp>
#include <holdfast/version.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::outboxes {

struct redis_lane {
  /// In the order in which the scripts expect them.
  enum key : std::uint8_t { entries, pending, expiry_due, lock, claims, heads, followers, parked, done, errors, tickets, meta, wake };
  static constexpr std::size_t key_count = 13;

  std::string prefix{};
  std::array<std::string, key_count> keys{};

  [[nodiscard]] const std::string& operator[](key which) const { return keys.at(which); }
};

/// One lane has the prefix as it is. Of several, lane i has `:i.salt` at the end of its tag, with the smallest salt that puts it into the i-th
/// part of the slots, so that lanes are spread over the masters of a Cluster. Throws errc::invalid_argument (prefix).
[[nodiscard]] HOLDFAST_API std::vector<redis_lane> make_lanes(std::string_view prefix, std::size_t lanes);

}  // namespace HOLDFAST_NAMESPACE::outboxes
