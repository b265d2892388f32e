#pragma once

/// \file
/// Numbers of threads, to spread them over shards.

#include <holdfast/version.hpp>

#include <atomic>
#include <cstddef>

namespace HOLDFAST_NAMESPACE::detail {

/// The number of the calling thread: 0 for the first thread that calls this, then 1, 2, ...
inline std::size_t thread_number() noexcept {
  static std::atomic<std::size_t> threads{0};
  thread_local const std::size_t number = threads.fetch_add(1, std::memory_order_relaxed);
  return number;
}

}  // namespace HOLDFAST_NAMESPACE::detail
