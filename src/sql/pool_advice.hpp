#pragma once

#include <holdfast/database.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace HOLDFAST_NAMESPACE::sql {

/// How widely calls are scattered on one database, as far as its pool is concerned.
struct scatter_figures {
  std::chrono::milliseconds deadline{};  ///< the shortest of a whole scatter; 0: there is none
  std::size_t widest = 0;                ///< the most slices that one scatter runs at once; 0: there is none
};

/// What will go wrong under load with this pool and these scatters: one line each, for the log at start-up. None when all is well.
[[nodiscard]] HOLDFAST_API std::vector<std::string> advise(const pool_options& pool, const scatter_figures& scatter);

}  // namespace HOLDFAST_NAMESPACE::sql
