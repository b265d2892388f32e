#pragma once

#include <holdfast/version.hpp>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace HOLDFAST_NAMESPACE::sql::mysql {

/// Shuts a socket down when its owner has not come back by a deadline. For encrypted connections: there the client library blocks inside
/// OpenSSL, whatever it was told about timeouts and non-blocking calls.
///
/// Thread-safety: one owner; the thread inside is its own.
class watchdog {
 public:
  using deadline = std::chrono::steady_clock::time_point;

  watchdog();
  watchdog(const watchdog&) = delete;
  watchdog& operator=(const watchdog&) = delete;
  ~watchdog();

  /// Which socket. It keeps a duplicate: the number may be closed and given to somebody else at any time.
  void watch(int socket);
  void arm(deadline until);
  /// Was it too late?
  bool disarm();

 private:
  void run();

  std::mutex mutex_{};
  std::condition_variable changed_{};
  int socket_ = -1;
  bool armed_ = false;
  bool fired_ = false;
  bool ending_ = false;
  deadline until_{};
  deadline wakes_ = deadline::max();  ///< when the thread looks again by itself
  std::jthread thread_;               ///< last: it sees all of the above
};

}  // namespace HOLDFAST_NAMESPACE::sql::mysql
