#include "failover/recents.hpp"

#include <bit>
#include <thread>

namespace HOLDFAST_NAMESPACE {

/// Held for a few instructions; a holder that was put to sleep is waited for by giving the processor away.
class recents::guard {
 public:
  explicit guard(const set& which) noexcept : which_(which) {
    for (int spins = 0; which_.locked.test_and_set(std::memory_order_acquire); ++spins) {
      if (spins >= 100) std::this_thread::yield();
    }
  }
  guard(const guard&) = delete;
  guard& operator=(const guard&) = delete;
  ~guard() { which_.locked.clear(std::memory_order_release); }

 private:
  const set& which_;
};

recents::recents(std::size_t keys) {
  if (keys == 0) return;
  const std::size_t sets = std::bit_ceil((keys + ways - 1) / ways);
  sets_ = std::make_unique<set[]>(sets);
  mask_ = sets - 1;
}

bool recents::note(std::uint64_t id, timestamp as_of) noexcept {
  if (!sets_) return true;
  id = tag(id);
  set& at = set_of(id);
  const guard lock(at);
  slot* oldest = &at.slots[0];
  for (slot& each : at.slots) {
    if (each.id == id) {
      if (as_of < each.as_of) return false;
      each.as_of = as_of;
      return true;
    }
    if (each.id == 0) {
      if (oldest->id != 0) oldest = &each;
    } else if (oldest->id != 0 && each.as_of < oldest->as_of) {
      oldest = &each;
    }
  }
  if (oldest->id != 0) evicted_.fetch_add(1, std::memory_order_relaxed);
  *oldest = {.id = id, .as_of = as_of};
  return true;
}

void recents::forget_above(std::uint64_t id, timestamp most) noexcept {
  if (!sets_) return;
  id = tag(id);
  set& at = set_of(id);
  const guard lock(at);
  for (slot& each : at.slots) {
    if (each.id == id && each.as_of > most) each = {};
  }
}

std::optional<timestamp> recents::newest(std::uint64_t id) const noexcept {
  if (!sets_) return std::nullopt;
  id = tag(id);
  const set& at = set_of(id);
  const guard lock(at);
  for (const slot& each : at.slots) {
    if (each.id == id) return each.as_of;
  }
  return std::nullopt;
}

void recents::clear() noexcept {
  if (!sets_) return;
  for (std::size_t i = 0; i <= mask_; ++i) {
    const guard lock(sets_[i]);
    for (slot& each : sets_[i].slots) each = {};
  }
}

}  // namespace HOLDFAST_NAMESPACE
