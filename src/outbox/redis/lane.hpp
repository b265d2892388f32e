#pragma once

/// \file
/// The keys of a lane: the four of the published design (entries, pending, expiry-due, lock) and
/// nine more under the same hash tag. docs/outbox.md says what each of them holds.

#include <holdfast/redis.hpp>
#include <holdfast/version.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::outbox {

struct redis_lane {
  /// In the order of KEYS in the scripts; see keys.lua.
  enum key : std::uint8_t {
    entries,
    pending,
    expiry_due,
    lock,
    claims,
    heads,
    followers,
    parked,
    done,
    errors,
    tickets,
    meta,
    wake
  };
  static constexpr std::size_t key_count = 13;

  std::string prefix{};
  std::array<std::string, key_count> keys{};

  [[nodiscard]] const std::string& operator[](key name) const { return keys.at(name); }
};

/// A single lane has the prefix unchanged. Of several, lane i has `:i.salt` at the end of its hash
/// tag, with the smallest salt that puts it into the i-th part of the slots, so that lanes are
/// spread over the masters of a Cluster. Throws errc::invalid_argument if the prefix is invalid.
[[nodiscard]] HOLDFAST_API std::vector<redis_lane> make_lanes(std::string_view prefix,
                                                              std::size_t count);

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
