#include <holdfast/error.hpp>

#include "outbox/checks.hpp"
#include "outbox/worker_core.hpp"

#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>

namespace HOLDFAST_NAMESPACE {

namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;

/// Outcomes wait no longer than this for those behind them: what was done should be known soon.
constexpr milliseconds longest_unsaid{50};
constexpr unsigned settle_attempts = 8;

call_result seen_by_breaker(outcome::kind how) {
  switch (how) {
    case outcome::kind::done:
    case outcome::kind::permanent:  // whoever is called did answer
      return call_result::success;
    case outcome::kind::retry:
    case outcome::kind::ambiguous:
      return call_result::failure;
    case outcome::kind::throttled:
      return call_result::none;
  }
  return call_result::none;
}

}  // namespace

std::string_view to_string(outcome::kind what) noexcept {
  switch (what) {
    case outcome::kind::done:
      return "done";
    case outcome::kind::retry:
      return "retry";
    case outcome::kind::throttled:
      return "throttled";
    case outcome::kind::ambiguous:
      return "ambiguous";
    case outcome::kind::permanent:
      return "permanent";
  }
  return "unknown";
}

void worker::core::handle(std::shared_ptr<turn> which) {
  {
    const std::scoped_lock lock(mutex_);
    // One that stops only gives back.
    if (handling_ >= options_.concurrency && !stopping_) {
      ready_.push_back(std::move(which));
      return;
    }
    ++handling_;
  }
  while (which) {
    which = handle_one(which);
    if (which) continue;
    const std::scoped_lock lock(mutex_);
    if (ready_.empty()) {
      --handling_;
      return;
    }
    which = std::move(ready_.front());
    ready_.pop_front();
  }
}

/// Gives the next one for this thread: the thread that had a key goes on with it; other keys find other threads.
std::shared_ptr<turn> worker::core::handle_one(const std::shared_ptr<turn>& which) {
  std::vector<settlement> out;
  continuation next;
  try {
    handle_events(*which, out, next);
  } catch (const std::exception& wrong) {
    // Only what has no memory left comes here. The leases bring the events back.
    log_.write_limited("outbox.turn", log_level::error, "events were left to their leases", {{"why", wrong.what()}});
  }
  std::vector<std::shared_ptr<turn>> more;
  if (!next.what.events.empty()) {
    numbers_.claims.add();
    more = take(std::move(next.what), next.asked, which->lane);
  }
  end(which);
  hand_out(more, 1);
  return more.empty() ? nullptr : more.front();
}

void worker::core::handle_events(turn& which, std::vector<settlement>& out, continuation& next) {
  const auto& events = which.events;
  out.reserve(events.size());
  std::string left;  // the key whose run is over: what follows is not ours any more
  const auto release_left_out = [&](const std::string& key) {
    for (const auto& [id, of] : which.left_out) {
      if (of == key) out.push_back({.id = id, .key = of, .what = settlement::kind::release});
    }
  };
  moment said = now();
  moment began = said;
  std::size_t handled = 0;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const std::string& key = events[i].event.key;
    if (!key.empty() && key == left) continue;
    if (stopping_) {
      out.push_back({.id = events[i].event.id, .key = key, .what = settlement::kind::release});
      left = key;
      continue;
    }
    bool lost = false;
    {
      const std::scoped_lock lock(which.mutex);
      which.at = i;
      lost = which.lost[i];
      if (which.source.stop_requested()) which.source = std::stop_source();
    }
    if (lost) {
      left = key;
      continue;
    }
    const outcome how = deliver(which, i);
    ++handled;
    out.push_back(settlement_of(which, i, how));
    const auto& told = out.back();
    if (told.what == settlement::kind::retry || (told.what == settlement::kind::park && told.policy != park_policy::skip)) left = key;
    const bool gone = told.what == settlement::kind::ack || (told.what == settlement::kind::park && told.policy == park_policy::skip);
    const bool run_is_done = gone && (i + 1 == events.size() || events[i + 1].event.key != key);
    if (run_is_done && !key.empty()) release_left_out(key);
    if (const moment at = now(); at - said > longest_unsaid && i + 1 < events.size()) {
      pace_.handled(handled, at - began);
      settle(which, out, i + 1, false, next);
      handled = 0;
      said = began = now();
    }
  }
  pace_.handled(handled, now() - began);
  settle(which, out, events.size(), !stopping_, next);
}

outcome worker::core::deliver(turn& which, std::size_t index) {
  const auto& what = which.events[index];
  route* const to = route_of(what.event.type);
  if (to == nullptr) {
    log_.write_limited("outbox.type", log_level::warning, "no handler for a type of event; it is left for other workers",
                       {{"type", what.event.type}});
    return outcome::throttled(options_.handling.backoff.longest, "no handler for its type");
  }
  breaker::ticket permission{};
  if (to->guard) {
    permission = to->guard->ask(now());
    if (!permission.allowed) return outcome::throttled(to->open_for, "the breaker of its type is open");
  }
  std::stop_token lost;
  {
    const std::scoped_lock lock(which.mutex);
    lost = which.source.get_token();
  }
  numbers_.deliveries.add();
  const moment began = now();
  outcome how;
  try {
    how = to->call(delivery(from_, what, which.token, std::move(lost)));
  } catch (const error& wrong) {
    how = wrong.in_doubt() ? outcome::ambiguous(wrong.what()) : outcome::retry(wrong.what());
  } catch (const std::exception& wrong) {
    how = outcome::retry(wrong.what());
  } catch (...) {
    how = outcome::retry("the handler threw something that is no std::exception");
  }
  const auto took = now() - began;
  numbers_.handle_seconds->observe(std::chrono::duration<double>(took).count());
  if (to->guard) to->guard->ended(permission, now(), seen_by_breaker(how.what()), took);
  return how;
}

