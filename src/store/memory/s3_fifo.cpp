#include "store/memory/s3_fifo.hpp"

#include <bit>
#include <new>

namespace HOLDFAST_NAMESPACE::detail::store {

void node_queue::add(memory_node& node) noexcept {
  node.older = newest_;
  node.newer = nullptr;
  (newest_ != nullptr ? newest_->newer : oldest_) = &node;
  newest_ = &node;
  ++size_;
}

void node_queue::remove(memory_node& node) noexcept {
  (node.older != nullptr ? node.older->newer : oldest_) = node.newer;
  (node.newer != nullptr ? node.newer->older : newest_) = node.older;
  --size_;
}

void ghost_table::add(std::size_t hash, std::size_t capacity) noexcept {
  if (slots_.size() < capacity) {
    try {
      slots_.assign(std::bit_ceil(2 * capacity), {});  // loses the hashes so far
    } catch (const std::bad_alloc&) {
      return slots_.clear();  // without memory it remembers nothing
    }
  }
  capacity_ = capacity;
  slot_of(hash) = {.fingerprint = fingerprint_of(hash), .number = ++evictions_};
}

bool ghost_table::remove(std::size_t hash) noexcept {
  if (slots_.empty()) return false;
  slot& s = slot_of(hash);
  if (s.fingerprint != fingerprint_of(hash) || evictions_ - s.number >= capacity_) return false;
  s = {};
  return true;
}

void s3_fifo::add(memory_node& node) noexcept {
  node.uses = 0;
  node.in_main = ghosts_.remove(node.hash);
  queue_of(node).add(node);
}

void s3_fifo::remove(memory_node& node) noexcept { queue_of(node).remove(node); }

void s3_fifo::move_to_main(memory_node& node) noexcept {
  queue_of(node).remove(node);
  node.in_main = true;
  main_.add(node);
}

bool s3_fifo::evict_from_small(const memory_node* keep) const noexcept {
  const auto has_no_victim = [keep](const node_queue& queue) {
    return queue.size() == 0 || (queue.size() == 1 && queue.oldest() == keep);
  };
  if (has_no_victim(small_)) return false;
  constexpr std::size_t share = 10;  // a tenth
  return small_.size() * share >= small_.size() + main_.size() || has_no_victim(main_);
}

memory_node* s3_fifo::choose_victim(const memory_node* keep) noexcept {
  for (;;) {
    const bool small = evict_from_small(keep);
    node_queue& queue = small ? small_ : main_;
    memory_node* oldest = queue.oldest();
    if (oldest == nullptr || (oldest == keep && queue.size() == 1)) return nullptr;
    if (oldest == keep) {
      queue.remove(*oldest);
      queue.add(*oldest);
    } else if (oldest->uses > 0) {
      if (small) oldest->uses = 0;
      else --oldest->uses;
      move_to_main(*oldest);
    } else {
      if (small) ghosts_.add(oldest->hash, small_.size() + main_.size());
      return oldest;
    }
  }
}

}  // namespace HOLDFAST_NAMESPACE::detail::store
