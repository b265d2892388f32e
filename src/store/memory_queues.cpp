#include "store/memory_queues.hpp"

#include <bit>
#include <new>

namespace HOLDFAST_NAMESPACE {

void memory_queue::add(memory_node& node) noexcept {
  node.older = newest_;
  node.newer = nullptr;
  (newest_ != nullptr ? newest_->newer : oldest_) = &node;
  newest_ = &node;
  ++size_;
}

void memory_queue::remove(memory_node& node) noexcept {
  (node.older != nullptr ? node.older->newer : oldest_) = node.newer;
  (node.newer != nullptr ? node.newer->older : newest_) = node.older;
  --size_;
}

void memory_ghosts::add(std::size_t hash, std::size_t remembered) noexcept {
  if (slots_.size() < remembered) {
    try {
      slots_.assign(std::bit_ceil(2 * remembered), {});  // what was remembered before it grows is lost
    } catch (const std::bad_alloc&) {
      return slots_.clear();  // without memory nobody is remembered
    }
  }
  remembered_ = remembered;
  slot_of(hash) = {.print = print_of(hash), .number = ++number_};
}

bool memory_ghosts::take(std::size_t hash) noexcept {
  if (slots_.empty()) return false;
  slot& at = slot_of(hash);
  if (at.print != print_of(hash) || number_ - at.number >= remembered_) return false;
  at = {};
  return true;
}

void memory_queues::add(memory_node& node) noexcept {
  node.used = 0;
  node.in_main = ghosts_.take(node.hash);
  queue_of(node).add(node);
}

void memory_queues::remove(memory_node& node) noexcept { queue_of(node).remove(node); }

void memory_queues::into_main(memory_node& node) noexcept {
  queue_of(node).remove(node);
  node.in_main = true;
  main_.add(node);
}

bool memory_queues::take_from_small(const memory_node* keep) const noexcept {
  const auto nobody_in = [keep](const memory_queue& queue) { return queue.size() == 0 || (queue.size() == 1 && queue.oldest() == keep); };
  if (nobody_in(small_)) return false;
  constexpr std::size_t share = 10;  // the small queue may hold a tenth
  return small_.size() * share >= small_.size() + main_.size() || nobody_in(main_);
}

memory_node* memory_queues::choose(const memory_node* keep) noexcept {
  for (;;) {
    const bool small = take_from_small(keep);
    memory_queue& from = small ? small_ : main_;
    memory_node* oldest = from.oldest();
    if (oldest == nullptr || (oldest == keep && from.size() == 1)) return nullptr;
    if (oldest == keep) {
      from.remove(*oldest);
      from.add(*oldest);
    } else if (small && oldest->used > 0) {
      oldest->used = 0;
      into_main(*oldest);
    } else if (!small && oldest->used > 0) {
      --oldest->used;
      into_main(*oldest);
    } else {
      if (small) ghosts_.add(oldest->hash, small_.size() + main_.size());
      return oldest;
    }
  }
}

}  // namespace HOLDFAST_NAMESPACE
