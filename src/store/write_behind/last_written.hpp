#pragma once

#include <holdfast/store.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <cstddef>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::store {

/// A digest of payload, class and tombstone. If two different answers have the same digest, the
/// second waits as if it were unchanged; it is not lost.
[[nodiscard]] std::size_t digest_of(const entry& e) noexcept;

/// Remembers the last written answer of a limited number of keys. A direct-mapped cache: a key
/// replaces another key of the same slot.
///
/// Each slot also has the newest version that was seen: read, or written by a key that lost the
/// slot. All keys of the slot share it, and it is never forgotten. The sharing can refuse a queued
/// answer because a newer version of another key was seen. That is harmless: answers queued during
/// an outage are newer than all that was seen before it.
/// Thread-safety: none.
class last_written {
 public:
  struct record {
    std::size_t hash = 0;
    std::size_t digest = 0;
    timestamp as_of{};
    timestamp expire_on{};
    std::chrono::steady_clock::time_point written_at{};
    /// False: only the version is known, not what is stored now.
    bool content_known = false;
    /// False: the slot is empty.
    bool used = false;
  };

  /// With 0 keys it remembers nothing.
  explicit last_written(std::size_t keys);

  /// Returns what is stored under a key, or null if that is not known.
  [[nodiscard]] const record* find(std::size_t hash) const noexcept;
  /// Returns whether certainly no version newer than `as_of` was written or read.
  [[nodiscard]] bool is_newest(std::size_t hash, timestamp as_of) const noexcept;
  void add(record r) noexcept;
  /// Records that this version was written, erased or dropped, or may be being written; the stored
  /// content is then not known.
  void add_version(std::size_t hash, timestamp as_of) noexcept;
  /// Records that this version was seen.
  void add_seen(std::size_t hash, timestamp as_of) noexcept;

 private:
  [[nodiscard]] std::size_t slot_of(std::size_t hash) const noexcept {
    return hash & (records_.size() - 1);
  }

  std::vector<record> records_{};
  std::vector<timestamp> newest_seen_{};  // one for each record
};

}  // namespace HOLDFAST_NAMESPACE::detail::store
