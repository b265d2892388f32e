#pragma once

/// \file
/// Finds duplicate keys of a decoded map.

#include <holdfast/key/value.hpp>
#include <holdfast/version.hpp>

#include <optional>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::cachekit {

using namespace holdfast::key;

/// Returns the position of an entry that has the same key as an earlier entry. Floats are compared
/// by their bits, so that NaN equals itself. The keys must be of types that MessagePack can carry.
/// Takes linear time for ascending keys, which canonical writers produce, otherwise n log n.
[[nodiscard]] std::optional<std::size_t> find_duplicate_key(
    const std::vector<std::pair<value, value>>& entries);

}  // namespace HOLDFAST_NAMESPACE::detail::cachekit
