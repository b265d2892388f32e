#pragma once

#include <holdfast/store.hpp>

#include "store/sealed_envelope.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

namespace HOLDFAST_NAMESPACE {

/// What one call needs to seal or open: keys that are ready, and room for what is sealed.
struct sealing_desk {
  std::unique_ptr<sealer> with{};  ///< nothing until it is needed
  entry sealed{};                  ///< its memory is used again by the next one; never plaintext

  /// What was done here. Written by whoever has the desk, one at a time, and read by anybody.
  struct counter {
    std::atomic<std::uint64_t> value{0};
    void add(std::uint64_t more) noexcept { value.store(value.load(std::memory_order_relaxed) + more, std::memory_order_relaxed); }
  };
  counter seals{};
  counter opens{};
  counter opens_of_old{};
  counter refusals{};
};

/// Desks that are used again: to allocate room and to make a key ready take longer than to encrypt a small payload, and so do a lock and
/// some counters that every processor writes to. Whoever comes when all are taken gets one that goes with the call.
/// Thread-safety: every function may be called from any thread, and only `use` and who sits down first wait, for a moment. A fork leaves desks taken by
/// threads that are not there any more: the child has fewer.
class sealing_desks {
 public:
  sealing_desks() = default;
  sealing_desks(const sealing_desks&) = delete;
  sealing_desks& operator=(const sealing_desks&) = delete;
  ~sealing_desks() = default;

 private:
  /// `stale`: taken, and the keys have changed since.
  enum class state : std::uint8_t { idle, taken, stale };
  struct alignas(64) place {
    std::atomic<state> is{state::idle};
    sealing_desk desk{};
  };

 public:
  /// A desk for as long as this lives.
  class seat {
   public:
    seat(const seat&) = delete;
    seat& operator=(const seat&) = delete;
    ~seat();
    [[nodiscard]] sealing_desk& operator*() const noexcept { return *desk_; }
    [[nodiscard]] sealing_desk* operator->() const noexcept { return desk_; }

   private:
    friend class sealing_desks;
    explicit seat(sealing_desks& of);
    sealing_desks& of_;
    place* place_ = nullptr;  // none: the desk goes with the call
    std::unique_ptr<sealing_desk> extra_{};
    sealing_desk* desk_ = nullptr;
  };
  [[nodiscard]] seat take() { return seat(*this); }

  /// From now on everybody who sits down has these keys. Those before are forgotten, and wiped, as soon as nobody uses them.
  void use(std::shared_ptr<const sealer> fresh) noexcept;
  [[nodiscard]] std::shared_ptr<const sealer> current() const;

  [[nodiscard]] sealed_numbers numbers() const noexcept;

 private:
  static constexpr std::size_t most = 8;

  std::array<place, most> places_{};
  mutable std::mutex mutex_;
  std::shared_ptr<const sealer> current_{};  // never run: copied
  // What was done at desks that are gone.
  std::atomic<std::uint64_t> seals_{0};
  std::atomic<std::uint64_t> opens_{0};
  std::atomic<std::uint64_t> opens_of_old_{0};
  std::atomic<std::uint64_t> refusals_{0};
};

}  // namespace HOLDFAST_NAMESPACE
