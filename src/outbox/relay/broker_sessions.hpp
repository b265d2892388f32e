#pragma once

/// \file
/// The connections of a relay to its broker.

#include "outbox/relay/broker.hpp"

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::outbox {

/// Keeps connections open between calls. While the broker cannot be reached, one thread at a time
/// tries to connect, once in a pause; the others wait for it.
/// Thread-safety: every function may be called from any thread.
class broker_sessions {
 public:
  /// The broker must live longer.
  broker_sessions(const broker& target, std::chrono::milliseconds connect_timeout,
                  std::chrono::milliseconds pause)
      : broker_(target), connect_timeout_(connect_timeout), pause_(pause) {}

  /// Throws errc::unavailable if the broker cannot be used, or if stop is requested meanwhile.
  [[nodiscard]] std::unique_ptr<broker_session> acquire(const std::stop_token& stop);
  void release(std::unique_ptr<broker_session> session);
  /// Connects without a pause before. Returns false if the broker cannot be used.
  [[nodiscard]] bool is_reachable();

 private:
  using steady_time = std::chrono::steady_clock::time_point;
  struct idle_session {
    std::unique_ptr<broker_session> session;
    steady_time since;
  };

  [[nodiscard]] std::unique_ptr<broker_session> take_idle();
  [[nodiscard]] std::unique_ptr<broker_session> connect();

  const broker& broker_;
  const std::chrono::milliseconds connect_timeout_;
  const std::chrono::milliseconds pause_;
  std::mutex mutex_{};
  std::condition_variable_any changed_{};
  std::vector<idle_session> idle_{};
  bool down_ = false;
  bool connecting_ = false;  ///< while it is down
  steady_time retry_at_{};
  std::string problem_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
