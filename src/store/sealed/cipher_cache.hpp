#pragma once

#include <holdfast/store.hpp>
#include <holdfast/store/sealed.hpp>

#include "store/sealed/sealer.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

namespace HOLDFAST_NAMESPACE::detail::store {

/// Sealers that are ready for use, with a buffer and counters for each.
///
/// Allocating a buffer, preparing a key, taking a lock or updating a shared counter all take longer
/// than encrypting a small payload. So each operation borrows a slot that other operations have
/// used before. If all slots are in use, it gets a temporary one. The states of a slot:
///
///     idle -> in_use        an operation borrows it
///     in_use -> idle        the operation ends
///     in_use -> outdated    replace_keys() was called meanwhile
///     outdated -> idle      the operation ends; the old keys are wiped
///
/// Thread-safety: every function may be called from any thread. Only replace_keys() and the first
/// use of a slot take a lock. After fork, slots that other threads had borrowed stay in use in the
/// child.
class cipher_cache {
 public:
  /// Written only by the thread that has borrowed the slot; read by any thread.
  class counter {
   public:
    void add(std::uint64_t count) noexcept {
      value_.store(value() + count, std::memory_order_relaxed);
    }
    [[nodiscard]] std::uint64_t value() const noexcept {
      return value_.load(std::memory_order_relaxed);
    }

   private:
    std::atomic<std::uint64_t> value_{0};
  };

  struct cipher {
    std::unique_ptr<store::sealer> sealer{};  ///< null until the first use
    entry sealed{};  ///< a buffer for a sealed entry; never contains plaintext
    counter seals{};
    counter opens{};
    counter old_opens{};
    counter refusals{};
  };

 private:
  enum class slot_state : std::uint8_t { idle, in_use, outdated };
  struct alignas(64) slot {
    std::atomic<slot_state> state{slot_state::idle};
    cipher content{};
  };

 public:
  /// A cipher for the time of one operation.
  class borrowed_cipher {
   public:
    borrowed_cipher(const borrowed_cipher&) = delete;
    borrowed_cipher& operator=(const borrowed_cipher&) = delete;
    ~borrowed_cipher();
    [[nodiscard]] cipher& operator*() const noexcept { return *cipher_; }
    [[nodiscard]] cipher* operator->() const noexcept { return cipher_; }

   private:
    friend class cipher_cache;
    explicit borrowed_cipher(cipher_cache& cache);
    cipher_cache& cache_;
    slot* slot_ = nullptr;  // null: a temporary cipher
    std::unique_ptr<cipher> temporary_{};
    cipher* cipher_ = nullptr;
  };

  cipher_cache() = default;
  cipher_cache(const cipher_cache&) = delete;
  cipher_cache& operator=(const cipher_cache&) = delete;
  ~cipher_cache() = default;

  [[nodiscard]] borrowed_cipher borrow() { return borrowed_cipher(*this); }

  /// Operations that start from now on use this sealer. The previous keys are wiped when the last
  /// operation that uses them ends.
  void replace_keys(std::shared_ptr<const sealer> next) noexcept;
  [[nodiscard]] std::shared_ptr<const sealer> current() const;

  [[nodiscard]] sealed_numbers numbers() const noexcept;

 private:
  static constexpr std::size_t slot_count = 8;

  std::array<slot, slot_count> slots_{};
  mutable std::mutex mutex_;
  std::shared_ptr<const sealer> current_{};  // only copied, never used
  // The counters of temporary ciphers that were destroyed
  std::atomic<std::uint64_t> seals_{0};
  std::atomic<std::uint64_t> opens_{0};
  std::atomic<std::uint64_t> old_opens_{0};
  std::atomic<std::uint64_t> refusals_{0};
};

}  // namespace HOLDFAST_NAMESPACE::detail::store
