#include "outbox/sql/wake.hpp"

#include <holdfast/error.hpp>

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::outbox {

namespace {

using namespace std::chrono_literals;

/// Between two polls if nothing notifies this process.
constexpr auto min_poll_interval = 2ms;
constexpr auto max_poll_interval = 200ms;
/// Between two polls while it listens. Polling finds events that were published while the
/// connection was broken.
constexpr auto listening_poll_interval = 1000ms;
/// The thread that listens checks this often whether it was signalled.
constexpr auto listen_slice = 50ms;
constexpr auto reconnect_delay = 1s;
/// The same if a pooler is in front of the server, which does not pass notifications on.
constexpr auto unsupported_delay = 5min;
/// A listener that has heard nothing for this long must answer a ping: its server may hang, or the
/// network may have forgotten the connection.
constexpr auto silent_listener_check = 5s;
constexpr auto ping_limit = 500ms;
/// Notifications that one turn reads. The next turn reads the rest.
constexpr int max_notifications = 10'000;
/// A connection that no thread has read for this long is closed: its notifications would pile up in
/// the server.
constexpr auto max_unread = 30s;

/// Reads the notifications that have come. One poll of a lane answers all of its notifications.
std::set<std::size_t> read_notified_lanes(sql::connection& listener,
                                          std::chrono::milliseconds longest) {
  std::set<std::size_t> lanes;
  auto payload = listener.notice(longest);
  for (int count = 1; payload; ++count) {
    std::size_t lane = 0;
    const auto* const end = payload->data() + payload->size();
    if (std::from_chars(payload->data(), end, lane).ec == std::errc()) lanes.insert(lane);
    if (count == max_notifications) break;
    payload = listener.notice(0ms);
  }
  return lanes;
}

}  // namespace

sql_wake::sql_wake(const statement_builder& builder, std::size_t lanes, std::string channel,
                   sql::connection_factory connect)
    : channel_(std::move(channel)),
      connect_(builder.postgres() ? std::move(connect) : sql::connection_factory()),
      lanes_(lanes) {
  if (builder.postgres())
    notify_ = builder.statement("SELECT pg_notify(:channel/text, :payload/text)::text",
                                {sql::type::text});
}

void sql_wake::notify(const lane_session& session) const {
  if (!notify_) return;
  (void)notify_->query(session, {{"channel", channel_}, {"payload", std::to_string(session.lane)}});
}

void sql_wake::signal(std::size_t lane) {
  {
    const std::scoped_lock lock(mutex_);
    lanes_.at(lane).signalled = true;
  }
  changed_.notify_all();
}

std::unique_ptr<sql::connection> sql_wake::take_unread_listener() {
  if (listener_ && clock::now() - last_read_ > max_unread) return std::move(listener_);
  return nullptr;
}

void sql_wake::signal_notified(std::size_t lane) {
  std::unique_ptr<sql::connection> unread;  // closed without the lock
  {
    const std::scoped_lock lock(mutex_);
    unread = take_unread_listener();
    if (listener_ || listening_) return;  // NOTIFY wakes this process as well
  }
  signal(lane);
}

void sql_wake::events_found(std::size_t lane) {
  std::unique_ptr<sql::connection> unread;  // closed without the lock
  const std::scoped_lock lock(mutex_);
  lanes_.at(lane).poll_interval = 0ms;
  unread = take_unread_listener();
}

/// Listens for all waiting threads, for one slice of time. Returns false if it cannot.
bool sql_wake::listen(std::unique_lock<std::mutex>& lock, clock::time_point deadline) {
  if (!connect_ || clock::now() < no_listener_before_) return false;
  listening_ = true;
  auto listener = std::move(listener_);
  lock.unlock();
  std::set<std::size_t> notified;
  bool failed = false;
  bool missed_some = false;
  auto retry_delay = std::chrono::duration_cast<clock::duration>(reconnect_delay);
  try {
    if (!listener) {
      listener = connect_();
      listener->listen(channel_);
      last_heard_ = clock::now();
      missed_some = true;
    } else {
      const auto remaining = std::chrono::ceil<std::chrono::milliseconds>(deadline - clock::now());
      notified = read_notified_lanes(
          *listener, std::clamp<std::chrono::milliseconds>(remaining, 0ms, listen_slice));
      if (!notified.empty()) {
        last_heard_ = clock::now();
      } else if (clock::now() - last_heard_ > silent_listener_check) {
        failed = missed_some = !listener->responds(ping_limit);
        last_heard_ = clock::now();
      }
    }
  } catch (const error& problem) {
    if (problem.code() == errc::unsupported_type) retry_delay = unsupported_delay;
    failed = true;
    missed_some = true;
  } catch (...) {
    // An exception that left would keep `listening_` true, and no thread would listen again.
    failed = true;
    missed_some = true;
  }
  lock.lock();
  listening_ = false;
  last_read_ = clock::now();
  if (failed) no_listener_before_ = clock::now() + retry_delay;
  else listener_ = std::move(listener);
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
    if (missed_some || notified.contains(lane)) lanes_[lane].signalled = true;
  }
  changed_.notify_all();
  return !failed;
}

bool sql_wake::wait(std::size_t lane, std::chrono::milliseconds longest) {
  const auto start = clock::now();
  std::unique_lock lock(mutex_);
  auto& state = lanes_.at(lane);
  const bool can_listen = connect_ && start >= no_listener_before_;
  state.poll_interval = std::clamp<std::chrono::milliseconds>(2 * state.poll_interval,
                                                              min_poll_interval, max_poll_interval);
  const auto interval =
      can_listen ? std::chrono::milliseconds(listening_poll_interval) : state.poll_interval;
  const auto deadline = start + std::min(longest, interval);
  while (!state.signalled && clock::now() < deadline) {
    if (!listening_ && listen(lock, deadline)) continue;
    const std::chrono::milliseconds slice = connect_ ? listen_slice : max_poll_interval;
    changed_.wait_until(lock, std::min(deadline, clock::now() + slice), [&] {
      return state.signalled || (connect_ && !listening_ && clock::now() >= no_listener_before_);
    });
  }
  return std::exchange(state.signalled, false);
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
