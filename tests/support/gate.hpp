#pragma once

#include <condition_variable>
#include <mutex>

namespace holdfast::test {

/// Where others wait until it is opened: an upstream or a store that hangs. Closed at first; ends open.
class gate {
 public:
  gate() = default;
  gate(const gate&) = delete;
  gate& operator=(const gate&) = delete;
  ~gate() { open(); }

  void wait() {
    std::unique_lock lock(mutex_);
    ++waiting_;
    opened_.wait(lock, [this] { return open_; });
    --waiting_;
  }
  void open() {
    const std::scoped_lock lock(mutex_);
    open_ = true;
    opened_.notify_all();
  }
  void close() {
    const std::scoped_lock lock(mutex_);
    open_ = false;
  }
  [[nodiscard]] int waiting() {
    const std::scoped_lock lock(mutex_);
    return waiting_;
  }

 private:
  std::mutex mutex_{};
  std::condition_variable opened_{};
  bool open_ = false;
  int waiting_ = 0;
};

}  // namespace holdfast::test
