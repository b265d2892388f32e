#include "base/breaker.hpp"

#include "base/duration_limit.hpp"

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

namespace detail {

namespace {

breaker_options limit_durations(breaker_options options) {
  options.open_for = limit_duration(options.open_for);
  if (options.slow) options.slow = limit_duration(*options.slow);
  return options;
}

}  // namespace

breaker::breaker(const breaker_options& options) : options_(limit_durations(options)) {
  window_.reserve(options_.window);
}

std::string breaker::problem_of(const breaker_options& options) {
  const auto is_rate = [](double rate) { return rate > 0 && rate <= 1; };
  if (options.window == 0 || options.window > 100'000)
    return "breaker.window must be from 1 to 100000";
  if (options.minimum == 0 || options.minimum > options.window)
    return "breaker.minimum must be from 1 to breaker.window";
  if (!is_rate(options.failure_rate))
    return "breaker.failure_rate must be more than 0 and at most 1";
  if (!is_rate(options.slow_rate)) return "breaker.slow_rate must be more than 0 and at most 1";
  if (options.slow && options.slow->count() <= 0) return "breaker.slow must be positive";
  if (options.open_for.count() <= 0) return "breaker.open_for must be positive";
  if (options.probes == 0) return "breaker.probes must be at least 1";
  return {};
}

void breaker::enter(breaker_state state) {
  state_ = state;
  ++period_;
  window_.clear();
  next_ = failed_ = slow_ = probes_ = good_probes_ = 0;
}

void breaker::open(moment now) {
  enter(breaker_state::open);
  open_until_ = now + options_.open_for;
  ++opened_;
}

void breaker::half_open(moment now) {
  enter(breaker_state::half_open);
  open_until_ = now + options_.open_for;
}

breaker::ticket breaker::ask(moment now) {
  const std::scoped_lock lock(mutex_);
  if (state_ == breaker_state::open && now >= open_until_) half_open(now);
  // Probes whose result never arrives must not keep the breaker half open: admit new ones.
  if (state_ == breaker_state::half_open && probes_ >= options_.probes && now >= open_until_)
    half_open(now);
  switch (state_) {
    case breaker_state::closed:
      return {.allowed = true, .period = period_};
    case breaker_state::half_open:
      if (probes_ >= options_.probes) return {};
      ++probes_;
      return {.allowed = true, .period = period_};
    case breaker_state::open:
      return {};
  }
  return {};
}

void breaker::count(outcome call) {
  if (window_.size() < options_.window) {
    window_.push_back(call);
  } else {
    outcome& oldest = window_[next_];
    failed_ -= oldest.failed ? 1U : 0U;
    slow_ -= oldest.slow ? 1U : 0U;
    oldest = call;
    next_ = (next_ + 1) % window_.size();
  }
  failed_ += call.failed ? 1U : 0U;
  slow_ += call.slow ? 1U : 0U;
}

void breaker::ended(ticket call, moment now, call_result result,
                    std::chrono::steady_clock::duration duration) {
  if (!call.allowed) return;
  const std::scoped_lock lock(mutex_);
  if (call.period != period_) return;
  const outcome ended{.failed = result == call_result::failure,
                      .slow = options_.slow && duration > *options_.slow};
  if (state_ == breaker_state::half_open) {
    if (result == call_result::none) {
      if (probes_ > 0) --probes_;
    } else if (ended.failed || ended.slow) {
      open(now);
    } else if (++good_probes_ >= options_.probes) {
      enter(breaker_state::closed);
    }
    return;
  }
  if (result == call_result::none) return;
  count(ended);
  const auto reached = [&](std::size_t count, double rate) {
    return static_cast<double>(count) >= rate * static_cast<double>(window_.size());
  };
  if (window_.size() >= options_.minimum && (reached(failed_, options_.failure_rate) ||
                                             (options_.slow && reached(slow_, options_.slow_rate))))
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

}  // namespace detail

}  // namespace HOLDFAST_NAMESPACE
