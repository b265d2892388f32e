#pragma once

/// \file
/// The memory in front of a durable store, and the rules that keep it consistent.
///
/// Every operation on the durable store has a begin and an end here, and runs on the durable store
/// between them. Operations of several threads overlap in any order. The rules keep this invariant:
///
///     A cached entry is not older than any version of its key whose put was acknowledged here, and
///     its key was not erased here since.
///
/// Keys are hashed into stripes. A stripe has
///
///     writes        the number of writes (puts, erases, expires) between begin and end
///     version       incremented at the begin of each write, and at the end of a read whose answer
///                   was not cached before, unless a write is in progress
///     newest        the newest as_of that was ever written or read in the stripe
///     newest_read   the newest as_of that was ever read in the stripe
///
/// Rules:
///
/// 1. A read caches its answer only if no write of its stripe was in progress at its begin and
///    the version is the same at its end. Then no write overlapped with it, and its answer is at
///    least as new as everything acknowledged. Comparing as_of would not be enough: an erased or
///    evicted entry leaves nothing to compare with, and of two entries with the same as_of the
///    later arrival is the right one.
/// 2. If a read may not cache its answer and the answer is newer than the cached entry, it
///    evicts the cached entry. If the answer is empty, the cached entry is no longer fresh. Two
///    overlapping reads may end in any order; a caller that has seen a version of another
///    process must not see an older one afterwards. For the same reason the version is
///    incremented: a read that overlaps with this one must not cache an older answer. All this
///    also applies to an answer from the memory of the durable store, which is never cached: it
///    does not show since when it is current.
/// 3. A put caches its entry only if no other write of its stripe overlapped (otherwise the
///    order in the durable store is unknown, and the key is evicted), and only if the durable
///    store has certainly accepted the entry: it has not expired, its as_of is not in the
///    future, and it is not older than the cached entry. If nothing is cached, it must be newer
///    than `newest` was at its begin, since a newer version may have been evicted, and not older
///    than `newest_read`, since a caller may have seen a newer version meanwhile.
/// 4. An erase evicts its key. An expire evicts the expired entries and counts as a write of
///    every stripe.
/// 5. A write that fails may have happened or not. Its end changes nothing.
/// 6. The begin of a write makes the cached entries of its keys not fresh. So a caller that has
///    seen the new version in the durable store does not see the old one here afterwards, and
///    the keys of a failed write are read again.
///
/// Example of rule 1. Without it the erased version v1 would come back:
///
///     thread A: begin read of k            version 4, writes 0
///     thread B: begin erase of k           version 5, writes 1
///     thread A: durable store returns v1
///     thread B: durable store erases v1; end of erase: k is evicted, writes 0
///     thread A: end of read                version 5 is not 4: v1 is not cached
///
/// Other processes write without these rules. So each cached entry has the time since when it is
/// known to be current: for a read the time of its begin, for a put its as_of, since an unknown
/// version must be newer than that. It is fresh until `freshness` after that time.

#include <holdfast/clock.hpp>
#include <holdfast/store.hpp>
#include <holdfast/version.hpp>

#include "store/memory/table.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::store {

/// Thread-safety: every function may be called from any thread. Lock order: a stripe, then a shard
/// of the memory.
class memory_tier {
 public:
  memory_tier(const memory_store_options& memory, std::chrono::microseconds freshness,
              std::shared_ptr<const clock> time_source);

  struct cached_entry {
    entry value;
    bool fresh = false;
  };
  [[nodiscard]] std::optional<cached_entry> find(place location, std::string_view key);

  /// A read of the durable store in progress.
  struct pending_read {
    std::size_t stripe_index = 0;
    std::uint64_t version = 0;
    bool no_writes = false;                  ///< no write was in progress at the begin
    std::chrono::microseconds started_at{};  ///< of the steady clock
  };
  [[nodiscard]] pending_read begin_read(place location, std::string_view key);
  /// Caches the answer of the durable store if rule 1 allows it. Returns whether it did.
  bool end_read(const pending_read& read, place location, std::string_view key,
                const std::optional<entry>& answer) noexcept;
  /// Records an answer that came from the memory of the durable store; see rule 2.
  void record_answer(place location, std::string_view key,
                     const std::optional<entry>& answer) noexcept;

