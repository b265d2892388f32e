#include "redis/connection.hpp"

#include <poll.h>

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
      case step::closed:  // replies that came before it closed are still there to be read; the reader will find the end
        return POLLIN;
    }
  }
  return 0;
}

/// Reads what has come. Returns what to wait for; 0 when it has all, or will get no more.
short pull(leg& l, steady::time_point deadline) {
  std::array<char, std::size_t{32} * 1024> room;  // NOLINT(cppcoreguidelines-pro-type-member-init): read before it is looked at
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
          l.over->set_broken();  // more replies than commands: nobody may use it again
          return 0;
        }
      }
      if (l.what->complete()) {
        l.over->set_broken(!reader.empty());
        return 0;
      }
      if (steady::now() >= deadline) return POLLIN;  // a server that talks without end does not move the deadline
    } catch (const error& bad) {
      lose(l, bad);
      return 0;
    } catch (const std::exception&) {
      lose(l, error(errc::unavailable, "not enough memory for a reply of Redis; ask for less at once"));
      return 0;
    }
  }
}

/// One step of a leg that the kernel says something about; `first` when nothing is known yet.
short advance(leg& l, bool first, steady::time_point deadline) {
  const short for_writing = push(l, deadline);
  if (first) return static_cast<short>(POLLIN | for_writing);  // an answer cannot be there yet
  const short for_reading = pull(l, deadline);
  return for_reading == 0 ? short{0} : static_cast<short>(for_reading | for_writing);
}

void give_up(std::span<leg> legs, std::span<const pollfd> waits) {
  for (std::size_t i = 0; i < legs.size(); ++i) {
    if (waits[i].fd >= 0)
      lose(legs[i], error(errc::timeout, "Redis at " + legs[i].over->address() + " did not answer in time", {.transient = true}));
  }
}

}  // namespace

void carry(std::span<leg> legs, steady::time_point deadline) {
  if (steady::now() >= deadline) {  // another node took the time; what is sent now could only be in doubt
    for (auto& each : legs)
      each.problem = error(errc::timeout, "no time was left for Redis at " + each.over->address(), {.transient = true});
    return;
  }
  std::vector<pollfd> waits(legs.size());
  std::size_t open = 0;
  for (std::size_t i = 0; i < legs.size(); ++i) {
    legs[i].over->set_broken();  // until it has all its replies, whatever happens meanwhile
    waits[i] = {legs[i].over->io().descriptor(), advance(legs[i], true, deadline), 0};
    ++open;
  }
  while (open > 0) {
    const int wait = milliseconds_until(deadline);
    const int ready = ::poll(waits.data(), waits.size(), wait);
    if (ready < 0 && errno == EINTR) continue;
    const bool late = wait == 0;  // what had come by then was read
    if (ready < 0 || (ready == 0 && steady::now() >= deadline)) {
      give_up(legs, waits);
      return;
    }
    for (std::size_t i = 0; i < legs.size(); ++i) {
      if (waits[i].fd < 0 || waits[i].revents == 0) continue;
      waits[i].events = advance(legs[i], false, deadline);
      if (waits[i].events == 0) {
        waits[i].fd = -1;  // poll leaves it out
        --open;
      }
    }
    if (late) {
      give_up(legs, waits);
      return;
    }
  }
}

}  // namespace HOLDFAST_NAMESPACE::redis
