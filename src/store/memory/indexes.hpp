#pragma once

/// \file
/// The indexes of a shard by expiry and by name. Thread-safety of all classes: that of the shard.

#include <holdfast/version.hpp>

#include "store/memory/node.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::store {

/// The entries that expire in the same interval of about a second.
struct expiry_bucket {
  std::int64_t number = 0;
  memory_node* first = nullptr;
};

/// Entries by expiry. An ordered map of buckets, not a timer wheel, because callers choose the time
/// up to which entries expire.
class expiry_index {
 public:
  /// Returns the bucket of an expiry, and creates it if necessary. Called before anything changes,
  /// so that the following steps cannot fail.
  [[nodiscard]] expiry_bucket& bucket_of(timestamp expire_on);
  /// The same for a new expiry of a node. Usually the node stays where it is.
  [[nodiscard]] expiry_bucket& bucket_for(const memory_node& node, timestamp expire_on) {
    return number_of(node.expire_on) == number_of(expire_on) ? *node.bucket : bucket_of(expire_on);
  }
  void add(memory_node& node, expiry_bucket& bucket) noexcept;
  /// Moves a node to a bucket, which may be its own.
  void move(memory_node& node, expiry_bucket& bucket) noexcept;
  void remove(memory_node& node) noexcept;

  /// Calls `visit(node)` for nodes that expired before `before`, until it returns false. It may
  /// remove the node.
  template <class Visit>
  void for_expired(timestamp before, Visit visit) {
    for (auto it = buckets_.begin(); it != buckets_.end() && it->first <= number_of(before);) {
      expiry_bucket& bucket = (it++)->second;  // removing the last node destroys the bucket
      for (memory_node* next = bucket.first; next != nullptr;) {
        memory_node& node = *next;
        next = next->next_in_bucket;
        if (node.expire_on < before && !visit(node)) return;
      }
    }
  }
  /// Returns a node that expired before `before`, or null, in constant time. Looks only at buckets
  /// that have ended, so it may miss nodes that expired in the last second.
  [[nodiscard]] memory_node* find_expired(timestamp before) const noexcept {
    if (buckets_.empty() || buckets_.begin()->first >= number_of(before)) return nullptr;
    return buckets_.begin()->second.first;
  }

 private:
  static std::int64_t number_of(timestamp time) noexcept {
    constexpr unsigned about_a_second = 20;  // 2^20 microseconds
    return time.time_since_epoch().count() >> about_a_second;
  }

  std::map<std::int64_t, expiry_bucket> buckets_{};
};

/// The entries of one name in one realm and one shard. Writers append; the order of keys is
/// established when a reader needs it.
class name_group {
 public:
  explicit name_group(const memory_identity& id)
      : name_(id.location.name), realm_(id.location.realm), hash_(id.location_hash) {}

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const std::string& realm() const noexcept { return realm_; }
  [[nodiscard]] std::size_t hash() const noexcept { return hash_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  void add(memory_node& node);
  void remove(memory_node& node) noexcept;
  /// Returns all nodes in the byte order of their keys.
  [[nodiscard]] std::span<memory_node* const> sorted();

 private:
  void close_gaps() noexcept;

  std::string name_;
  std::string realm_;
  std::size_t hash_;
  std::vector<memory_node*> nodes_{};  // null where a node was removed
  std::size_t sorted_prefix_ = 0;      // the first so many positions are in order
  std::size_t size_ = 0;
};

/// The names of a shard. A name without entries is removed.
class name_index {
 public:
  /// Returns null if the name has no entries.
  [[nodiscard]] name_group* find(const memory_identity& id);
  /// Changes nothing if it throws.
  void add(memory_node& node, const memory_identity& id);
  void remove(memory_node& node) noexcept;
  /// Adds the names of a realm that come after `after`, and keeps the first `limit` of all.
  void collect(std::string_view realm, std::string_view after, std::size_t limit,
               std::set<std::string>& names) const;

 private:
  struct identity_hash {
    std::size_t operator()(std::size_t hash) const noexcept { return hash; }
  };
  // By location hash. Groups with the same hash are distinguished by their texts.
  std::unordered_multimap<std::size_t, std::unique_ptr<name_group>, identity_hash> groups_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::store
