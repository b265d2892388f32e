#pragma once

/// \file
/// Hands out nonces that never repeat under one key: 8 random bytes, then a
/// counter of 4. AES-GCM gives up its secrets when a nonce is used twice, so
/// the counter never starts again under the same random bytes, and a forked
/// child gets random bytes of its own.

#include <holdfast/error.hpp>
#include <holdfast/version.hpp>

#include "base/process_mark.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

namespace HOLDFAST_NAMESPACE {

using nonce = std::array<std::byte, 12>;

/// Thread-safety: next() can be called from any thread, and never blocks.
class nonce_source {
 public:
  using instance_id = std::array<std::byte, 8>;

  /// What follows the last nonce of an instance id: an error, or a new id.
  enum class at_the_end : std::uint8_t { refuse, renew };

  /// `random` makes an instance id: now, and again in each forked child that asks for a nonce. `first` is where the counter starts.
  explicit nonce_source(std::function<instance_id()> random, std::uint32_t first = 0, at_the_end then = at_the_end::refuse)
      : random_(std::move(random)), then_(then), series_(new series(random_(), first, nullptr)) {}
  nonce_source(const nonce_source&) = delete;
  nonce_source& operator=(const nonce_source&) = delete;
  ~nonce_source() {
    const series* one = series_.load();
    while (one != nullptr) one = std::unique_ptr<const series>(one)->before;
  }

  [[nodiscard]] nonce next() {
    series* mine = &of_this_process();
    // 64 bits do not wrap in the lifetime of a machine, so that every call after the last nonce fails.
    std::uint64_t count = mine->counter.fetch_add(1, std::memory_order_relaxed);
    while (count > UINT32_MAX) {
      if (then_ == at_the_end::refuse) {
        throw error(errc::out_of_range, "this cipher has sealed 2^32 values and has no nonces left; make a new value_cipher");
      }
      mine = &after(mine);
      count = mine->counter.fetch_add(1, std::memory_order_relaxed);
    }
    nonce result{};
    for (std::size_t i = 0; i < mine->id.size(); ++i) result[i] = mine->id[i];
    for (std::size_t i = 0; i < 4; ++i) result[8 + i] = static_cast<std::byte>(count >> (24 - 8 * i));
    return result;
  }

 private:
  /// The nonces of one process, at most 2^32. Those that were before stay until the end: another thread may still be looking at them.
  struct series {
    series(instance_id random_id, std::uint32_t first, series* inherited) : id(random_id), counter(first), before(inherited) {}
    const instance_id id;
    const process_mark mine{};
    std::atomic<std::uint64_t> counter;
    series* const before;
  };

  series& of_this_process() {
    series* latest = series_.load(std::memory_order_acquire);
    return latest->mine.inherited() ? after(latest) : *latest;
  }

  series& after(series* latest) {
    auto fresh = std::make_unique<series>(random_(), 0, latest);
    if (series_.compare_exchange_strong(latest, fresh.get(), std::memory_order_acq_rel)) return *fresh.release();
    return *latest;  // another thread of this process was faster
  }

  std::function<instance_id()> random_;
  at_the_end then_;
  std::atomic<series*> series_;
};

}  // namespace HOLDFAST_NAMESPACE
