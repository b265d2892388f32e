#pragma once

/// \file
/// Finds a key that a map holds twice, without comparing each with each.

#include <holdfast/key/value.hpp>
#include <holdfast/version.hpp>

#include <optional>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::key {

/// The position of an entry whose key an earlier entry already has. Floats are compared by their bits, so that NaN equals itself.
/// Only for keys that MessagePack can carry. Linear when the keys ascend, as canonical writers leave them; n log n otherwise.
[[nodiscard]] std::optional<std::size_t> find_duplicate_key(const std::vector<std::pair<value, value>>& entries);

}  // namespace HOLDFAST_NAMESPACE::key
