#pragma once

/// \file
/// Nonces that never repeat under one key: 8 random bytes, then a counter of 4 bytes. AES-GCM is
/// broken if a nonce is used twice. Therefore the counter never restarts under the same random
/// bytes, and a forked child gets its own random bytes.

#include <holdfast/error.hpp>
#include <holdfast/version.hpp>

#include "base/fork_detector.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail {

using nonce = std::array<std::byte, 12>;

/// Thread-safety: next() may be called from any thread and never blocks.
class nonce_source {
 public:
  using instance_id = std::array<std::byte, 8>;

  /// What to do after the last nonce of an instance id: throw, or continue with a new id.
  enum class when_exhausted : std::uint8_t { refuse, renew };

  /// `random_id` creates an instance id: in the constructor, and in each forked child that needs a
  /// nonce. `first` is the first value of the counter.
  explicit nonce_source(std::function<instance_id()> random_id, std::uint32_t first = 0,
                        when_exhausted policy = when_exhausted::refuse)
      : random_id_(std::move(random_id)),
        policy_(policy),
        series_(new series(random_id_(), first, nullptr)) {}
  nonce_source(const nonce_source&) = delete;
  nonce_source& operator=(const nonce_source&) = delete;
  ~nonce_source() {
    const series* current = series_.load();
    while (current != nullptr) current = std::unique_ptr<const series>(current)->previous;
  }

  [[nodiscard]] nonce next() {
    series* current = &series_of_this_process();
    // A counter of 64 bits never wraps, so every call after the last nonce is detected.
    std::uint64_t count = current->counter.fetch_add(1, std::memory_order_relaxed);
    while (count > UINT32_MAX) {
      if (policy_ == when_exhausted::refuse) {
        throw error(
            errc::out_of_range,
            "this cipher has sealed 2^32 values and has no nonces left; make a new value_cipher");
      }
      current = &start_series(current);
      count = current->counter.fetch_add(1, std::memory_order_relaxed);
    }
    nonce result{};
    for (std::size_t i = 0; i < current->id.size(); ++i) result[i] = current->id[i];
    for (std::size_t i = 0; i < 4; ++i)
      result[8 + i] = static_cast<std::byte>(count >> (24 - 8 * i));
    return result;
  }

 private:
  /// The nonces of one instance id, at most 2^32. Earlier series live until the source is
  /// destroyed, because another thread may still read them.
  struct series {
    series(instance_id instance, std::uint32_t first, series* earlier)
        : id(instance), counter(first), previous(earlier) {}
    const instance_id id;
    const fork_detector detector{};
    std::atomic<std::uint64_t> counter;
    series* const previous;
  };

  series& series_of_this_process() {
    series* latest = series_.load(std::memory_order_acquire);
    return latest->detector.inherited_by_fork() ? start_series(latest) : *latest;
  }

  series& start_series(series* latest) {
    auto created = std::make_unique<series>(random_id_(), 0, latest);
    if (series_.compare_exchange_strong(latest, created.get(), std::memory_order_acq_rel))
      return *created.release();
    return *latest;  // another thread of this process was faster
  }

  std::function<instance_id()> random_id_;
  when_exhausted policy_;
  std::atomic<series*> series_;
};

}  // namespace HOLDFAST_NAMESPACE::detail
