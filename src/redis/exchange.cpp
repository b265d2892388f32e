#include "redis/exchange.hpp"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::redis {

namespace {

/// How often a group checks its queued exchanges while others are running. The pools of several
/// nodes cannot be waited for together with sockets.
constexpr auto queue_check_interval = std::chrono::milliseconds(2);

}  // namespace

exchange::exchange(pipeline& owner, std::shared_ptr<node_pool> pool)
    : requests_(owner, pool->address()), connection_(std::move(pool)) {}

void exchange::advance(steady::time_point deadline) {
  try {
    switch (state_) {
      case state::queued:
        connection_.open(deadline);
        requests_.encode(connection_->scripts());
        state_ = state::connecting;
        if (steady::now() >= deadline) {
          // Opening took the time of the call. A command sent now could only be in doubt.
          fail(error(errc::timeout, "no time remained to send commands to Redis at " + node(),
                     {.transient = true}));
          return;
        }
        [[fallthrough]];
      case state::connecting:
        if (!connection_->set_up()) return;
        connection_.set_up_done();
        state_ = state::transferring;
        // A reply cannot have arrived at once.
        events_ = static_cast<short>(POLLIN | connection_->send(requests_, deadline));
        return;
      case state::transferring: {
        const short send_events = connection_->send(requests_, deadline);
        const short receive_events = connection_->receive(requests_, deadline);
        events_ = static_cast<short>(send_events | receive_events);
        if (receive_events == 0) state_ = state::finished;
        return;
      }
      case state::finished:
        return;
    }
  } catch (const error& problem) {
    fail(problem);
  } catch (const std::exception&) {
    fail(error(errc::unavailable,
               state_ == state::transferring
                   ? "not enough memory for a reply of Redis; ask for less at once"
                   : "not enough memory to connect to Redis at " + node()));
  }
}

void exchange::fail(const error& problem) {
  if (connection_.set_up_failed(problem)) {
    state_ = state::queued;
    return;
  }
  if (connection_.get() != nullptr) connection_->discard();
  problem_ = problem;
  state_ = state::finished;
}

void exchange::add_polls(std::vector<pollfd>& polls) {
  if (state_ == state::connecting) {
    connection_->add_polls(polls);
  } else {
    poll_index_ = polls.size();
    polls.push_back({connection_->descriptor(), events_, 0});
  }
}

bool exchange::is_due(std::span<const pollfd> polls) const noexcept {
  // Connecting has timers of its own.
  return state_ == state::connecting || polls[poll_index_].revents != 0;
}

steady::time_point exchange::wake_at() const noexcept {
  return state_ == state::connecting ? connection_->wake_at() : steady::time_point::max();
}

/// Exchanges with an open connection start first: opening one may take time, because it resolves a
/// host.
void exchange_group::start(std::list<exchange> added) {
  exchanges_.splice(exchanges_.end(), added);
  for (const bool open : {true, false}) {
    for (auto& each : exchanges_) {
      if (each.current() == exchange::state::queued && each.connection().granted() &&
          each.connection().is_open() == open)
        each.advance(deadline_);
    }
  }
}

void exchange_group::wait(steady::time_point wake) {
  const auto is_queued = [](const exchange& each) {
    return each.current() == exchange::state::queued;
  };
  const auto queued = static_cast<std::size_t>(std::ranges::count_if(exchanges_, is_queued));
  auto until = std::min(deadline_, wake);
  if (queued == 1 && exchanges_.size() == 1) {
    exchanges_.front().connection().wait(until);
  } else {
    if (queued > 0) until = std::min(until, steady::now() + queue_check_interval);
    if (queued < exchanges_.size()) poll_running(until);
    else std::this_thread::sleep_until(until);
  }

  const bool late = steady::now() >= deadline_;
  for (auto& each : exchanges_) {
    if (!is_queued(each)) continue;
    if (each.connection().granted()) each.advance(deadline_);
    else if (late) each.fail(each.connection().busy_error());
  }
}

void exchange_group::fail_others(const std::string& node, const error& problem) {
  for (auto& each : exchanges_) {
    if (each.current() != exchange::state::finished && each.node() != node) each.fail(problem);
  }
}

/// Polls the sockets of all exchanges that are connecting or transferring.
void exchange_group::poll_running(steady::time_point wake) {
  const auto is_running = [](const exchange& each) {
    return each.current() == exchange::state::connecting ||
           each.current() == exchange::state::transferring;
  };
  polls_.clear();
  for (auto& each : exchanges_) {
    if (!is_running(each)) continue;
    each.add_polls(polls_);
    wake = std::min(wake, each.wake_at());
  }
  const bool late = steady::now() >= deadline_;  // replies that have arrived by now still count
  const int ready = ::poll(polls_.data(), polls_.size(), net::poll_timeout(wake));
  if (ready < 0 && errno == EINTR) return;
  for (auto& each : exchanges_) {
    if (!is_running(each)) continue;
    if (each.is_due(polls_)) each.advance(deadline_);
    if ((late || ready < 0) && each.current() != exchange::state::finished)
      each.fail(error(errc::timeout, "Redis at " + each.node() + " did not answer in time",
                      {.transient = true}));
  }
}

}  // namespace HOLDFAST_NAMESPACE::detail::redis
