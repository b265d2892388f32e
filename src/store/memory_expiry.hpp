#pragma once

#include <holdfast/version.hpp>

#include "store/memory_node.hpp"

#include <cstdint>
#include <map>

namespace HOLDFAST_NAMESPACE {

/// Those that expire within the same second or so.
struct memory_expiry_bucket {
  std::int64_t number = 0;
  memory_node* first = nullptr;
};

/// The entries of a shard by expiry, in buckets of about a second: who wants the expired ones looks at those and at one bucket more, however
/// many entries there are. An ordered map of buckets and not a timer wheel: the moment that callers ask about is theirs, and may lie
/// anywhere. Thread-safety: that of its shard.
class memory_expiry {
 public:
  /// Files the node under its expire_on. Leaves everything as it was when memory runs out.
  void add(memory_node& node) { link(node, bucket_of(node.expire_on)); }
  void remove(memory_node& node) noexcept;

  /// Calls `leave(node)` for those that expired before the moment, until it says false. It may remove the node.
  template <class Leave>
  void for_expired(timestamp before, Leave leave) {
    for (auto at = buckets_.begin(); at != buckets_.end() && at->first <= number_of(before);) {
      memory_expiry_bucket& bucket = (at++)->second;  // its last node takes the bucket along
      for (memory_node* each = bucket.first; each != nullptr;) {
        memory_node& node = *each;
        each = each->behind;
        if (node.expire_on < before && !leave(node)) return;
      }
    }
  }
  /// One that expired before the moment, or null. In constant time: it looks into no bucket that is not over, so it may miss those of the
  /// last second.
  [[nodiscard]] memory_node* surely_expired(timestamp before) const noexcept {
    if (buckets_.empty() || buckets_.begin()->first >= number_of(before)) return nullptr;
    return buckets_.begin()->second.first;
  }

  /// A place for an expiry: made before anything is changed, so that nothing can fail afterwards.
  [[nodiscard]] memory_expiry_bucket& bucket_of(timestamp expire_on);
  void link(memory_node& node, memory_expiry_bucket& into) noexcept;
  /// To another bucket, which may be its own.
  void move(memory_node& node, memory_expiry_bucket& into) noexcept;

 private:
  static std::int64_t number_of(timestamp moment) noexcept {
    constexpr unsigned about_a_second = 20;  // 2^20 microseconds
    return moment.time_since_epoch().count() >> about_a_second;
  }

  std::map<std::int64_t, memory_expiry_bucket> buckets_{};
};

}  // namespace HOLDFAST_NAMESPACE
