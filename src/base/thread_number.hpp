#pragma once

#include <holdfast/version.hpp>

#include <atomic>
#include <cstddef>

namespace HOLDFAST_NAMESPACE {

/// Threads are numbered as they come: each begins to look at another place, so that they do not meet. Nothing more is kept of them.
inline std::size_t thread_number() noexcept {
  static std::atomic<std::size_t> threads{0};
  thread_local const std::size_t mine = threads.fetch_add(1, std::memory_order_relaxed);
  return mine;
}

}  // namespace HOLDFAST_NAMESPACE
