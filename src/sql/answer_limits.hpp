#pragma once

/// \file
/// How much memory a server can make a client use. No honest answer comes near: these are against servers that send without end.

#include <holdfast/version.hpp>

#include <cstddef>

namespace HOLDFAST_NAMESPACE::sql {

/// The most that an answer without rows may need: a login, or the 65,535 parameters and 4,096 columns of a statement.
inline constexpr std::size_t largest_answer = std::size_t{16} << 20U;
/// The most that the rows of one statement may need, as they arrive, and once more as values.
inline constexpr std::size_t largest_result = std::size_t{512} << 20U;

}  // namespace HOLDFAST_NAMESPACE::sql
