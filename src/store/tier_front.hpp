#pragma once

#include <holdfast/clock.hpp>
#include <holdfast/store.hpp>
#include <holdfast/version.hpp>

#include "store/memory_table.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE {

/// The front of the tiered store: memory, and the rules by which it never shows what the durable store has left behind.
///
/// Every operation on the durable store has a beginning and an end here, and happens there between the two. They overlap in any order. The
/// rules keep one invariant: **an entry in front is not older than any version of its key whose write was acknowledged here, and its key was
/// not erased since.**
///
/// Keys fall into stripes. A stripe knows how many writes (puts, erases, expiries) are between beginning and end, and has a version that
/// grows with each beginning, and with each change that a read makes. Why this is enough:
///
/// - *A read* may bring its answer to the front only if no write of its stripe was under way when it began, and the version is the same at
///   its end. Then nothing was written here while it asked, so its answer is at least as new as all that was acknowledged. find -> erase ->
///   backfill fails at the version; erase begun -> find -> erase ended -> backfill at the count. Comparing `as_of` would not do: what was
///   erased leaves nothing to compare with, what left the front neither, and of two with the same `as_of` the later arrival is the right one.
///   A read that may not, and has seen a newer version than the front shows, removes that from the front: two reads that overlap may end in
///   either order, and a caller that has seen what another process wrote does not see the older version after that. A read that has seen
///   nothing makes the front ask again.
/// - *A put* brings its entry to the front only if no other write of its stripe overlapped with it (else nobody here knows which of them the
///   durable store took last, and the key leaves the front), and only if the durable store must have taken it: it had not expired, its stamp
///   is not from the future (whether such a stamp is believed is the durable store's decision), and it is not older than what is in front. When
///   nothing is in front, it must be newer than everything ever written or read in the stripe: a version that was acknowledged may have left
///   the front for lack of room.
/// - *An erase* removes the key from the front, whatever is there; *an expiry* counts as a write of every stripe.
/// - *A failed write* may have happened or not: nothing changes.
/// - While a write is under way, its keys are asked for in the durable store: who has seen the new version there does not see the old one here
///   after that. This also makes a failed write's keys be asked for again.
///
/// Other processes write, too, unseen. So an entry carries since when it is known to be right: for a read the moment at which it began, for a
/// put the moment at which its call started, since a version that it does not know of must be newer than that.
///
/// Thread-safety: every function may be called from any thread. Locks: one stripe, then one shard of the memory.
class tier_front {
 public:
  tier_front(const memory_store_options& memory, std::chrono::microseconds freshness, std::shared_ptr<const clock> time);

  struct found {
    entry value;
    bool fresh = false;
  };
  [[nodiscard]] std::optional<found> find(place where, std::string_view key);

  struct read_ticket {
    std::size_t stripe = 0;
    std::uint64_t version = 0;
    bool clean = false;
    std::int64_t begun = 0;
  };
  [[nodiscard]] read_ticket begin_read(place where, std::string_view key);
  /// Takes the answer of the durable store to the front, if it may; says whether it did.
  bool end_read(const read_ticket& ticket, place where, std::string_view key, const std::optional<entry>& answer) noexcept;

  /// A write of some entries under way. Ends as failed unless it was ended before.
  class put {
   public:
    put(tier_front& in, std::span<const entry> entries);
    put(const put&) = delete;
    put& operator=(const put&) = delete;
    ~put();
    void succeeded() noexcept;

   private:
    struct item {
      std::size_t stripe = 0;
      const entry* what = nullptr;
      bool twice = false;  // another of these entries has the same key
    };
    struct held {
      std::size_t stripe = 0;
      std::uint64_t version = 0;
      bool first = false;   // no other write was under way
      timestamp highest{};  // before this write
    };
    void end(bool success) noexcept;

    tier_front& in_;
    timestamp begun_;
    std::vector<item> items_{};
    std::vector<held> stripes_{};
    bool over_ = false;
  };

  /// An erase under way. Ends as failed unless it was ended before.
  class erase {
   public:
    erase(tier_front& in, place where, std::string_view key);
    erase(const erase&) = delete;
    erase& operator=(const erase&) = delete;
    ~erase();
    void succeeded() noexcept { done_ = true; }

   private:
    tier_front& in_;
    place where_;
    std::string_view key_;
    std::size_t stripe_;
    bool done_ = false;
  };

  /// An expiry under way. What expired before the moment leaves the front whether it succeeds or not.
  class expiry {
   public:
    expiry(tier_front& in, timestamp before);
    expiry(const expiry&) = delete;
    expiry& operator=(const expiry&) = delete;
    ~expiry();

   private:
    tier_front& in_;
    timestamp before_;
  };

  [[nodiscard]] memory_store::numbers stats() const { return memory_.stats(); }

 private:
  static constexpr std::size_t stripe_count = 256;

  struct alignas(64) stripe {
    std::mutex mutex{};
    std::uint64_t version = 0;
    std::size_t writes = 0;                // under way
    timestamp highest = timestamp::min();  // the newest stamp that was written or read here
  };

  static std::size_t stripe_of(place where, std::string_view key) noexcept { return memory_identity(where, key).hash % stripe_count; }
  [[nodiscard]] std::int64_t steady() const noexcept;
  /// Puts an entry in front, known to be right since then. What does not fit is not there.
  void show(const entry& e, std::int64_t since) noexcept;
  /// The durable store was given this entry between two moments, and no other of its stripe: bring it to the front, if that kept it.
  void follow(const entry& e, timestamp begun, timestamp ended, timestamp highest) noexcept;

  memory_table memory_;
  std::int64_t freshness_;
  std::shared_ptr<const clock> clock_;
  std::array<stripe, stripe_count> stripes_{};
};

}  // namespace HOLDFAST_NAMESPACE
