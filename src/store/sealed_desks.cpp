#include "store/sealed_desks.hpp"

#include "base/thread_number.hpp"

namespace HOLDFAST_NAMESPACE {

sealing_desks::seat::seat(sealing_desks& of) : of_(of) {
  // Each thread begins at its own: a desk that goes from one processor to another takes its keys along.
  const std::size_t first = thread_number();
  for (std::size_t i = 0; i < most && place_ == nullptr; ++i) {
    place& each = of.places_[(first + i) % most];
    auto idle = state::idle;
    if (each.is.load(std::memory_order_relaxed) != idle) continue;
    if (each.is.compare_exchange_strong(idle, state::taken, std::memory_order_acquire, std::memory_order_relaxed)) place_ = &each;
  }
  try {
    if (place_ == nullptr) extra_ = std::make_unique<sealing_desk>();
    desk_ = place_ != nullptr ? &place_->desk : extra_.get();
    if (!desk_->with) desk_->with = std::make_unique<sealer>(*of.current());
  } catch (...) {
    if (place_ != nullptr) place_->is.store(state::idle, std::memory_order_release);
    throw;
  }
}

sealing_desks::seat::~seat() {
  if (place_ == nullptr) {
    const auto read = [](const sealing_desk::counter& from) { return from.value.load(std::memory_order_relaxed); };
    of_.seals_.fetch_add(read(desk_->seals), std::memory_order_relaxed);
    of_.opens_.fetch_add(read(desk_->opens), std::memory_order_relaxed);
    of_.opens_of_old_.fetch_add(read(desk_->opens_of_old), std::memory_order_relaxed);
    of_.refusals_.fetch_add(read(desk_->refusals), std::memory_order_relaxed);
    return;
  }
  constexpr std::size_t largest = 65'536;  // what a large payload needed is given back
  auto& payload = desk_->sealed.payload;
  if (payload && payload->capacity() > largest) payload.reset();
  auto taken = state::taken;
  if (place_->is.compare_exchange_strong(taken, state::idle, std::memory_order_release, std::memory_order_relaxed)) return;
  desk_->with.reset();
  place_->is.store(state::idle, std::memory_order_release);
}

void sealing_desks::use(std::shared_ptr<const sealer> fresh) noexcept {
  {
    const std::scoped_lock lock(mutex_);
    current_.swap(fresh);
  }
  for (place& each : places_) {
    for (auto was = each.is.load(); was != state::stale;) {
      if (!each.is.compare_exchange_weak(was, was == state::idle ? state::taken : state::stale)) continue;
      if (was == state::idle) {
        each.desk.with.reset();
        each.is.store(state::idle, std::memory_order_release);
      }
      break;
    }
  }
}

std::shared_ptr<const sealer> sealing_desks::current() const {
  const std::scoped_lock lock(mutex_);
  return current_;
}

sealed_numbers sealing_desks::numbers() const noexcept {
  sealed_numbers sum{.sealed = seals_.load(), .opened = opens_.load(), .opened_old = opens_of_old_.load(), .refused = refusals_.load()};
  for (const place& each : places_) {
    sum.sealed += each.desk.seals.value.load();
    sum.opened += each.desk.opens.value.load();
    sum.opened_old += each.desk.opens_of_old.value.load();
    sum.refused += each.desk.refusals.value.load();
  }
  return sum;
}

}  // namespace HOLDFAST_NAMESPACE
