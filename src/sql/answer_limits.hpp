#pragma once

/// \file
/// How much memory a server can make a client use. Honest answers are much smaller: the limits are
/// against servers that send without an end.

#include <holdfast/version.hpp>

#include <cstddef>

namespace HOLDFAST_NAMESPACE::detail::sql {

/// The bytes of an answer without rows: a login, or the 65,535 parameters and 4,096 columns of a
/// statement.
inline constexpr std::size_t largest_answer = std::size_t{16} << 20U;
/// The bytes of the rows of one statement as they arrive, and once more as values.
inline constexpr std::size_t largest_result = std::size_t{512} << 20U;

}  // namespace HOLDFAST_NAMESPACE::detail::sql
