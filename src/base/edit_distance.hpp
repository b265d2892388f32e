#pragma once

/// \file
/// Edit distance, to suggest the word that a misspelled one stands for.

#include <holdfast/version.hpp>

#include <cstddef>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail {

/// The number of characters to insert, remove, replace, or swap with their neighbour to make `b` of
/// `a`.
[[nodiscard]] HOLDFAST_API std::size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace HOLDFAST_NAMESPACE::detail
