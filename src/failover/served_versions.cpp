#include "failover/served_versions.hpp"

#include <bit>
#include <thread>

namespace HOLDFAST_NAMESPACE::detail::failover {

/// A spin lock that is held for a few instructions. It yields in case the holder was preempted.
class served_versions::guard {
 public:
  explicit guard(const set& locked_set) noexcept : set_(locked_set) {
    for (int spins = 0; set_.locked.test_and_set(std::memory_order_acquire); ++spins) {
      if (spins >= 100) std::this_thread::yield();
    }
  }
  guard(const guard&) = delete;
  guard& operator=(const guard&) = delete;
  ~guard() { set_.locked.clear(std::memory_order_release); }

 private:
  const set& set_;
};

served_versions::served_versions(std::size_t keys) {
  if (keys == 0) return;
  const std::size_t sets = std::bit_ceil((keys + slots_per_set - 1) / slots_per_set);
  sets_ = std::make_unique<set[]>(sets);
  mask_ = sets - 1;
}

bool served_versions::note(std::uint64_t id, timestamp as_of) noexcept {
  if (!sets_) return true;
  id = nonzero(id);
  auto& bucket = set_of(id);
  const guard lock(bucket);
  auto* oldest = &bucket.slots[0];
  for (auto& candidate : bucket.slots) {
    if (candidate.id == id) {
      if (as_of < candidate.as_of) return false;
      candidate.as_of = as_of;
      return true;
    }
    if (candidate.id == 0) {
      if (oldest->id != 0) oldest = &candidate;
    } else if (oldest->id != 0 && candidate.as_of < oldest->as_of) {
      oldest = &candidate;
    }
  }
  if (oldest->id != 0) evicted_.fetch_add(1, std::memory_order_relaxed);
  *oldest = {.id = id, .as_of = as_of};
  return true;
}

void served_versions::forget(std::uint64_t id, timestamp as_of) noexcept {
  if (!sets_) return;
  id = nonzero(id);
  auto& bucket = set_of(id);
  const guard lock(bucket);
  for (auto& candidate : bucket.slots) {
    if (candidate.id == id && candidate.as_of == as_of) candidate = {};
  }
}

void served_versions::forget_newer(std::uint64_t id, timestamp limit) noexcept {
  if (!sets_) return;
  id = nonzero(id);
  auto& bucket = set_of(id);
  const guard lock(bucket);
  for (auto& candidate : bucket.slots) {
    if (candidate.id == id && candidate.as_of > limit) candidate = {};
  }
}

std::optional<timestamp> served_versions::newest(std::uint64_t id) const noexcept {
  if (!sets_) return std::nullopt;
  id = nonzero(id);
  const auto& bucket = set_of(id);
  const guard lock(bucket);
  for (const auto& candidate : bucket.slots) {
    if (candidate.id == id) return candidate.as_of;
  }
  return std::nullopt;
}

void served_versions::clear() noexcept {
  if (!sets_) return;
  for (std::size_t i = 0; i <= mask_; ++i) {
    const guard lock(sets_[i]);
    for (auto& candidate : sets_[i].slots) candidate = {};
  }
}

}  // namespace HOLDFAST_NAMESPACE::detail::failover
