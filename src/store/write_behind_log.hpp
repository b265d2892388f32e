#pragma once

#include <holdfast/store.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::behind {

/// A put or an erase on its way to the store.
struct operation {
  enum class kind : std::uint8_t {
    none,  ///< not needed any more; its place is freed when its turn comes
    put,
    erase,  ///< of `what` only place, key and as_of count
    lapse   ///< a put that expired while it waited: not written, but what it would have replaced must go
  };

  entry what{};
  kind does = kind::none;
  std::uint64_t sequence = 0;  ///< the order of arrival; the log gives it, from 1 on
  std::uint64_t earlier = 0;   ///< the operation of the same key queued before this one; 0 or gone: none
  std::uint64_t in_bucket = 0;
  std::size_t hash = 0;
  std::size_t bytes = 0;
  bool clears = false;  ///< a put that took the place of an erase: if it cannot be written, what was to be erased must go all the same
  std::chrono::steady_clock::time_point since{};  ///< its key is unsaved since then
};

[[nodiscard]] std::size_t hash_of(place where, std::string_view key) noexcept;
/// The memory an operation takes, all told.
[[nodiscard]] std::size_t bytes_of(const entry& what) noexcept;
[[nodiscard]] inline bool is_about(const entry& what, place where, std::string_view key) noexcept {
  return what.key == key && what.name == where.name && what.realm == where.realm;
}

/// Operations in the order of their arrival, found by key: a ring and a hash index into it. In steady state nothing here allocates.
/// Thread-safety: none.
class operation_log {
 public:
  /// The latest operation of a key, or null.
  [[nodiscard]] operation* latest(std::size_t hash, place where, std::string_view key) noexcept;
  /// Null when it was taken or is not needed any more.
  [[nodiscard]] operation* at(std::uint64_t sequence) noexcept;

  /// Makes sure that so many can be added without a failure.
  void reserve(std::size_t more);
  /// Adds it at the end; `before` is the latest of its key, or null. There must be room: see reserve().
  operation& push(operation&& one, operation* before) noexcept;
  /// Takes the oldest out; false when there is none. Places of operations that are not needed any more are freed on the way.
  bool pop(operation& into) noexcept;
  /// The oldest, or null.
  [[nodiscard]] const operation* front() noexcept;
  /// Not needed any more. It must be the first of its key, or not the latest.
  void kill(operation& one) noexcept;
  void resized(operation& one) noexcept;  ///< to be called when `what` has changed

  [[nodiscard]] std::size_t places() const noexcept { return static_cast<std::size_t>(tail_ - head_); }  ///< used, the freed ones included
  [[nodiscard]] std::size_t live() const noexcept { return live_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::uint64_t next_sequence() const noexcept { return tail_; }
  /// Live operations that arrived before.
  [[nodiscard]] std::size_t before(std::uint64_t sequence) noexcept;

 private:
  [[nodiscard]] operation& place_of(std::uint64_t sequence) noexcept { return ring_[sequence & (ring_.size() - 1)]; }
  void grow();
  void link(operation& one) noexcept;
  void unlink(const operation& one) noexcept;
  void drop_freed() noexcept;

  std::vector<operation> ring_{};         // its size is a power of two
  std::vector<std::uint64_t> buckets_{};  // as many as the ring has places: sequence of the first, 0 for none
  std::uint64_t head_ = 1;
  std::uint64_t tail_ = 1;
  std::size_t live_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace HOLDFAST_NAMESPACE::behind
