#include "outbox/relay/broker_sessions.hpp"

#include <holdfast/error.hpp>

#include "base/deadline.hpp"

#include <utility>

namespace HOLDFAST_NAMESPACE::detail::outbox {

namespace {

/// A connection that was idle longer is not used again: a firewall may have forgotten it.
constexpr std::chrono::seconds longest_idle{20};

}  // namespace

std::unique_ptr<broker_session> broker_sessions::take_idle() {
  while (true) {
    idle_session candidate;
    {
      const std::scoped_lock lock(mutex_);
      if (idle_.empty()) return nullptr;
      candidate = std::move(idle_.back());
      idle_.pop_back();
    }
    const auto now = std::chrono::steady_clock::now();
    if (now - candidate.since < longest_idle && candidate.session->usable())
      return std::move(candidate.session);
  }
}

std::unique_ptr<broker_session> broker_sessions::acquire(const std::stop_token& stop) {
  if (auto session = take_idle()) return session;
  {
    std::unique_lock lock(mutex_);
    if (down_) {
      // Wait here for a while: every event that is handed back costs a claim.
      const auto give_up_at = moment_after(std::chrono::steady_clock::now(), pause_);
      while (connecting_ || std::chrono::steady_clock::now() < retry_at_) {
        const auto until = connecting_ ? give_up_at : std::min(give_up_at, retry_at_);
        (void)changed_.wait_until(lock, stop, until, [this] { return !down_; });
        if (!down_) break;
        if (stop.stop_requested() || std::chrono::steady_clock::now() >= give_up_at)
          throw error(errc::unavailable, problem_, {.transient = true});
      }
      connecting_ = down_;
    }
  }
  return connect();
}

std::unique_ptr<broker_session> broker_sessions::connect() {
  std::unique_ptr<broker_session> session;
  std::string problem;
  try {
    session = broker_.connect(connect_timeout_);
  } catch (const std::exception& failure) {
    problem = "cannot use " + broker_.name() + ": " + failure.what();
  }
  {
    const std::scoped_lock lock(mutex_);
    connecting_ = false;
    down_ = session == nullptr;
    if (down_) {
      problem_ = problem;
      retry_at_ = moment_after(std::chrono::steady_clock::now(), pause_);
    }
  }
  changed_.notify_all();
  if (!session) throw error(errc::unavailable, problem, {.transient = true});
  return session;
}

void broker_sessions::release(std::unique_ptr<broker_session> session) {
  if (!session->usable()) return;
  const std::scoped_lock lock(mutex_);
  idle_.push_back({std::move(session), std::chrono::steady_clock::now()});
}

bool broker_sessions::is_reachable() {
  {
    const std::scoped_lock lock(mutex_);
    if (down_) return false;
  }
  try {
    release(connect());
    return true;
  } catch (const error&) {
    return false;
  }
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
