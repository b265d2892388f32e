#pragma once

#include <holdfast/version.hpp>

#include "sql/public_names.hpp"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace HOLDFAST_NAMESPACE::detail::sql::mysql {

/// Shuts a socket down at a deadline, from a thread of its own. Needed for TLS: there the client
/// library blocks inside OpenSSL, in spite of its timeouts and non-blocking calls.
///
/// Thread-safety: the functions must be called by one thread at a time.
class watchdog {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  watchdog();
  watchdog(const watchdog&) = delete;
  watchdog& operator=(const watchdog&) = delete;
  ~watchdog();

  /// Sets the socket. Keeps a duplicate of it, because the library may close the descriptor at any
  /// time and the number may be reused.
  void watch(int socket);
  void arm(time_point deadline);
  /// Returns true if the deadline has passed and the socket was shut down.
  bool disarm();

 private:
  void run();

  std::mutex mutex_{};
  std::condition_variable changed_{};
  int socket_ = -1;
  bool armed_ = false;
  bool fired_ = false;
  bool stopping_ = false;
  time_point deadline_{};
  time_point next_wakeup_ = time_point::max();  // of the thread, without a notification
  std::jthread thread_;                         // last: uses all of the above
};

}  // namespace HOLDFAST_NAMESPACE::detail::sql::mysql
