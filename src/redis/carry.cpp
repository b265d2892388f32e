#include "redis/connection.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace HOLDFAST_NAMESPACE::redis {

namespace {

void lose(leg& l, const error& why) {
  l.over->set_broken();
  l.problem = why;
}

void lose_closed(leg& l) {
  lose(l, error(errc::unavailable, "the connection to Redis at " + l.over->address() + " was lost: " + l.over->io().why(),
                {.transient = true}));
}

/// Sends what there is room for. Returns what to wait for before more can be sent.
short push(leg& l, steady::time_point deadline) {
  flight& what = *l.what;
  while (what.sent() < what.bytes().size()) {
    if (steady::now() >= deadline) return POLLOUT;  // nobody waits any more; sent now, it would be in doubt
    const auto done = l.over->io().write(std::string_view(what.bytes()).substr(what.sent()));
    switch (done.what) {
      case step::done:
        what.advance(done.bytes);
        break;
      case step::wait_write:
        return POLLOUT;
      case step::wait_read:
      case step::closed:  // replies that came before it closed are still there to
                          // be read; the reader will find the end
        return POLLIN;
    }
  }
  return 0;
}

/// Reads what has come. Returns what to wait for; 0 when it has all, or will get no more.
short pull(leg& l, steady::time_point deadline) {
  std::array<char, std::size_t{32} * 1024> room;  // NOLINT(cppcoreguidelines-pro-type-member-init):
                                                  // read before it is looked at
  for (;;) {
    const auto done = l.over->io().read(room);
    if (done.what == step::wait_read) return POLLIN;
    if (done.what == step::wait_write) return POLLOUT;
    if (done.what == step::closed) {
      lose_closed(l);
      return 0;
    }
    try {
      auto& reader = l.over->reader();
      reader.feed({room.data(), done.bytes});
      while (auto found = reader.next()) {
        if (!l.what->take(std::move(*found))) {
          l.over->set_broken();  // more replies than commands: nobody may use it
                                 // again
          return 0;
        }
      }
      if (l.what->complete()) {
        l.over->set_broken(!reader.empty());
        return 0;
      }
      if (steady::now() >= deadline)
        return POLLIN;  // a server that talks without end does not move the
                        // deadline
    } catch (const error& bad) {
      lose(l, bad);
      return 0;
    } catch (const std::exception&) {
      lose(l, error(errc::unavailable, "not enough memory for a reply of Redis; ask for less at once"));
      return 0;
    }
  }
}

}  // namespace

short move_on(leg& l, bool first, steady::time_point deadline) {
  const short for_writing = push(l, deadline);
  if (first) return static_cast<short>(POLLIN | for_writing);  // an answer cannot be there yet
  const short for_reading = pull(l, deadline);
  return for_reading == 0 ? short{0} : static_cast<short>(for_reading | for_writing);
}

carrier::carrier(std::size_t legs, steady::time_point deadline) : deadline_(deadline) {
  legs_.reserve(legs);
  waits_.reserve(legs);
}

void carrier::add(leg& l) {
  l.over->set_broken();              // until it has all its replies, whatever happens
                                     // meanwhile
  if (steady::now() >= deadline_) {  // another took the time; what is sent now
                                     // could only be in doubt
    lose(l, error(errc::timeout, "no time was left for Redis at " + l.over->address(), {.transient = true}));
    l.done = true;
    return;
  }
  legs_.push_back(&l);
  if (l.over->ready()) advance(l, true);
  else set_up(l);
  if (l.done) legs_.pop_back();
}

void carrier::advance(leg& l, bool first) {
  l.waits_for = move_on(l, first, deadline_);
  l.done = l.waits_for == 0;
}

void carrier::set_up(leg& l) {
  try {
    if (!l.over->set_up()) return;
    l.over->set_broken();
    advance(l, true);
  } catch (const error& failed) {
    lose(l, failed);
    l.done = true;
  } catch (const std::exception&) {
    lose(l, error(errc::unavailable, "not enough memory to connect to Redis at " + l.over->address()));
    l.done = true;
  }
}

void carrier::step(steady::time_point wake) {
  waits_.clear();
  auto until = std::min(deadline_, wake);
  for (const leg* each : legs_) {
    if (each->over->ready()) {
      waits_.push_back({each->over->io().descriptor(), each->waits_for, 0});
    } else {
      each->over->add_waits(waits_);
      until = std::min(until, each->over->wake_at());
    }
  }
  const bool late = steady::now() >= deadline_;  // what has come by then is read
  const int ready = ::poll(waits_.data(), waits_.size(), milliseconds_until(until));
  if (ready < 0 && errno == EINTR) return;
  std::size_t at = 0;
  for (leg* each : legs_) {
    if (each->done) continue;
    if (!each->over->ready()) {
      set_up(*each);
      continue;
    }
    while (at < waits_.size() && waits_[at].fd != each->over->io().descriptor()) ++at;
    if (at < waits_.size() && waits_[at].revents != 0) advance(*each, false);
  }
  if (late || ready < 0) {
    for (leg* each : legs_) {
      if (each->done) continue;
      lose(*each, error(errc::timeout, "Redis at " + each->over->address() + " did not answer in time", {.transient = true}));
      each->done = true;
    }
  }
  std::erase_if(legs_, [](const leg* each) { return each->done; });
}

}  // namespace HOLDFAST_NAMESPACE::redis
