#pragma once

#include <holdfast/sql.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace HOLDFAST_NAMESPACE::outboxes {

/// How those who wait for events learn that there may be some: in this process at once; on PostgreSQL by NOTIFY, from everywhere; and
/// otherwise by looking, the less often the longer there was nothing.
/// Thread-safety: every function may be called from any thread. No thread of its own: of those who wait, one listens for all.
class sql_wake {
 public:
  /// `listen` makes a connection to listen with; empty where the database cannot notify.
  sql_wake(std::size_t lanes, std::string channel, std::function<std::unique_ptr<sql::connection>()> listen);

  /// True: somebody said so. Returns early, too, where nobody tells what others publish: then it is time to look.
  bool wait(std::size_t lane, std::chrono::milliseconds longest);
  void signal(std::size_t lane);
  /// The same, for what the database tells by itself to those who listen.
  void published(std::size_t lane);
  /// There was something: look often again.
  void found(std::size_t lane);

 private:
  using clock = std::chrono::steady_clock;
  struct place {
    bool marked = false;
    std::chrono::milliseconds pause{0};
  };
  bool hear(std::unique_lock<std::mutex>& lock, clock::time_point until);

  const std::string channel_;
  const std::function<std::unique_ptr<sql::connection>()> listen_;
  std::mutex mutex_{};
  std::condition_variable changed_{};
  std::vector<place> places_;
  std::unique_ptr<sql::connection> ear_{};  // used without the lock by the one who listens
  bool listening_ = false;
  clock::time_point deaf_until_{};
  clock::time_point heard_{};  // when somebody listened last
};

}  // namespace HOLDFAST_NAMESPACE::outboxes
