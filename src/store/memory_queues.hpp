#pragma once

#include <holdfast/version.hpp>

#include "store/memory_node.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace HOLDFAST_NAMESPACE {

/// Nodes in the order in which they came.
class memory_queue {
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

/// The hashes of those that left lately. A table that forgets: each slot keeps the last hash that fell into it.
class memory_ghosts {
 public:
  /// `remembered` is how many leavers back it shall look.
  void add(std::size_t hash, std::size_t remembered) noexcept;
  /// Whether it left lately; it is forgotten then.
  [[nodiscard]] bool take(std::size_t hash) noexcept;

 private:
  struct slot {
    std::uint32_t print = 0;
    std::uint32_t number = 0;  // of the leaver; wraps around
  };
  [[nodiscard]] slot& slot_of(std::size_t hash) noexcept { return slots_[hash & (slots_.size() - 1)]; }
  static std::uint32_t print_of(std::size_t hash) noexcept { return static_cast<std::uint32_t>(hash >> 32U) | 1U; }

  std::vector<slot> slots_{};
  std::size_t remembered_ = 0;
  std::uint32_t number_ = 0;
};

/// Who stays, after S3-FIFO: newcomers wait in a small queue, and leave from there unless they are asked for meanwhile; those that are go to
/// the main queue, as does who comes back soon after leaving. A request only counts; it moves nothing. Why this one: docs/decisions/0016.
/// Thread-safety: that of its shard.
class memory_queues {
 public:
  void add(memory_node& node) noexcept;
  void remove(memory_node& node) noexcept;
  /// Who is to leave; null when there is nobody but `keep`. The caller removes it.
  [[nodiscard]] memory_node* choose(const memory_node* keep) noexcept;

 private:
  [[nodiscard]] memory_queue& queue_of(const memory_node& node) noexcept { return node.in_main ? main_ : small_; }
  [[nodiscard]] bool take_from_small(const memory_node* keep) const noexcept;
  void into_main(memory_node& node) noexcept;

  memory_queue small_{};
  memory_queue main_{};
  memory_ghosts ghosts_{};
};

}  // namespace HOLDFAST_NAMESPACE
