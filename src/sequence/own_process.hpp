#pragma once

#include <holdfast/version.hpp>

#include "sequence/wiped_page.hpp"

#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <new>
#include <thread>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail {

/// One T for each process: a child that was forked off makes its own at its first use, and never touches the parent's, whose locks
/// may be held by threads that the child does not have. The parent's copy is left in the child's memory, never destroyed.
/// Thread-safety: `get` may be called from any thread.
template <class T>
class own_process {
 public:
  /// `make` is called with the parent's T in a child (read only what never changes), and with nullptr now.
  explicit own_process(std::function<std::shared_ptr<T>(const T* parent)> make)
      : make_(std::move(make)), shared_(new(page_.data()) control) {
    kept_ = make_(nullptr);
    publish();
  }
  own_process(const own_process&) = delete;
  own_process& operator=(const own_process&) = delete;
  ~own_process() {
    if (get_if() == nullptr) leave();
  }

  /// Throws what making one throws; the next call tries again.
  [[nodiscard]] T& get() {
    if (T* mine = get_if()) [[likely]]
      return *mine;
    return make_for_child();
  }

  /// Null in a child that has none yet.
  [[nodiscard]] T* get_if() const noexcept {
    if (!page_.wipes() && shared_->owner.load(std::memory_order_acquire) != ::getpid()) return nullptr;
    return shared_->current.load(std::memory_order_acquire);
  }

 private:
  struct control {
    std::atomic<T*> current{nullptr};
    std::atomic<bool> making{false};
    std::atomic<pid_t> owner{0};
  };

  void publish() noexcept {
    shared_->current.store(kept_.get(), std::memory_order_release);
    shared_->owner.store(::getpid(), std::memory_order_release);
  }

  /// The parent's own is never destroyed here: its destructor would wait for a thread that does not exist.
  void leave() noexcept { (void)new (std::nothrow) std::shared_ptr<T>(std::move(kept_)); }

  T& make_for_child() {
    while (shared_->making.exchange(true, std::memory_order_acquire)) std::this_thread::yield();
    struct unlock {
      std::atomic<bool>& making;
      ~unlock() { making.store(false, std::memory_order_release); }
    } guard{shared_->making};
    if (T* mine = get_if()) return *mine;
    auto made = make_(kept_.get());
    leave();
    kept_ = std::move(made);
    publish();
    return *kept_;
  }

  const std::function<std::shared_ptr<T>(const T*)> make_;
  wiped_page page_{};
  control* shared_;
  std::shared_ptr<T> kept_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail
