#include "store/sealed/cipher_cache.hpp"

#include "base/thread_number.hpp"

namespace HOLDFAST_NAMESPACE::detail::store {

cipher_cache::borrowed_cipher::borrowed_cipher(cipher_cache& cache) : cache_(cache) {
  // Each thread starts at its own slot, so that keys stay in the cache of their processor.
  const std::size_t first = thread_number();
  for (std::size_t i = 0; i < slot_count && slot_ == nullptr; ++i) {
    slot& candidate = cache.slots_[(first + i) % slot_count];
    auto expected = slot_state::idle;
    if (candidate.state.load(std::memory_order_relaxed) != expected) continue;
    if (candidate.state.compare_exchange_strong(
            expected, slot_state::in_use, std::memory_order_acquire, std::memory_order_relaxed))
      slot_ = &candidate;
  }
  try {
    if (slot_ == nullptr) temporary_ = std::make_unique<cipher>();
    cipher_ = slot_ != nullptr ? &slot_->content : temporary_.get();
    if (!cipher_->sealer) cipher_->sealer = std::make_unique<sealer>(*cache.current());
  } catch (...) {
    if (slot_ != nullptr) slot_->state.store(slot_state::idle, std::memory_order_release);
    throw;
  }
}

cipher_cache::borrowed_cipher::~borrowed_cipher() {
  if (slot_ == nullptr) {
    cache_.seals_.fetch_add(cipher_->seals.value(), std::memory_order_relaxed);
    cache_.opens_.fetch_add(cipher_->opens.value(), std::memory_order_relaxed);
    cache_.old_opens_.fetch_add(cipher_->old_opens.value(), std::memory_order_relaxed);
    cache_.refusals_.fetch_add(cipher_->refusals.value(), std::memory_order_relaxed);
    return;
  }
  constexpr std::size_t max_buffer = 65'536;  // the buffer of a large payload is freed
  auto& payload = cipher_->sealed.payload;
  if (payload && payload->capacity() > max_buffer) payload.reset();
  auto expected = slot_state::in_use;
  if (slot_->state.compare_exchange_strong(expected, slot_state::idle, std::memory_order_release,
                                           std::memory_order_relaxed))
    return;
  cipher_->sealer.reset();  // outdated
  slot_->state.store(slot_state::idle, std::memory_order_release);
}

void cipher_cache::replace_keys(std::shared_ptr<const sealer> next) noexcept {
  {
    const std::scoped_lock lock(mutex_);
    current_.swap(next);
  }
  for (slot& s : slots_) {
    for (auto previous = s.state.load(); previous != slot_state::outdated;) {
      const auto changed = previous == slot_state::idle ? slot_state::in_use : slot_state::outdated;
      if (!s.state.compare_exchange_weak(previous, changed)) continue;
      if (previous == slot_state::idle) {
        s.content.sealer.reset();
        s.state.store(slot_state::idle, std::memory_order_release);
      }
      break;
    }
  }
}

std::shared_ptr<const sealer> cipher_cache::current() const {
  const std::scoped_lock lock(mutex_);
  return current_;
}

sealed_numbers cipher_cache::numbers() const noexcept {
  sealed_numbers sum{.sealed = seals_.load(),
                     .opened = opens_.load(),
                     .opened_old = old_opens_.load(),
                     .refused = refusals_.load()};
  for (const slot& s : slots_) {
    sum.sealed += s.content.seals.value();
    sum.opened += s.content.opens.value();
    sum.opened_old += s.content.old_opens.value();
    sum.refused += s.content.refusals.value();
  }
  return sum;
}

}  // namespace HOLDFAST_NAMESPACE::detail::store
