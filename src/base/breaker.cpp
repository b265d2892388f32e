#include "base/breaker.hpp"

#include <algorithm>

namespace HOLDFAST_NAMESPACE {

std::string_view to_string(breaker_state state) noexcept {
  switch (state) {
    case breaker_state::closed:
      return "closed";
    case breaker_state::half_open:
      return "half_open";
    case breaker_state::open:
      return "open";
  }
  return "unknown";
}

namespace {

/// For ever is a year: the end of a longer time may be before its beginning.
breaker_options bounded(breaker_options options) {
  constexpr std::chrono::microseconds longest = std::chrono::hours(24 * 365);
  options.open_for = std::min(options.open_for, longest);
  if (options.slow) options.slow = std::min(*options.slow, longest);
  return options;
}

}  // namespace

breaker::breaker(const breaker_options& options) : options_(bounded(options)) { window_.reserve(options_.window); }

std::string breaker::problem_of(const breaker_options& options) {
  const auto is_rate = [](double rate) { return rate > 0 && rate <= 1; };
  if (options.window == 0 || options.window > 100'000) return "breaker.window must be from 1 to 100000";
  if (options.minimum == 0 || options.minimum > options.window) return "breaker.minimum must be from 1 to breaker.window";
  if (!is_rate(options.failure_rate)) return "breaker.failure_rate must be more than 0 and at most 1";
  if (!is_rate(options.slow_rate)) return "breaker.slow_rate must be more than 0 and at most 1";
  if (options.slow && options.slow->count() <= 0) return "breaker.slow must be more than nothing";
  if (options.open_for.count() <= 0) return "breaker.open_for must be more than nothing";
  if (options.probes == 0) return "breaker.probes must be at least 1";
  return {};
}

void breaker::enter(breaker_state state) {
  state_ = state;
  ++period_;
  window_.clear();
  next_ = failed_ = slow_ = probing_ = probed_ = 0;
}

void breaker::open(moment now) {
  enter(breaker_state::open);
  open_until_ = now + options_.open_for;
  ++opened_;
}

breaker::ticket breaker::ask(moment now) {
  const std::scoped_lock lock(mutex_);
  if (state_ == breaker_state::open && now >= open_until_) {
    enter(breaker_state::half_open);
    open_until_ = now + options_.open_for;  // probes that never come back must not keep it half open for ever
  }
  if (state_ == breaker_state::half_open && probing_ >= options_.probes && now >= open_until_) {
    enter(breaker_state::half_open);
    open_until_ = now + options_.open_for;
  }
  switch (state_) {
    case breaker_state::closed:
      return {.allowed = true, .period = period_};
    case breaker_state::half_open:
      if (probing_ >= options_.probes) return {};
      ++probing_;
      return {.allowed = true, .period = period_};
    case breaker_state::open:
      return {};
  }
  return {};
}

void breaker::note(outcome one) {
  if (window_.size() < options_.window) {
    window_.push_back(one);
  } else {
    outcome& oldest = window_[next_];
    failed_ -= oldest.failed ? 1U : 0U;
    slow_ -= oldest.slow ? 1U : 0U;
    oldest = one;
    next_ = (next_ + 1) % window_.size();
  }
  failed_ += one.failed ? 1U : 0U;
  slow_ += one.slow ? 1U : 0U;
}

void breaker::ended(ticket which, moment now, call_result how, std::chrono::steady_clock::duration took) {
  if (!which.allowed) return;
  const std::scoped_lock lock(mutex_);
  if (which.period != period_) return;
  const outcome one{.failed = how == call_result::failure, .slow = options_.slow && took > *options_.slow};
  if (state_ == breaker_state::half_open) {
    if (how == call_result::none) {
      if (probing_ > 0) --probing_;
    } else if (one.failed || one.slow) {
      open(now);
    } else if (++probed_ >= options_.probes) {
      enter(breaker_state::closed);
    }
    return;
  }
  if (how == call_result::none) return;
  note(one);
  const auto reached = [&](std::size_t count, double rate) {
    return static_cast<double>(count) >= rate * static_cast<double>(window_.size());
  };
  if (window_.size() >= options_.minimum &&
      (reached(failed_, options_.failure_rate) || (options_.slow && reached(slow_, options_.slow_rate))))
    open(now);
}

breaker_state breaker::state(moment now) const {
  const std::scoped_lock lock(mutex_);
  return state_ == breaker_state::open && now >= open_until_ ? breaker_state::half_open : state_;
}

std::uint64_t breaker::opened() const {
  const std::scoped_lock lock(mutex_);
  return opened_;
}

}  // namespace HOLDFAST_NAMESPACE
