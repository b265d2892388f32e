#pragma once

/// \file
/// How workers that wait for events learn that some may have come:
///
/// - from a publisher in the same process, at once;
/// - on PostgreSQL from any publisher, by NOTIFY;
/// - elsewhere by polling. The interval doubles while nothing comes.

#include "outbox/sql/statement.hpp"

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>

namespace HOLDFAST_NAMESPACE::detail::outbox {

/// Thread-safety: every function may be called from any thread. It has no thread: one of the
/// threads that wait listens for all of them.
class sql_wake {
 public:
  /// `connect` opens a connection to listen with. Only PostgreSQL uses it.
  sql_wake(const statement_builder& builder, std::size_t lanes, std::string channel,
           sql::connection_factory connect);

  /// Waits for at most `longest`. Returns true after a signal, and false when it is time to poll.
  bool wait(std::size_t lane, std::chrono::milliseconds longest);
  /// Wakes the threads of this process that wait for the lane.
  void signal(std::size_t lane);
  /// The same after a commit that has notified the database: does nothing if this process listens.
  void signal_notified(std::size_t lane);
  /// A claim has found events: poll at short intervals again.
  void events_found(std::size_t lane);

  /// On PostgreSQL wakes other processes when the transaction commits. Elsewhere does nothing.
  void notify(const lane_session& session) const;
  /// The name of the channel of NOTIFY.
  [[nodiscard]] const std::string& channel() const noexcept { return channel_; }

 private:
  using clock = std::chrono::steady_clock;
  struct lane_signal {
    bool signalled = false;
    std::chrono::milliseconds poll_interval{0};
  };
  bool listen(std::unique_lock<std::mutex>& lock, clock::time_point deadline);
  std::unique_ptr<sql::connection> take_unread_listener();

  const std::string channel_;
  std::optional<named_statement> notify_{};  ///< PostgreSQL
  const sql::connection_factory connect_;    ///< empty if the database cannot notify
  std::mutex mutex_{};
  std::condition_variable changed_{};
  std::vector<lane_signal> lanes_;
  std::unique_ptr<sql::connection> listener_{};  ///< null while a thread uses it
  bool listening_ = false;                       ///< a thread uses the listener
  clock::time_point no_listener_before_{};       ///< after a failure
  clock::time_point last_read_{};
  clock::time_point last_heard_{};  ///< by the thread that uses the listener
};

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
