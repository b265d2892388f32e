#include "sql/mysql_watchdog.hpp"

#include "base/thread.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace HOLDFAST_NAMESPACE::sql::mysql {

watchdog::watchdog() : thread_(start_quiet_thread("holdfast-mysql", [this] { run(); })) {}

watchdog::~watchdog() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_one();
  thread_.join();
  if (socket_ >= 0) ::close(socket_);
}

void watchdog::watch(int socket) {
  const int mine = ::fcntl(socket, F_DUPFD_CLOEXEC, 0);
  const std::lock_guard lock(mutex_);
  if (socket_ >= 0) ::close(socket_);
  socket_ = mine;
  if (fired_ && socket_ >= 0) ::shutdown(socket_, SHUT_RDWR);
}

void watchdog::arm(deadline until) {
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    armed_ = true;
    fired_ = false;
    until_ = until;
    // A thread that wakes earlier anyway finds the new deadline by itself: statements in a row cost no switch of threads.
    wake = until < wakes_;
  }
  if (wake) changed_.notify_one();
}

bool watchdog::disarm() {
  const std::lock_guard lock(mutex_);
  armed_ = false;
  return fired_;
}

void watchdog::run() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    if (!armed_ || fired_) {
      wakes_ = deadline::max();
      changed_.wait(lock);
    } else if (std::chrono::steady_clock::now() < until_) {
      wakes_ = until_;
      changed_.wait_until(lock, wakes_);
    } else {
      fired_ = true;
      if (socket_ >= 0) ::shutdown(socket_, SHUT_RDWR);
    }
  }
}

}  // namespace HOLDFAST_NAMESPACE::sql::mysql
