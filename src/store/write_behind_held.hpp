#pragma once

#include "store/write_behind_log.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::behind {

/// Tells whether an answer is the same: a number made of payload, class and tombstone. Two that differ may give the same number: the
/// second then waits as if it were unchanged, and is not lost.
[[nodiscard]] std::size_t digest_of(const entry& what) noexcept;

/// What was written last, of so many keys. A key takes the place of another with the same remainder: one look, no list to keep.
///
/// Beside it, for each remainder, the newest version that was read, or written by a key that has lost its place. Keys share that: it may
/// refuse an answer of the queue that is older than what was seen of another key, but never forgets. What is queued during an outage is newer
/// than all that was seen before it.
/// Thread-safety: none.
class last_written {
 public:
  struct record {
    std::size_t hash = 0;
    std::size_t digest = 0;
    timestamp as_of{};
    timestamp expire_on{};
    std::chrono::steady_clock::time_point when{};
    bool there = false;  ///< false: it is not known what is stored now, only which version was
    bool used = false;   ///< false: no key with this remainder was ever written
  };

  explicit last_written(std::size_t keys);
  /// What is stored under a key, as far as we know; null when we do not.
  [[nodiscard]] const record* find(std::size_t hash) const noexcept;
  /// Was no newer version of a key written or read? False when we do not know.
  [[nodiscard]] bool none_newer(std::size_t hash, timestamp as_of) const noexcept;
  void note(record one) noexcept;
  /// This version was written, or erased, or is on its way; what is stored now is not known.
  void doubt(std::size_t hash, timestamp as_of) noexcept;
  /// This version was read, or was written and its record is given up.
  void note_seen(std::size_t hash, timestamp as_of) noexcept;

 private:
  [[nodiscard]] std::size_t slot_of(std::size_t hash) const noexcept { return hash & (records_.size() - 1); }

  std::vector<record> records_{};
  std::vector<timestamp> newest_seen_{};  // one for each record
};

/// Unchanged answers that wait to be written again, or for a newer one to take their place; one for each key.
/// Thread-safety: none.
class held_operations {
 public:
  using time = std::chrono::steady_clock::time_point;

  /// The one of a key, or null.
  [[nodiscard]] const operation* find(std::size_t hash, place where, std::string_view key) const noexcept;
  /// Strong guarantee.
  void add(operation&& one, time due);
  /// Takes out the one that find() gave.
  [[nodiscard]] operation take(const operation& one) noexcept;
  /// One that arrived before `sequence` or is due; null when there is none.
  [[nodiscard]] const operation* ripe(std::uint64_t sequence, time now) const noexcept;

  [[nodiscard]] bool empty() const noexcept { return by_arrival_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return by_arrival_.size(); }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::size_t before(std::uint64_t sequence) const noexcept;
  [[nodiscard]] std::uint64_t first() const noexcept { return by_arrival_.begin()->first; }  ///< of those that are there
  [[nodiscard]] time next_due() const noexcept { return by_due_.begin()->first; }            ///< of those that are there

 private:
  struct held {
    operation what{};
    time due{};
  };
  std::map<std::uint64_t, held> by_arrival_{};
  std::unordered_multimap<std::size_t, std::uint64_t> by_key_{};
  std::set<std::pair<time, std::uint64_t>> by_due_{};
  std::size_t bytes_ = 0;
};

}  // namespace HOLDFAST_NAMESPACE::behind
