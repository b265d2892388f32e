#pragma once

/// \file
/// id_generator: a concept for code that needs ids and does not care where they come from. A
/// sequence, a handle of a sequence and the small generators below satisfy it.

#include <holdfast/version.hpp>

#include <atomic>
#include <concepts>
#include <cstdint>
#include <string>

namespace HOLDFAST_NAMESPACE {

/// A type whose `next()` returns a new id, different from all others.
template <class T>
concept id_generator = requires(T& ids) {
  typename T::id_type;
  { ids.next() } -> std::same_as<typename T::id_type>;
};

/// Counts in this process and starts again with the next one: for tests of code that takes an
/// id_generator.
/// Thread-safety: every function may be called from any thread. After fork both processes continue
/// with the same id.
class local_ids {
 public:
  using id_type = std::int64_t;

  explicit local_ids(std::int64_t start = 1) noexcept : next_(start) {}
  std::int64_t next() noexcept { return next_.fetch_add(1, std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> next_;
};

/// UUIDs of version 4: random, in no order, without a store. 36 characters each.
/// Thread-safety: every function may be called from any thread.
class HOLDFAST_API uuid_v4_ids {
 public:
  using id_type = std::string;

  /// Throws errc::internal if the system cannot provide random numbers.
  std::string next();
};

/// UUIDs of version 7: ordered by time, without a store. Each is larger, as text and as bytes, than
/// all that were made before in this process, even if the clock goes back. 36 characters each.
/// Thread-safety: every function may be called from any thread. After fork the two processes make
/// different ids.
class HOLDFAST_API uuid_v7_ids {
 public:
  using id_type = std::string;

  /// Throws errc::internal if the system cannot provide random numbers.
  std::string next();
};

}  // namespace HOLDFAST_NAMESPACE
