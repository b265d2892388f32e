#pragma once

#include <condition_variable>
#include <mutex>

namespace holdfast::test {

/// Where others wait until it is opened: an upstream or a store that hangs. Closed at first; ends
/// open.
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

/// Opens a gate when a test ends, however it ends: what stands at it, and who waits for that, would
/// wait for ever.
class open_in_the_end {
 public:
  explicit open_in_the_end(gate& held) : held_(held) {}
  open_in_the_end(const open_in_the_end&) = delete;
  open_in_the_end& operator=(const open_in_the_end&) = delete;
  ~open_in_the_end() { held_.open(); }

 private:
  gate& held_;
};

}  // namespace holdfast::test