milliseconds worker::core::pause_of(const backoff_options& how, std::uint32_t attempts) {
  const auto longest = static_cast<double>(how.longest.count());
  const double pause = std::min(longest, static_cast<double>(how.first.count()) * std::pow(how.factor, std::min(attempts, 64U)));
  const std::scoped_lock lock(mutex_);
  const double part = std::uniform_real_distribution<double>(0, 1)(random_);
  return milliseconds(static_cast<std::int64_t>(std::max(1.0, pause * (1 - how.jitter * part))));
}

settlement worker::core::settlement_of(const turn& which, std::size_t index, const outcome& how) {
  const auto& what = which.events[index];
  settlement told{.id = what.event.id, .key = what.event.key};
  if (how.is_done()) return told;
  const route* const to = route_of(what.event.type);
  const handler_options& rules = to != nullptr ? to->how : options_.handling;
  told.error = how.what() == outcome::kind::ambiguous ? "ambiguous: " + how.why() : how.why();
  told.policy = rules.parked;
  told.counts = how.what() != outcome::kind::throttled;
  const bool too_often = told.counts && rules.max_attempts > 0 && what.attempts + 1 >= rules.max_attempts;
  const auto age = which.store_time - what.created_at + duration_cast<std::chrono::microseconds>(now() - which.claimed_at);
  const bool too_old = rules.max_age.count() > 0 && age > rules.max_age;
  if (how.what() == outcome::kind::permanent || too_often || too_old) {
    told.what = settlement::kind::park;
    log_.write_limited("outbox.park", log_level::warning, "an event is parked; see holdfast outbox parked",
                       {{"id", told.id}, {"type", what.event.type}, {"why", told.error}});
    return told;
  }
  told.what = settlement::kind::retry;
  // A handler may say what it likes: one wrong pause must not keep the outcomes beside it from being told.
  told.delay = std::clamp<milliseconds>(how.after() ? *how.after() : pause_of(rules.backoff, what.attempts), milliseconds(0),
                                        outboxes::longest_time);
  return told;
}

bool worker::core::try_settle(const turn& which, const std::vector<settlement>& out, const std::optional<run_request>& more,
                              settled& into) {
  milliseconds pause{20};
  // What is only given back may as well come back by itself.
  const bool matters = std::ranges::any_of(out, [](const settlement& one) { return one.what != settlement::kind::release; });
  const unsigned most = matters ? settle_attempts : 1;
  for (unsigned tried = 1;; ++tried) {
    try {
      into = from_.settle(which.lane, which.token, out, more);
      return true;
    } catch (const error& wrong) {
      numbers_.errors.add();
      const bool again = (wrong.transient() || wrong.in_doubt()) && tried < most;
      if (!again) {
        if (wrong.in_doubt()) numbers_.in_doubt.add(out.size());
        log_.write_limited("outbox.settle", log_level::warning,
                           "outcomes could not be told to the outbox; their events may be delivered again", {{"why", wrong.what()}});
        const std::scoped_lock lock(mutex_);
        problem_ = wrong;
        return false;
      }
    }
    // To settle again what was settled is refused as stale, and changes nothing.
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, milliseconds(1000));
  }
}

void worker::core::settle(turn& which, std::vector<settlement>& out, std::size_t upto, bool go_on, continuation& next) {
  const bool ordered = std::ranges::any_of(out, [](const settlement& one) { return !one.key.empty(); });
  std::optional<run_request> more;
  if (go_on && ordered) {
    more = run_request{.run = std::clamp<std::size_t>(pace_.turn(), 1, options_.run),
                       .lease = options_.lease,
                       .owner = options_.compete ? std::string() : owner_};
  }
  {
    const std::scoped_lock lock(which.mutex);
    which.settling = true;
  }
  settled result;
  const moment asked = now();
  if (!out.empty() && try_settle(which, out, more, result)) {
    tell(which, out, result);
    note_parked(result.next);
    if (result.next.status == claim_status::fenced) lose(which.lane, "another worker has it");
    next = {.what = std::move(result.next), .asked = asked};
  }
  const std::scoped_lock lock(which.mutex);
  which.settled = upto;
  which.settling = false;
  out.clear();
}

void worker::core::tell(const turn& which, const std::vector<settlement>& out, const settled& what) {
  std::uint64_t done = 0;
  std::uint64_t stale = 0;
  auto next = which.events.begin();  // outcomes are in the order of their events
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto about = std::find_if(next, which.events.end(), [&](const claimed_event& one) { return one.event.id == out[i].id; });
    if (about != which.events.end()) next = about;
    if (!what.done[i]) {
      ++stale;
      continue;
    }
    switch (out[i].what) {
      case settlement::kind::ack:
        ++done;
        if (about != which.events.end()) from_.drop_payload(about->event);
        break;
      case settlement::kind::retry:
        (out[i].counts ? numbers_.retried : numbers_.throttled).add();
        break;
      case settlement::kind::park:
        numbers_.parked.add();
        break;
      case settlement::kind::release:
        numbers_.released.add();
        break;
    }
  }
  numbers_.done.add(done);
  numbers_.fenced.add(stale);
  if (stale > 0) {
    log_.write_limited("outbox.stale", log_level::warning, "outcomes came too late: the leases of their events were lost",
                       {{"events", std::to_string(stale)}, {"lane", std::to_string(which.lane)}});
  }
}

}  // namespace HOLDFAST_NAMESPACE
