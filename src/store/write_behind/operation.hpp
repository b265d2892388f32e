#pragma once

/// \file
/// A put or an erase on its way to the store below.
///
/// States of an operation:
///
///     queued      in the operation_log, in order of arrival
///     in flight   in the write_batch that the writer is writing. A suspect stays in it: an operation
///                 that failed alone, for an unknown reason, and is tried again
///     held        in held_operations: an unchanged answer that waits for `refresh_after`
///     finished    counted as written, coalesced, skipped, dropped or failed
///
///     (new)      -> queued      put, erase
///     (new)      -> finished    coalesced with the queued operation of the same key
///     queued     -> in flight   the writer takes a batch
///     queued     -> finished    coalesced with a newer operation, or dropped from a full queue
///     in flight  -> finished    written, failed (refused or quarantined), or skipped because it
///                               expired; a suspect also coalesced with a newer put
///     in flight  -> held        the same answer was written recently
///     held       -> in flight   it is due, a flush waits for it, or an erase of its key follows
///     held       -> finished    replaced by a newer put (skipped), or dropped from a full queue
///
/// Reads see operations in all states but the last. The order of the operations of one key is:
/// held, in flight, queued.

#include <holdfast/store.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::store {

struct operation {
  enum class kind : std::uint8_t {
    none,   ///< cancelled; its slot is freed when it becomes the oldest
    put,    ///< writes `value`
    erase,  ///< uses only name, realm, key and as_of of `value`
    /// A put that expired while it waited. It is not written, but the entry that it would have
    /// replaced is erased.
    expired_put
  };

  entry value{};
  kind action = kind::none;
  /// The order of arrival, from 1 on. Assigned by the operation_log.
  std::uint64_t sequence = 0;
  /// The sequence of the previous queued operation of the same key. 0, or no longer queued: none.
  std::uint64_t previous = 0;
  std::uint64_t next_in_bucket = 0;
  std::size_t hash = 0;
  std::size_t bytes = 0;
  /// The put has replaced a queued erase. If it cannot be written, the erase must still happen.
  bool replaces_erase = false;
  std::chrono::steady_clock::time_point unsaved_since{};
};

[[nodiscard]] std::size_t hash_of(place location, std::string_view key) noexcept;
/// The memory of an operation with this entry.
[[nodiscard]] std::size_t bytes_of(const entry& value) noexcept;
[[nodiscard]] inline bool has_key(const entry& e, place location, std::string_view key) noexcept {
  return e.key == key && e.name == location.name && e.realm == location.realm;
}

/// Returns a put of the entry, or an erase of a version.
[[nodiscard]] operation make_put(const entry& e);
[[nodiscard]] operation make_erase(place location, std::string_view key, timestamp as_of);

}  // namespace HOLDFAST_NAMESPACE::detail::store
