#include "sql/mysql/watchdog.hpp"

#include "base/thread.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace HOLDFAST_NAMESPACE::detail::sql::mysql {

watchdog::watchdog() : thread_(start_quiet_thread("holdfast-mysql", [this] { run(); })) {}

watchdog::~watchdog() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
  if (socket_ >= 0) ::close(socket_);
}

void watchdog::watch(int socket) {
  const int duplicate = ::fcntl(socket, F_DUPFD_CLOEXEC, 0);
  const std::lock_guard lock(mutex_);
  if (socket_ >= 0) ::close(socket_);
  socket_ = duplicate;
  if (fired_ && socket_ >= 0) ::shutdown(socket_, SHUT_RDWR);
}

void watchdog::arm(time_point deadline) {
  bool notify = false;
  {
    const std::lock_guard lock(mutex_);
    armed_ = true;
    fired_ = false;
    deadline_ = deadline;
    // A thread that wakes up earlier anyway sees the new deadline then, so that consecutive
    // statements do not cost a context switch.
    notify = deadline < next_wakeup_;
  }
  if (notify) changed_.notify_one();
}

bool watchdog::disarm() {
  const std::lock_guard lock(mutex_);
  armed_ = false;
  return fired_;
}

void watchdog::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (!armed_ || fired_) {
      next_wakeup_ = time_point::max();
      changed_.wait(lock);
    } else if (std::chrono::steady_clock::now() < deadline_) {
      next_wakeup_ = deadline_;
      changed_.wait_until(lock, next_wakeup_);
    } else {
      fired_ = true;
      if (socket_ >= 0) ::shutdown(socket_, SHUT_RDWR);
    }
  }
}

}  // namespace HOLDFAST_NAMESPACE::detail::sql::mysql