  /// A put in progress. It has failed if it is destroyed without commit().
  class pending_put {
   public:
    pending_put(memory_tier& tier, std::span<const entry> entries);
    pending_put(const pending_put&) = delete;
    pending_put& operator=(const pending_put&) = delete;
    ~pending_put();
    void commit() noexcept;

   private:
    struct put_entry {
      std::size_t stripe_index = 0;
      const entry* value = nullptr;
      bool duplicate = false;  // another entry of this put has the same key
    };
    struct put_stripe {
      std::size_t index = 0;
      std::uint64_t version = 0;
      bool no_writes = false;     // no other write was in progress at the begin
      timestamp newest_before{};  // key_stripe::newest before this put
    };
    void sort_and_mark_duplicates();
    void end(bool success) noexcept;

    memory_tier& tier_;
    timestamp started_at_;
    std::vector<put_entry> entries_{};  // sorted by stripe and key
    std::vector<put_stripe> stripes_{};
    bool ended_ = false;
  };

  /// An erase in progress. It has failed if it is destroyed without commit().
  class pending_erase {
   public:
    pending_erase(memory_tier& tier, place location, std::string_view key);
    pending_erase(const pending_erase&) = delete;
    pending_erase& operator=(const pending_erase&) = delete;
    ~pending_erase();
    void commit() noexcept { committed_ = true; }

   private:
    memory_tier& tier_;
    place location_;
    std::string_view key_;
    std::size_t stripe_index_;
    bool committed_ = false;
  };

  /// An expire in progress. Expired entries are evicted at its end even if it fails.
  class pending_expire {
   public:
    pending_expire(memory_tier& tier, timestamp before);
    pending_expire(const pending_expire&) = delete;
    pending_expire& operator=(const pending_expire&) = delete;
    ~pending_expire();

   private:
    memory_tier& tier_;
    timestamp before_;
  };

  [[nodiscard]] memory_store::numbers stats() const { return memory_.stats(); }

 private:
  static constexpr std::size_t stripe_count = 256;

  struct alignas(64) key_stripe {
    std::mutex mutex{};
    std::uint64_t version = 0;
    std::size_t writes = 0;
    timestamp newest = timestamp::min();
    timestamp newest_read = timestamp::min();

    void add_read_version(const std::optional<entry>& answer) noexcept {
      if (!answer) return;
      newest = std::max(newest, answer->as_of);
      newest_read = std::max(newest_read, answer->as_of);
    }
  };

  static std::size_t stripe_of(place location, std::string_view key) noexcept {
    return memory_identity(location, key).hash % stripe_count;
  }
  [[nodiscard]] std::chrono::microseconds steady_time() const noexcept;
  /// The next find of the key reads the durable store.
  void mark_not_fresh(place location, std::string_view key) noexcept;
  /// Applies rule 2. Requires the lock of the stripe.
  void yield_to_answer(key_stripe& stripe, place location, std::string_view key,
                       const std::optional<entry>& answer) noexcept;
  /// Caches an entry that is known to be current since a time of the steady clock. Evicts the key
  /// if the entry does not fit.
  void cache(const entry& e, std::chrono::microseconds current_since) noexcept;
  struct put_times {
    timestamp started_at{};
    timestamp ended_at{};
    timestamp newest_before{};  ///< key_stripe::newest before the put
    timestamp newest_read{};    ///< key_stripe::newest_read at its end
  };
  /// Caches the entry of a put that did not overlap with other writes, if rule 3 allows it.
  void cache_put(const entry& e, const put_times& times) noexcept;

  memory_table memory_;  // the note of an entry: microseconds of the steady clock, see cache()
  std::chrono::microseconds freshness_;
  std::shared_ptr<const clock> clock_;
  std::array<key_stripe, stripe_count> stripes_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::store
