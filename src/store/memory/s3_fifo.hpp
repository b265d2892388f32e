#pragma once

#include <holdfast/version.hpp>

#include "store/memory/node.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::store {

/// A queue of nodes in order of insertion, linked through the nodes.
class node_queue {
 public:
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] memory_node* oldest() const noexcept { return oldest_; }
  void add(memory_node& node) noexcept;
  void remove(memory_node& node) noexcept;

 private:
  memory_node* oldest_ = nullptr;
  memory_node* newest_ = nullptr;
  std::size_t size_ = 0;
};

/// The hashes of recently evicted nodes. A lossy table: each slot has only its last hash.
class ghost_table {
 public:
  /// Only the last `capacity` hashes count as recent.
  void add(std::size_t hash, std::size_t capacity) noexcept;
  /// Returns whether the hash was added recently, and forgets it.
  [[nodiscard]] bool remove(std::size_t hash) noexcept;

 private:
  struct slot {
    std::uint32_t fingerprint = 0;
    std::uint32_t number = 0;  // of the eviction; wraps around
  };
  [[nodiscard]] slot& slot_of(std::size_t hash) noexcept {
    return slots_[hash & (slots_.size() - 1)];
  }
  static std::uint32_t fingerprint_of(std::size_t hash) noexcept {
    return static_cast<std::uint32_t>(hash >> 32U) | 1U;
  }

  std::vector<slot> slots_{};
  std::size_t capacity_ = 0;
  std::uint32_t evictions_ = 0;
};

/// The eviction policy S3-FIFO; docs/decisions/0016 has the reasons.
///
///     new node ---> small queue --- not used ---> evicted, hash to the ghost table
///                        | used
///     hash in ghosts ->  main queue --- not used ---> evicted
///                           ^  | used: one use less
///                           +--+
///
/// A request only increments a counter and moves nothing. The small queue has a tenth of the nodes.
/// Thread-safety: that of the shard.
class s3_fifo {
 public:
  void add(memory_node& node) noexcept;
  void remove(memory_node& node) noexcept;
  /// Returns the node to evict, never `keep`; null if there is no other. The caller removes it.
  [[nodiscard]] memory_node* choose_victim(const memory_node* keep) noexcept;

 private:
  [[nodiscard]] node_queue& queue_of(const memory_node& node) noexcept {
    return node.in_main ? main_ : small_;
  }
  [[nodiscard]] bool evict_from_small(const memory_node* keep) const noexcept;
  void move_to_main(memory_node& node) noexcept;

  node_queue small_{};
  node_queue main_{};
  ghost_table ghosts_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::store
