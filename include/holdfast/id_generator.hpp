#pragma once

/// \file
/// Whatever makes ids, so that a class can take any of it: a sequence, a handle of one, a counter in this process for tests, UUIDs.

#include <holdfast/version.hpp>

#include <atomic>
#include <concepts>
#include <cstdint>
#include <string>

namespace HOLDFAST_NAMESPACE {

/// Makes ids, one at a time, each different from all others. `sequence`, `sequence_handle` and the classes below are such.
template <class T>
concept id_generator = requires(T& ids) {
  typename T::id_type;
  { ids.next() } -> std::same_as<typename T::id_type>;
};

/// Counts in this process, and forgets with it: for tests of code that takes an id_generator.
/// Thread-safety: every function may be called from any thread. After fork both processes count on from the same id.
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

  /// Throws errc::internal when the system has no random numbers.
  std::string next();
};

/// UUIDs of version 7: by time, without a store; each is larger, as text and as bytes, than all that were made before in this process, also when the clock
/// goes back. 36 characters each.
/// Thread-safety: every function may be called from any thread. After fork both processes make different ones.
class HOLDFAST_API uuid_v7_ids {
 public:
  using id_type = std::string;

  /// Throws errc::internal when the system has no random numbers.
  std::string next();
};

}  // namespace HOLDFAST_NAMESPACE
